//! Scenarios that any laneway backend must pass.
