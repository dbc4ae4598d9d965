//! One mailbox frame through [`Words`]: typed access to its words, publish, snapshot.
