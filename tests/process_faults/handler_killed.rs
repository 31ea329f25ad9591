//! The handler is killed: its end of the socket closes, and the keeper frees what it held.

use crate::cell::cells;

cells! { Handler Kill:
    before_begin => BeforeBegin, Some("Runtime.ExitError"), Absent, FirstTry;
    begin_sent => BeginSent, Some("Runtime.ExitError"), Absent, FirstTry;
    acquire_sent_not_written => AcquireSent, Some("Runtime.ExitError"), Absent, FirstTry;
    written_not_answered => Written, Some("Runtime.ExitError"), Held, Freed("crash");
    granted_unread => Unread, Some("Runtime.ExitError"), Held, Freed("crash");
    handler_running => Running, Some("Runtime.ExitError"), Held, Freed("crash");
    renewal_in_flight => Renewal, Some("Runtime.ExitError"), Held, Freed("crash");
    response_posted_release_not_sent => Posted, None, Held, Freed("crash");
    release_in_flight => Releasing, None, Held, Freed("finished");
    released_next_not_called => Released, None, Free, FirstTry;
    frozen => Frozen, None, Free, FirstTry;
}
