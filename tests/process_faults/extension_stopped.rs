//! The extension stands still for two leases: nobody renews, so the next one takes over, and the handler learns of it.

use crate::cell::cells;

cells! { Extension Stop:
    before_begin => BeforeBegin, [], Absent, FirstTry;
    begin_sent => BeginSent, [], Absent, FirstTry;
    acquire_sent_not_written => AcquireSent, [], Absent, Observed;
    written_not_answered => Written, [], Held, Observed;
    granted_unread => Unread, ["LeaseLost"], Held, Observed;
    handler_running => Running, ["LeaseLost"], Held, Observed;
    renewal_in_flight => Renewal, ["LeaseLost"], Held, Observed;
    response_posted_release_not_sent => Posted, [], Held, Observed;
    release_in_flight => Releasing, [], Held, Freed("finished");
    released_next_not_called => Released, [], Free, FirstTry;
    frozen => Frozen, [], Free, FirstTry;
}
