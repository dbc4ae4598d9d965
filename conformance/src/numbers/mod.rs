//! Random operands in random layouts, and what a kernel makes of them: the kernels written down a second time, by a walk
//! over indices, one by one.

mod buffer;
mod dice;
mod problem;
mod reference;

pub use buffer::HostBuffer;
pub(crate) use dice::Dice;
pub(crate) use problem::{COMPUTING, DTYPES, Problem};
pub(crate) use reference::{Bits, Numbers};
