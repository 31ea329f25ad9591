//! The protocol in a hostile, simulated world: many seeds hold, and every broken rule is noticed.
