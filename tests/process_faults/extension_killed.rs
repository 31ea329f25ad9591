//! The extension is killed: Lambda resets the environment, and the next extension reads the journal.

use crate::cell::cells;

cells! { Extension Kill:
    before_begin => BeforeBegin, ["Extension.Crash"], Absent, FirstTry;
    begin_sent => BeginSent, ["Extension.Crash"], Absent, FirstTry;
    acquire_sent_not_written => AcquireSent, ["Extension.Crash", "KeeperGone"], Absent, Journal;
    written_not_answered => Written, ["Extension.Crash", "KeeperGone"], Held, Journal;
    granted_unread => Unread, ["Extension.Crash"], Held, Journal;
    handler_running => Running, ["Extension.Crash", "KeeperGone"], Held, Journal;
    renewal_in_flight => Renewal, ["Extension.Crash", "KeeperGone"], Held, Journal;
    response_posted_release_not_sent => Posted, [], Held, Journal;
    release_in_flight => Releasing, [], Held, FirstTry;
    released_next_not_called => Released, [], Free, FirstTry;
    frozen => Frozen, [], Free, FirstTry;
}
