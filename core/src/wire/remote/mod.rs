//! Frames between hosts: a 40-byte header and a payload, over any ordered byte stream. Codec only, no connection.
//!
//! Decoders borrow from the payload and iterate; nothing is allocated, so a length that a peer sends can cost nothing
//! but an error. Every decoder refuses bytes that are left over.

mod bodies;
mod config;
mod control;
mod field;
pub(super) mod header;
mod messages;
pub(super) mod sidecar;
pub(super) mod task;

pub use bodies::{
    Alloc, AllocResult, CallableRef, ChipPayload, CopyRange, CopyTo, Export, ExportResult, Free, Import, ImportResult,
    Inline, PrepareRegister, Registry, ReleaseImport,
};
pub use config::RemoteConfig;
pub use control::{RemoteCommand, RemoteReply, RemoteRequest};
pub use field::{AccessBits, RemoteBuffer, RemoteSpace};
pub use header::{FrameHeader, FrameType, HEADER_BYTES, MAX_PAYLOAD_BYTES};
pub use messages::{Completion, Control, ControlReply, Hello, Payload, Version};
pub use sidecar::RemoteTensorDesc;
pub use task::{RemoteArgs, RemoteArgsParts, RemoteTask, RemoteTaskParts};

/// Caps of the codec, in bytes unless said otherwise.
pub mod caps {
    /// Any string without a cap of its own.
    pub const STRING: u32 = 1_024;
    /// Error message.
    pub const MESSAGE: u32 = 4_096;
    /// Tensors of a task, a number.
    pub const TENSORS: u32 = 4_096;
    /// Scalars of a task, a number.
    pub const SCALARS: u32 = 4_096;
    /// Inline payload of a task or a registration.
    pub const INLINE: u32 = 1_048_576;
    /// Transport profile.
    pub const PROFILE: u32 = 128;
    /// Transport and blob descriptors.
    pub const DESCRIPTOR: u32 = 4_096;
    /// Token of a staged blob.
    pub const TOKEN: u32 = 1_024;
    /// Body of a control or a reply, and payload of a registration: what a frame can carry.
    pub const BODY: u32 = super::MAX_PAYLOAD_BYTES;
    /// Output prefix of a config.
    pub const OUTPUT_PREFIX: u32 = 1_023;
}
