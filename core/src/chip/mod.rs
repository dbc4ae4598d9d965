//! The device-runtime trait and the phases of a native run.
