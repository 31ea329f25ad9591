//! The extension aborts: as if it were killed.

use crate::cell::cells;

cells! { Extension Abort:
    before_begin => BeforeBegin, Some("Extension.Crash"), Absent, FirstTry;
    begin_sent => BeginSent, Some("Extension.Crash"), Absent, FirstTry;
    acquire_sent_not_written => AcquireSent, Some("Extension.Crash"), Absent, Journal;
    written_not_answered => Written, Some("Extension.Crash"), Held, Journal;
    granted_unread => Unread, Some("Extension.Crash"), Held, Journal;
    handler_running => Running, Some("Extension.Crash"), Held, Journal;
    renewal_in_flight => Renewal, Some("Extension.Crash"), Held, Journal;
    response_posted_release_not_sent => Posted, None, Held, Journal;
    release_in_flight => Releasing, None, Held, FirstTry;
    released_next_not_called => Released, None, Free, FirstTry;
    frozen => Frozen, None, Free, FirstTry;
}
