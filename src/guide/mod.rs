//! The guide: what a lock is for, how a handler gets one, and what it can and can't promise, a chapter a module.
//!
//! Read it in this order, or go to the chapter that you need; each begins with an example that runs.
//!
//! | chapter | answers |
//! |---|---|
//! | [why] | what is a lock for, and what goes wrong with locks in functions? |
//! | [no_lock] | do I need one at all? |
//! | [wrap] | how does my handler get one, whatever it takes and returns? |
//! | [keys] | what is locked? |
//! | [times] | how long: the lease, the reserve, the wait? |
//! | [answers] | what does the caller hear when the key is busy? |
//! | [http] | how does an API lock a request, or one route? |
//! | [batches] | how are SQS, Kinesis and DynamoDB Streams worked on, a lock for each record? |
//! | [scheduled] | how does a scheduled job run once? |
//! | [losing] | what does a lost lease mean, and what has a handler to do about it? |
//! | [fencing] | how are writes made that a stale holder can't make? |
//! | [state] | how does one holder leave something for the next? |
//! | [holds] | what else shapes a hold: its limits, its end, its key? |
//! | [spawned] | what about streams, and tasks that outlive the handler? |
//! | [order] | what about two keys, and who is next? |
//! | [by_hand] | what if a layer does not fit? |
//! | [testing] | how do I test my handler? |
//! | [rollout] | how does it get into production without a surprise? |
//!
//! The examples of this guide are compiled and, where they need no AWS, run by this crate's tests, with the features
//! `testing` and `dynamodb`. Nothing in it has been run on AWS itself. Where it rests on a fact of AWS's, it names the page.
//!
//! # Words
//!
//! | word | means |
//! |---|---|
//! | key | the text that names what is locked |
//! | lease | the right to work on a key until a moment; it is renewed while the work lasts |
//! | holder, contender | who has a lease; who wants one |
//! | keeper | what takes, renews and frees leases for a handler: the extension, a process of its own, or a thread |
//! | fencing token | a number that each lease on a key has; the next holder's is higher |

#[doc = include_str!("why.md")]
pub mod why {}

#[doc = include_str!("no_lock.md")]
pub mod no_lock {}

#[doc = include_str!("wrap.md")]
pub mod wrap {}

#[doc = include_str!("keys.md")]
pub mod keys {}

#[doc = include_str!("times.md")]
pub mod times {}

#[doc = include_str!("answers.md")]
pub mod answers {}

#[doc = include_str!("http.md")]
pub mod http {}

#[doc = include_str!("batches.md")]
pub mod batches {}

#[doc = include_str!("scheduled.md")]
pub mod scheduled {}

#[doc = include_str!("losing.md")]
pub mod losing {}

#[doc = include_str!("fencing.md")]
pub mod fencing {}

#[doc = include_str!("state.md")]
pub mod state {}

#[doc = include_str!("holds.md")]
pub mod holds {}

#[doc = include_str!("spawned.md")]
pub mod spawned {}

#[doc = include_str!("order.md")]
pub mod order {}

#[doc = include_str!("by_hand.md")]
pub mod by_hand {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("rollout.md")]
pub mod rollout {}
