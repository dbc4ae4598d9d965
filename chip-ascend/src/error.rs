//! The error of this crate.

use std::path::PathBuf;

use laneway_core::chip::{ChipError, Platform, RuntimeKind};
use laneway_core::wire::WireError;

/// Why a host runtime could not be bound or a device not be opened. What goes wrong with an open device is a
/// [`ChipError`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AscendError {
    /// A file of the installation cannot be read.
    #[error("{}: {reason}; an installation of {platform} {runtime} has this file", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The platform of the installation.
        platform: Platform,
        /// The runtime of the installation.
        runtime: RuntimeKind,
        /// What the operating system said.
        reason: String,
    },
    /// A file of the installation is shorter than its own headers say, or is not what it has to be.
    #[error("{}: {reason}; install it again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The dynamic linker refused a library.
    #[error("{} cannot be loaded: {reason}", .path.display())]
    Load {
        /// The library.
        path: PathBuf,
        /// What the linker said.
        reason: String,
    },
    /// The library does not have a function that it must have.
    #[error("{} has no symbol {symbol}: it is no host runtime, or one of another version", .path.display())]
    MissingSymbol {
        /// The function.
        symbol: &'static str,
        /// The library.
        path: PathBuf,
    },
    /// C-11
    #[error(
        "this process is bound to {bound_platform} {bound_runtime} ({}) for its life, since the library keeps global \
        state; {platform} {runtime} ({}) needs a process of its own", .bound_path.display(), .path.display()
    )]
    AlreadyBound {
        /// The platform that is bound.
        bound_platform: Platform,
        /// The runtime that is bound.
        bound_runtime: RuntimeKind,
        /// The library that is bound.
        bound_path: PathBuf,
        /// The platform asked for.
        platform: Platform,
        /// The runtime asked for.
        runtime: RuntimeKind,
        /// The library asked for.
        path: PathBuf,
    },
    /// An earlier attempt in this process got as far as loading a library and then failed.
    #[error("an earlier binding in this process failed after its library was loaded; start a new process")]
    HalfBound,
    /// The library refused the log state.
    #[error("{} refused the log state with code {code}", .path.display())]
    LogState {
        /// The library.
        path: PathBuf,
        /// The code.
        code: i32,
    },
    /// C-2
    #[error("{} publishes a contract that is refused: {error}", .path.display())]
    Contract {
        /// The library.
        path: PathBuf,
        /// What is wrong with it.
        error: WireError,
    },
    /// The library asks for run storage that cannot be.
    #[error("{} asks for {size} bytes of run storage aligned to {alignment}", .path.display())]
    RunStorage {
        /// The library.
        path: PathBuf,
        /// Bytes asked for.
        size: usize,
        /// Alignment asked for.
        alignment: usize,
    },
    /// A device that is open in this process already.
    #[error("device {device} is open in this process: close it first")]
    DeviceOpen {
        /// The device.
        device: i32,
    },
    /// The library gave no context.
    #[error("{} created no device context", .path.display())]
    NoContext {
        /// The library.
        path: PathBuf,
    },
    /// The device could not be brought up.
    #[error("device {device} did not come up: {error}")]
    Init {
        /// The device.
        device: i32,
        /// What the library answered.
        error: ChipError,
    },
}
