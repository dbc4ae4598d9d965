//! The parent's half of a mailbox: frame records, submit, activate, poll, poison.
