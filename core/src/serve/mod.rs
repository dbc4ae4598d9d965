//! The child's half of a mailbox: staging order, activation, run lane, control, stop.
