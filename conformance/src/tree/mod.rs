//! Cases that build whole trees of workers: real processes, with chips of the backend in them or with host functions alone.

mod callables;
mod chips;
mod closing;
mod controls;
mod deaths;
mod errors;
mod graphs;
mod grove;
mod guest;
mod kinds;
mod looking;
mod memory;
mod nested;
mod runs;
mod signal;

pub(crate) use grove::Grove;

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    let mut all = graphs::cases();
    all.extend(runs::cases());
    all.extend(errors::cases());
    all.extend(callables::cases());
    all.extend(nested::cases());
    all.extend(chips::cases());
    all.extend(memory::cases());
    all.extend(controls::cases());
    all.extend(deaths::cases());
    all.extend(closing::cases());
    all.extend(kinds::cases());
    all.extend(looking::cases());
    all.extend(guest::cases());
    all
}
