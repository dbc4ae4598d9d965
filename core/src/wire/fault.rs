//! What can be wrong with a tensor and with the buffer behind it.

use super::{Access, AddressSpace, Backend};

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
        backend: Backend,
        /// The address space.
        space: AddressSpace,
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
        backend: Backend,
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
        access: Access,
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
