//! The extension stands still for two leases: nobody renews, so the next one takes over, and the handler learns of it.

use crate::cell::cells;

cells! { Extension Stop:
    before_begin => BeforeBegin, None, Absent, FirstTry;
    begin_sent => BeginSent, None, Absent, FirstTry;
    acquire_sent_not_written => AcquireSent, None, Absent, Observed;
    written_not_answered => Written, None, Held, Observed;
    granted_unread => Unread, Some("LeaseLost"), Held, Observed;
    handler_running => Running, Some("LeaseLost"), Held, Observed;
    renewal_in_flight => Renewal, Some("LeaseLost"), Held, Observed;
    response_posted_release_not_sent => Posted, None, Held, Observed;
    release_in_flight => Releasing, None, Held, Freed("finished");
    released_next_not_called => Released, None, Free, FirstTry;
    frozen => Frozen, None, Free, FirstTry;
}
