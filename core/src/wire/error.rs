//! What can be wrong with bytes.

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

/// What can be wrong with a tensor of either kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorFault {
    /// Rank outside 1..=5.
    #[error("ndims is {ndims}, must be 1..=5")]
    Rank {
        /// The rank found.
        ndims: u64,
    },
    /// Shape and strides (or offsets, or an order) of different rank.
    #[error("shape has {shape} dimensions and {what} {other}")]
    RankMismatch {
        /// Dimensions of the shape.
        shape: u64,
        /// What else was given.
        what: &'static str,
        /// Its dimensions.
        other: u64,
    },
    /// A dtype code that stands for nothing.
    #[error("dtype is {code}, must be 0..=14")]
    Dtype {
        /// The code found.
        code: u32,
    },
    /// A flag that is neither 0 nor 1.
    #[error("{field} is {value}, must be 0 or 1")]
    Flag {
        /// The flag.
        field: &'static str,
        /// What it holds.
        value: u8,
    },
    /// An address space that does not exist.
    #[error("address_space is {value}, must be 0 (HOST) or 1 (DEVICE)")]
    AddressSpace {
        /// The code found.
        value: u8,
    },
    /// A stride of 0.
    #[error("strides[{dim}] is 0")]
    ZeroStride {
        /// The dimension.
        dim: usize,
    },
    /// A stride that does not fit its 32 bits.
    #[error("strides[{dim}] would be {stride}, at most {} fit", u32::MAX)]
    StrideTooLarge {
        /// The dimension.
        dim: usize,
        /// The stride that the shape asks for, in elements.
        stride: u64,
    },
    /// Claimed to be contiguous, but the strides say otherwise.
    #[error("is_contiguous is 1 but the strides are not row-major for the shape")]
    NotRowMajor,
    /// A declared extent that is not that of shape and strides.
    #[error("extent_elem is {declared}, shape and strides give {actual}")]
    Extent {
        /// As declared, in elements.
        declared: u64,
        /// As computed, in elements.
        actual: u64,
    },
    /// Shape and strides that reach further than 64 bits can count.
    #[error("shape and strides span more than 2^64 elements")]
    ExtentOverflow,
    /// The tensor leaves its buffer.
    #[error(
        "{extent} elements of {element_bytes} bytes from byte {offset_bytes} on leave the buffer of {buffer_bytes} bytes"
    )]
    OutOfBuffer {
        /// Where the tensor starts, in bytes (saturated).
        offset_bytes: u64,
        /// How far it reaches, in elements.
        extent: u64,
        /// Bytes of an element.
        element_bytes: u32,
        /// Size of the buffer in bytes.
        buffer_bytes: u64,
    },
    /// A buffer that runs over the end of the address space.
    #[error("buffer at {addr:#x} of {bytes} bytes runs over the end of the address space")]
    AddressWraps {
        /// Where it starts.
        addr: u64,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A dimension of 0 where none is legal.
    #[error("shapes[{dim}] is 0: a tensor without elements is legal in protocol 2 only")]
    Empty {
        /// The dimension.
        dim: usize,
    },
    /// An entry past the rank that is not zero.
    #[error("{field}[{dim}] is {value}, but the tensor has {ndims} dimensions: must be 0")]
    PastRank {
        /// `shapes` or `strides`.
        field: &'static str,
        /// The entry.
        dim: usize,
        /// What it holds.
        value: u32,
        /// The rank.
        ndims: u32,
    },
    /// Reserved bytes that are not zero.
    #[error("reserved bytes after dtype are {value:#x}, must be 0")]
    Reserved {
        /// The three bytes as a number.
        value: u32,
    },
    /// The buffer behind a self-describing tensor.
    #[error("buffer: {0}")]
    Buffer(#[from] BufferFault),
}

/// What can be wrong with a buffer descriptor: one variant for each gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BufferFault {
    /// Not a descriptor at all.
    #[error("magic is {found:#06x}, must be 0x5342")]
    Magic {
        /// What stands in its place.
        found: u16,
    },
    /// An address space that does not exist.
    #[error("address_space is {value}, must be 0 (HOST) or 1 (DEVICE)")]
    AddressSpace {
        /// The code found.
        value: u8,
    },
    /// An access that does not exist.
    #[error("access is {value}, must be 0 (READ), 1 (WRITE) or 2 (READWRITE)")]
    Access {
        /// The code found.
        value: u8,
    },
    /// A backend that does not exist.
    #[error("backend is {value}, must be 0..=5")]
    Backend {
        /// The code found.
        value: u8,
    },
    /// A backend that has no memory in this space.
    #[error("backend {backend:?} has no memory in {space:?} space")]
    BackendSpace {
        /// The backend.
        backend: super::Backend,
        /// The address space.
        space: super::AddressSpace,
    },
    /// Generation 0 names no buffer.
    #[error("generation is 0, which names no buffer")]
    Generation,
    /// The reserved half-word that is not zero.
    #[error("reserved half-word at 54 is {value:#06x}, must be 0")]
    Reserved {
        /// What it holds.
        value: u16,
    },
    /// A body longer than its field.
    #[error("body_len is {len}, at most 32 fit")]
    BodyTooLong {
        /// The length found.
        len: u16,
    },
    /// An address backend whose body is no address.
    #[error("body_len is {len}, backend {backend:?} needs exactly 8 bytes of address")]
    AddressLength {
        /// The length found.
        len: u16,
        /// The backend.
        backend: super::Backend,
    },
    /// An address backend with the null address.
    #[error("address is 0")]
    NullAddress,
    /// A buffer that runs over the end of the address space.
    #[error("buffer at {addr:#x} of {bytes} bytes runs over the end of the address space")]
    AddressWraps {
        /// Where it starts.
        addr: u64,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A shared-memory name without a character.
    #[error("shared-memory name is empty")]
    NameEmpty,
    /// A shared-memory name with a byte that may not stand in it.
    #[error("shared-memory name has byte {byte:#04x} at {at}, must be printable ASCII without '/'")]
    NameByte {
        /// Position of the byte.
        at: usize,
        /// The byte.
        byte: u8,
    },
    /// A copy-on-write buffer that grants more than reading.
    #[error("backend ForkCow grants Read only, access is {access:?}")]
    CowAccess {
        /// The access found.
        access: super::Access,
    },
    /// Bytes past the body's length that are not zero.
    #[error("body byte {at} is {byte:#04x}, past the body's length: must be 0")]
    BodyPadding {
        /// Position in the body.
        at: usize,
        /// The byte.
        byte: u8,
    },
}
