//! The handler aborts: as if it were killed.

use crate::cell::cells;

cells! { Handler Abort:
    before_begin => BeforeBegin, ["Runtime.ExitError"], Absent, FirstTry;
    begin_sent => BeginSent, ["Runtime.ExitError"], Absent, FirstTry;
    acquire_sent_not_written => AcquireSent, ["Runtime.ExitError"], Absent, FirstTry;
    written_not_answered => Written, ["Runtime.ExitError"], Held, Freed("crash");
    granted_unread => Unread, ["Runtime.ExitError"], Held, Freed("crash");
    handler_running => Running, ["Runtime.ExitError"], Held, Freed("crash");
    renewal_in_flight => Renewal, ["Runtime.ExitError"], Held, Freed("crash");
    response_posted_release_not_sent => Posted, [], Held, Freed("crash");
    release_in_flight => Releasing, [], Held, Freed("finished");
    released_next_not_called => Released, [], Free, FirstTry;
    frozen => Frozen, [], Free, FirstTry;
}
