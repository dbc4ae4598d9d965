//! Cases that drive a device through the trait alone.

mod bench;
mod callables;
mod launch;
mod lost;
mod memory;
mod order;
mod prepare;
mod results;
mod script;

pub(crate) use bench::{Bench, VectorAdd, diagnostic, storage};
pub use script::{Ending, Script, Step};

use laneway_core::chip::RunDescriptor;
use laneway_core::ids::PipelineSlot;
use laneway_core::wire::CallConfig;

use crate::case::Case;

pub(crate) const ZERO: RunDescriptor = RunDescriptor::Direct(PipelineSlot::Zero);
pub(crate) const ONE: RunDescriptor = RunDescriptor::Direct(PipelineSlot::One);
pub(crate) const PLAIN: CallConfig = CallConfig::ZERO;

pub(crate) fn cases() -> Vec<Case> {
    let mut all = prepare::cases();
    all.extend(callables::cases());
    all.extend(launch::cases());
    all.extend(order::cases());
    all.extend(lost::cases());
    all.extend(memory::cases());
    all.extend(results::cases());
    all.extend(script::cases());
    all
}
