//! Processes, shared memory, waiting and the Worker that drives laneway-core on Linux.
