//! The handler stands still for two leases: the keeper goes on without it.

use crate::cell::cells;

cells! { Handler Stop:
    before_begin => BeforeBegin, [], Absent, FirstTry;
    begin_sent => BeginSent, [], Absent, FirstTry;
    acquire_sent_not_written => AcquireSent, [], Absent, Freed("finished");
    written_not_answered => Written, [], Held, Freed("finished");
    granted_unread => Unread, [], Held, Freed("finished");
    handler_running => Running, [], Held, Freed("finished");
    renewal_in_flight => Renewal, [], Held, Freed("finished");
    response_posted_release_not_sent => Posted, [], Held, Freed("finished");
    release_in_flight => Releasing, [], Held, Freed("finished");
    released_next_not_called => Released, [], Free, FirstTry;
    frozen => Frozen, [], Free, FirstTry;
}
