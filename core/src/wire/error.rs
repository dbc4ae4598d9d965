//! What can be wrong with bytes.

use super::{BufferFault, TensorFault};

/// A byte sequence that is not what it claims to be. Whoever wrote the bytes is to blame, or the caller that built
/// the value; each variant names the field, the value found and what would have been legal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end before the structure does.
    #[error("{what} has {have} bytes, {need} are needed")]
    Short {
        /// The structure.
        what: &'static str,
        /// Bytes there are.
        have: u64,
        /// Bytes there must be.
        need: u64,
    },
    /// The bytes go on after the structure has ended.
    #[error("{what} is followed by {extra} bytes that belong to nothing")]
    Trailing {
        /// The structure.
        what: &'static str,
        /// Bytes too many.
        extra: u64,
    },
    /// Private memory handed to a decoder is not aligned for what it holds.
    #[error("{what} must start at a multiple of {align} bytes")]
    Misaligned {
        /// The structure.
        what: &'static str,
        /// Required alignment in bytes.
        align: u64,
    },
    /// A number outside its range.
    #[error("{field} is {value}, must be {min}..={max}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The number found.
        value: i128,
        /// Smallest legal number.
        min: i128,
        /// Largest legal number.
        max: i128,
    },
    /// A code that stands for nothing.
    #[error("{field} is {value}, known are {known}")]
    UnknownCode {
        /// The field.
        field: &'static str,
        /// The code found.
        value: i128,
        /// The codes that exist, for a person to read.
        known: &'static str,
    },
    /// A reserved field that is not zero.
    #[error("{field} is {value:#x}, must be 0")]
    NotZero {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: u64,
    },
    /// A field that must name something holds 0.
    #[error("{field} is 0, which stands for none")]
    Zero {
        /// The field.
        field: &'static str,
    },
    /// A text field without its terminating NUL.
    #[error("{field} has no NUL in its {capacity} bytes")]
    Unterminated {
        /// The field.
        field: &'static str,
        /// Size of the field in bytes, NUL included.
        capacity: u64,
    },
    /// A text that is longer than its field.
    #[error("{field} has {len} bytes, at most {max} fit")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Bytes given.
        len: u64,
        /// Bytes that fit.
        max: u64,
    },
    /// A text with a byte that may not stand in it.
    #[error("{field} has an illegal byte at {at}, must be {must}")]
    Text {
        /// The field.
        field: &'static str,
        /// Position of the first illegal byte.
        at: u64,
        /// What the text must be.
        must: &'static str,
    },
    /// A ring override outside its range.
    #[error(
        "{field}[{ring}] is {value}, must be 0 (unset) or {min}..={max}{}",
        if *power_of_two { " and a power of two" } else { "" }
    )]
    Ring {
        /// The field.
        field: &'static str,
        /// Which of the four rings.
        ring: u32,
        /// The override found.
        value: u64,
        /// Smallest legal override.
        min: u64,
        /// Largest legal override.
        max: u64,
        /// Whether it must be a power of two as well.
        power_of_two: bool,
    },
    /// A diagnostic config that does not say where its output goes.
    #[error("{enable} is {value}, a diagnostic run needs an output_prefix, which is empty")]
    NoOutputPrefix {
        /// The enable that is set.
        enable: &'static str,
        /// Its value.
        value: i32,
    },
    /// Counts of an argument list that are negative or over their caps (W-7).
    #[error(
        "argument list declares {tensors} tensors and {scalars} scalars, at most {max_tensors} and {max_scalars} are \
         legal (capacity {capacity} bytes)"
    )]
    ArgCounts {
        /// Declared tensors.
        tensors: i64,
        /// Declared scalars.
        scalars: i64,
        /// Cap on tensors.
        max_tensors: u32,
        /// Cap on scalars.
        max_scalars: u32,
        /// Bytes there are for the list.
        capacity: u64,
    },
    /// An argument list that is larger than the space that it stands in (W-7).
    #[error("argument list of {tensors} tensors and {scalars} scalars takes {need} bytes, the capacity is {capacity}")]
    ArgSize {
        /// Declared tensors.
        tensors: u32,
        /// Declared scalars.
        scalars: u32,
        /// Bytes that these counts take.
        need: u64,
        /// Bytes there are.
        capacity: u64,
    },
    /// A tensor outside any argument list.
    #[error("tensor: {0}")]
    Tensor(#[from] TensorFault),
    /// A tensor of an argument list.
    #[error("argument {index}: {fault}")]
    Argument {
        /// Position in the list.
        index: usize,
        /// What is wrong with it.
        fault: TensorFault,
    },
    /// A buffer descriptor outside any tensor.
    #[error("buffer descriptor: {0}")]
    Buffer(#[from] BufferFault),
    /// A frame of the other protocol.
    #[error("frame speaks protocol {found}, this side serves protocol {served}")]
    Protocol {
        /// What the frame's protocol word says.
        found: u64,
        /// What this side was started with.
        served: u64,
    },
    /// A pipeline slot that this frame cannot carry.
    #[error("pipeline slot {found} in a frame that carries {rule}")]
    Slot {
        /// The slot id in the trailer.
        found: u64,
        /// Which slots the frame carries.
        rule: super::SlotRule,
    },
    /// Lease and trailer of one frame name different things.
    #[error("{field}: lease says {lease}, trailer says {trailer}")]
    LeaseMismatch {
        /// The field that both carry.
        field: &'static str,
        /// As in the lease.
        lease: u64,
        /// As in the trailer.
        trailer: u64,
    },
    /// A control sub-command that does not exist. The child answers with this text and goes on serving.
    #[error("unknown control sub-command {value}")]
    UnknownCommand {
        /// The number at offset 8 of the base frame.
        value: u64,
    },
    /// A resource of a pipeline contract that is declared twice.
    #[error("pipeline contract declares {kind:?} more than once")]
    ResourceTwice {
        /// The resource.
        kind: super::ResourceKind,
    },
    /// Arena resources of a pipeline contract that differ in their number of copies.
    #[error(
        "pipeline contract gives {kind:?} {copies} copies and another arena resource {others}: they share one arena \
         bank and need the same number"
    )]
    ArenaCopies {
        /// The resource that differs.
        kind: super::ResourceKind,
        /// Its copies.
        copies: u32,
        /// Copies of the arena resource before it.
        others: u32,
    },
    /// Not the text form of a digest.
    #[error(
        "HASHID_FORMAT_INVALID: {len} bytes, first fault at byte {at}; must be sha256: and 64 lowercase hex digits"
    )]
    DigestFormat {
        /// Length of the text.
        len: u64,
        /// Position of the first byte that is wrong or missing.
        at: u64,
    },
    /// Two things that must not overlap do.
    #[error("{what} {a} and {b} overlap")]
    Overlap {
        /// What they are.
        what: &'static str,
        /// The first of them.
        a: usize,
        /// The second of them.
        b: usize,
    },
    /// A field of one core binary of a chip callable that is outside its range.
    #[error("child {index}: {field} is {value}, must be {min}..={max}")]
    Child {
        /// The child.
        index: usize,
        /// The field.
        field: &'static str,
        /// The number found.
        value: i128,
        /// Smallest legal number.
        min: i128,
        /// Largest legal number.
        max: i128,
    },
    /// A core binary of a chip callable that is not aligned.
    #[error("child {index}: offset is {offset}, must be a multiple of {align}")]
    ChildAlignment {
        /// The child.
        index: usize,
        /// Its offset in the storage.
        offset: u32,
        /// Required alignment in bytes.
        align: u32,
    },
    /// A part that does not lie inside the whole.
    #[error("{what} at {offset} with {len} bytes leaves the {limit} bytes that it must lie in")]
    Outside {
        /// The part.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// How long it is.
        len: u64,
        /// Size of the whole.
        limit: u64,
    },
}
