//! One level's scheduler: runs and admission, slots, dependencies, rings and scopes, queues.
