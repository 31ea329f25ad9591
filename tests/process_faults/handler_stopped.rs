//! The handler stands still for two leases: the keeper goes on without it.

use crate::cell::cells;

cells! { Handler Stop:
    before_begin => BeforeBegin, None, Absent, FirstTry;
    begin_sent => BeginSent, None, Absent, FirstTry;
    acquire_sent_not_written => AcquireSent, None, Absent, Freed("finished");
    written_not_answered => Written, None, Held, Freed("finished");
    granted_unread => Unread, None, Held, Freed("finished");
    handler_running => Running, None, Held, Freed("finished");
    renewal_in_flight => Renewal, None, Held, Freed("finished");
    response_posted_release_not_sent => Posted, None, Held, Freed("finished");
    release_in_flight => Releasing, None, Held, Freed("finished");
    released_next_not_called => Released, None, Free, FirstTry;
    frozen => Frozen, None, Free, FirstTry;
}
