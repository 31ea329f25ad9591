//! The scenes, in the order in which they are told.

mod ends;
mod sharing;
mod thaw;

use std::future::Future;
use std::pin::Pin;

use super::stack::Role;
use super::stage::{Failed, Stage};

/// What a scene shows when it went well.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) told: String,
    /// Milliseconds from A's end, as it was told here, until its key was seen to be free.
    pub(super) freed_ms: u64,
    /// Milliseconds from there until B was seen to hold it; of a thaw, what B took around its work.
    pub(super) next_ms: u64,
}

type Play = for<'a> fn(&'a Stage<'a>) -> Pin<Box<dyn Future<Output = Result<Shown, Failed>> + 'a>>;

/// One promise.
#[derive(Clone, Copy)]
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) expected: &'static str,
    /// Whether it waits for so long that it is played beside the others and told last.
    pub(super) long: bool,
    /// Whose time it takes, in seconds, for the estimate.
    pub(super) takes: &'static [(Role, f64)],
    pub(super) play: Play,
}

pub(super) static ALL: [Scene; 7] = [
    Scene {
        name: "contend",
        title: "Two invocations on one key run one after the other",
        expected: "B works once A has given the key back, with a higher token",
        long: false,
        takes: &[(Role::Worker, 1.7), (Role::Worker, 2.0)],
        play: |stage| Box::pin(sharing::contend(stage)),
    },
    Scene {
        name: "spin",
        title: "A handler that spins for three leases without yielding keeps its lock while a second one waits",
        expected: "the lease is renewed by the extension, and B waits until A is done",
        long: false,
        takes: &[(Role::Spinner, 6.6), (Role::Worker, 7.2)],
        play: |stage| Box::pin(sharing::spin(stage)),
    },
    Scene {
        name: "abort",
        title: "A handler that aborts its process frees its lock",
        expected: "the extension frees the key at once, not the end of the lease",
        long: false,
        takes: &[(Role::Worker, 3.2), (Role::Worker, 4.0)],
        play: |stage| Box::pin(ends::abort(stage)),
    },
    Scene {
        name: "out-of-memory",
        title: "A handler that takes all memory and is killed frees its lock",
        expected: "the extension frees the key at once, not the end of the lease",
        long: false,
        takes: &[(Role::Small, 4.0), (Role::Worker, 5.0)],
        play: |stage| Box::pin(ends::out_of_memory(stage)),
    },
    Scene {
        name: "timeout",
        title: "A handler that runs into the function's timeout frees its lock",
        expected: "the extension frees the key at once, not the end of the lease",
        long: false,
        takes: &[(Role::Short, 6.0), (Role::Worker, 7.5)],
        play: |stage| Box::pin(ends::timeout(stage)),
    },
    Scene {
        name: "sigterm-ignored",
        title: "A handler that times out and ignores SIGTERM frees its lock when it is killed",
        expected: "the extension frees the key when the process is gone, not the end of the lease",
        long: false,
        takes: &[(Role::Short, 6.0), (Role::Worker, 8.0)],
        play: |stage| Box::pin(ends::sigterm_ignored(stage)),
    },
    Scene {
        name: "thaw",
        title: "An environment that was frozen with an old connection locks again (played beside the others, told last)",
        expected: "A's key is free soon after its response; B, after the thaw, is served in the same environment",
        long: true,
        takes: &[(Role::Idle, 0.5), (Role::Idle, 0.5)],
        play: |stage| Box::pin(thaw::thaw(stage)),
    },
];
