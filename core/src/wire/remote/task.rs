//! A task between hosts: digest, config, tensors with their sidecars, scalars, inline bytes.

use static_assertions::const_assert_eq;
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::caps;
use super::config::RemoteConfig;
use super::field::Field;
use super::sidecar::RemoteTensorDesc;
use crate::wire::cursor::Cursor;
use crate::wire::writer::Writer;
use crate::wire::{
    Access, AddressSpace, Backend, BufferDescriptor, BufferIdentity, BufferRange, Digest, Dtype, MAX_RANK, Tensor,
    TensorFault, WireError, num,
};

/// A judged task. Config and arguments borrow from the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteTask<'a> {
    /// The callable.
    pub digest: Digest,
    /// Its settings.
    pub config: RemoteConfig<'a>,
    /// Its arguments.
    pub args: RemoteArgs<'a>,
}

impl<'a> Field<'a> for RemoteTask<'a> {
    fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
        Ok(Self {
            digest: Field::read(cursor, "digest")?,
            config: Field::read(cursor, "config")?,
            args: Field::read(cursor, "arguments")?,
        })
    }

    fn write(&self, out: &mut Writer<'_>, field: &'static str) -> Result<(), WireError> {
        self.digest.write(out, field)?;
        self.config.write(out, field)?;
        self.args.write(out, field)
    }
}

/// The arguments of a task as they stand in a payload, judged. Tensors and sidecars are read out by iterating.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RemoteArgs<'a> {
    tensors: u32,
    tensor_bytes: &'a [u8],
    sidecar_bytes: &'a [u8],
    scalars: &'a [U64],
    inline: &'a [u8],
}

impl<'a> RemoteArgs<'a> {
    /// The tensors, in order, their buffers of backend `RemoteSidecar`.
    pub fn tensors(&self) -> impl Iterator<Item = Tensor> + 'a {
        // Judged when the value was made: no read fails.
        let mut cursor = Cursor::new("tensor", self.tensor_bytes);
        (0..self.tensors).map_while(move |_| read_tensor(&mut cursor).ok()?.ok())
    }

    /// What it takes to reach each tensor's bytes; `None` = it brings none.
    pub fn sidecars(&self) -> impl Iterator<Item = Option<RemoteTensorDesc>> + 'a {
        // Judged when the value was made: no read fails.
        let mut cursor = Cursor::new("sidecar", self.sidecar_bytes);
        (0..self.tensors).map_while(move |_| read_sidecar(&mut cursor).ok())
    }

    /// The scalars, in order.
    pub fn scalars(&self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.scalars.iter().map(|scalar| scalar.get())
    }

    /// The bytes that inline sidecars point into.
    #[must_use]
    pub const fn inline(&self) -> &'a [u8] {
        self.inline
    }

    /// Number of tensors.
    #[must_use]
    pub const fn tensor_count(&self) -> u32 {
        self.tensors
    }
}

impl core::fmt::Debug for RemoteArgs<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RemoteArgs")
            .field("tensors", &self.tensors)
            .field("scalars", &self.scalars.len())
            .field("inline_bytes", &self.inline.len())
            .finish()
    }
}

impl<'a> Field<'a> for RemoteArgs<'a> {
    fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
        let (tensors, scalars) = (cursor.u32()?, cursor.u32()?);
        if tensors > caps::TENSORS || scalars > caps::SCALARS {
            return Err(WireError::ArgCounts {
                tensors: tensors.into(),
                scalars: scalars.into(),
                max_tensors: caps::TENSORS,
                max_scalars: caps::SCALARS,
                capacity: num::wide(cursor.left()),
            });
        }
        let tensor_bytes = cursor.measured(|cursor| {
            (0..num::index(tensors)).try_for_each(|index| {
                read_tensor(cursor)?.map(|_| ()).map_err(|fault| WireError::Argument { index, fault })
            })
        })?;
        let sidecar_bytes =
            cursor.measured(|cursor| (0..tensors).try_for_each(|_| read_sidecar(cursor).map(|_| ())))?;
        let scalars = cursor.take(num::index(scalars).saturating_mul(8))?;
        let scalars = <[U64]>::ref_from_bytes(scalars).unwrap_or_default();
        let inline = cursor.blob("inline bytes", caps::INLINE)?;
        let args = Self { tensors, tensor_bytes, sidecar_bytes, scalars, inline };
        let inline_bytes = u32::try_from(inline.len()).unwrap_or(0);
        args.sidecars().flatten().try_for_each(|sidecar| sidecar.check(inline_bytes))?;
        Ok(args)
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.u32(self.tensors)?;
        out.u32(u32::try_from(self.scalars.len()).unwrap_or(u32::MAX))?;
        out.bytes(self.tensor_bytes)?;
        out.bytes(self.sidecar_bytes)?;
        self.scalars.iter().try_for_each(|scalar| out.u64(scalar.get()))?;
        out.blob("inline bytes", self.inline, caps::INLINE)
    }
}

/// What the arguments of a task are made of, to be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteArgsParts<'a> {
    /// The tensors: buffers of backend `RemoteSidecar`, views that start at byte 0.
    pub tensors: &'a [Tensor],
    /// What it takes to reach each; as many as tensors.
    pub sidecars: &'a [Option<RemoteTensorDesc>],
    /// The scalars.
    pub scalars: &'a [u64],
    /// The bytes that inline sidecars point into.
    pub inline: &'a [u8],
}

/// A task to be written.
#[derive(Clone, Copy, Debug)]
pub struct RemoteTaskParts<'a> {
    /// The callable.
    pub digest: Digest,
    /// Its settings.
    pub config: RemoteConfig<'a>,
    /// Its arguments.
    pub args: RemoteArgsParts<'a>,
}

impl RemoteTaskParts<'_> {
    /// Writes the payload of a TASK frame and returns its length in bytes.
    ///
    /// # Errors
    /// A count over its cap, sidecars that do not match the tensors, a tensor that cannot travel, or an `out` that is
    /// too small.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut out = Writer::new("TASK payload", out);
        self.digest.write(&mut out, "digest")?;
        self.config.write(&mut out, "config")?;
        self.args.write(&mut out)?;
        Ok(out.len())
    }
}

impl RemoteArgsParts<'_> {
    fn write(&self, out: &mut Writer<'_>) -> Result<(), WireError> {
        let count = |field, len: usize, max: u32| {
            u32::try_from(len).ok().filter(|count| *count <= max).ok_or(WireError::TooLong {
                field,
                len: num::wide(len),
                max: max.into(),
            })
        };
        if self.sidecars.len() != self.tensors.len() {
            let exact = i128::from(num::wide(self.tensors.len()));
            let value = num::wide(self.sidecars.len()).into();
            return Err(WireError::OutOfRange { field: "number of sidecars", value, min: exact, max: exact });
        }
        out.u32(count("number of tensors", self.tensors.len(), caps::TENSORS)?)?;
        out.u32(count("number of scalars", self.scalars.len(), caps::SCALARS)?)?;
        self.tensors.iter().try_for_each(|tensor| write_tensor(tensor, out))?;
        let inline_bytes = count("inline bytes", self.inline.len(), caps::INLINE)?;
        for sidecar in self.sidecars {
            out.bytes(&[u8::from(sidecar.is_some())])?;
            if let Some(sidecar) = sidecar {
                sidecar.check(inline_bytes)?;
                sidecar.write(out, "sidecar")?;
            }
        }
        self.scalars.iter().try_for_each(|scalar| out.u64(*scalar))?;
        out.blob("inline bytes", self.inline, caps::INLINE)
    }
}

/// The part of a tensor in front of its shape, not yet judged.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RawTensorHead {
    pub(crate) owner: [u8; 8],
    pub(crate) buffer_id: U64,
    pub(crate) generation: U32,
    pub(crate) space: u8,
    pub(crate) access: u8,
    pub(crate) backend: u8,
    pub(crate) nbytes: U64,
    pub(crate) owner_path: U32,
    pub(crate) body_len: U32,
    pub(crate) byte_offset: U64,
    pub(crate) ndims: U32,
}

const_assert_eq!(size_of::<RawTensorHead>(), 51);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, owner), 0);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, buffer_id), 8);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, generation), 16);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, space), 20);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, access), 21);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, backend), 22);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, nbytes), 23);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, owner_path), 31);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, body_len), 35);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, byte_offset), 39);
const_assert_eq!(core::mem::offset_of!(RawTensorHead, ndims), 47);

/// Outer error: the bytes. Inner error: the tensor that they make.
fn read_tensor(cursor: &mut Cursor<'_>) -> Result<Result<Tensor, TensorFault>, WireError> {
    let code = |field, value: u8, known| WireError::UnknownCode { field, value: value.into(), known };
    let head: RawTensorHead = zerocopy::transmute!(*cursor.array::<{ size_of::<RawTensorHead>() }>()?);
    let space = AddressSpace::from_code(head.space)
        .ok_or_else(|| code("tensor address space", head.space, "0 HOST, 1 DEVICE"))?;
    let access = Access::from_code(head.access)
        .ok_or_else(|| code("tensor access", head.access, "0 READ, 1 WRITE, 2 READWRITE"))?;
    if head.backend != Backend::RemoteSidecar.code() {
        return Err(code("tensor backend", head.backend, "3 REMOTE_SIDECAR"));
    }
    if head.body_len.get() != 0 {
        return Err(WireError::NotZero { field: "tensor body_len", value: head.body_len.get().into() });
    }
    if head.byte_offset.get() != 0 {
        return Err(WireError::NotZero { field: "tensor byte_offset", value: head.byte_offset.get() });
    }
    let ndims = head.ndims.get();
    let rank = num::index(ndims);
    let (mut shape, mut strides) = ([0; MAX_RANK], [0; MAX_RANK]);
    let (Some(shape), Some(strides)) = (shape.get_mut(..rank), strides.get_mut(..rank)) else {
        return Ok(Err(TensorFault::Rank { ndims: ndims.into() }));
    };
    for entry in shape.iter_mut().chain(strides.iter_mut()) {
        *entry = cursor.u32()?;
    }
    let dtype = cursor.u32()?;
    let Some(dtype) = u8::try_from(dtype).ok().and_then(Dtype::from_code) else {
        return Ok(Err(TensorFault::Dtype { code: dtype }));
    };
    let identity =
        BufferIdentity { owner: head.owner, buffer_id: head.buffer_id.get(), generation: head.generation.get() };
    let range = BufferRange { space, access, nbytes: head.nbytes.get(), owner_path: head.owner_path.get() };
    Ok(BufferDescriptor::remote(identity, range)
        .map_err(TensorFault::from)
        .and_then(|buffer| Tensor::new(buffer, 0, dtype, shape, strides)))
}

fn write_tensor(tensor: &Tensor, out: &mut Writer<'_>) -> Result<(), WireError> {
    let buffer = tensor.buffer();
    if buffer.backend() != Backend::RemoteSidecar {
        let value = buffer.backend().code().into();
        return Err(WireError::UnknownCode { field: "tensor backend", value, known: "3 REMOTE_SIDECAR" });
    }
    if tensor.byte_offset() != 0 {
        return Err(WireError::NotZero { field: "tensor byte_offset", value: tensor.byte_offset() });
    }
    let (identity, range) = (buffer.identity(), buffer.range());
    let head = RawTensorHead {
        owner: identity.owner,
        buffer_id: identity.buffer_id.into(),
        generation: identity.generation.into(),
        space: range.space.code(),
        access: range.access.code(),
        backend: Backend::RemoteSidecar.code(),
        nbytes: range.nbytes.into(),
        owner_path: range.owner_path.into(),
        body_len: 0.into(),
        byte_offset: 0.into(),
        ndims: u32::try_from(tensor.ndims()).unwrap_or(0).into(),
    };
    out.bytes(head.as_bytes())?;
    tensor.shape().iter().chain(tensor.strides()).try_for_each(|entry| out.u32(*entry))?;
    out.u32(tensor.dtype().code().into())
}

fn read_sidecar(cursor: &mut Cursor<'_>) -> Result<Option<RemoteTensorDesc>, WireError> {
    match cursor.u8()? {
        0 => Ok(None),
        1 => Field::read(cursor, "sidecar").map(Some),
        value => Err(WireError::OutOfRange { field: "sidecar present", value: value.into(), min: 0, max: 1 }),
    }
}
