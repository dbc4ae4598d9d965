//! Host functions of shared libraries.
#![allow(unsafe_code)]

use std::ffi::c_char;

use laneway_core::wire::ChipTensor;

use crate::callable::BoxError;
use crate::error::{CallableError, Error};
use crate::sub::SubArgs;

/// What a library function is called with; valid for the call. `extern "C" fn(const struct NativeCall *) -> int`, 0 is success;
/// anything else fails the task with that code and the text in `message`.
#[repr(C)]
#[derive(Debug)]
pub struct NativeCall {
    /// The tensors, 128 bytes each; those in host space lie in memory that the whole tree shares.
    pub tensors: *const ChipTensor,
    /// How many.
    pub tensor_count: usize,
    /// The scalars.
    pub scalars: *const u64,
    /// How many.
    pub scalar_count: usize,
    /// The bytes that the callable was registered with.
    pub captured: *const u8,
    /// How many.
    pub captured_len: usize,
    /// Room for a NUL-terminated text that says what went wrong; empty at first.
    pub message: *mut c_char,
    /// Bytes of room.
    pub message_len: usize,
}

/// The signature of a library function.
type EntryFn = unsafe extern "C" fn(*const NativeCall) -> i32;

/// Bytes of room for a message.
const MESSAGE: usize = 1024;

/// A function of a library that stays loaded.
pub(super) struct Entry {
    function: EntryFn,
    /// Keeps the code mapped.
    _library: libloading::Library,
}

impl Entry {
    pub(super) fn load(path: &str, symbol: &str) -> Result<Self, Error> {
        let failed = |error: libloading::Error| CallableError::Library {
            path: path.to_owned(),
            symbol: symbol.to_owned(),
            reason: error.to_string(),
        };
        // SAFETY: loading runs the library's own initialisers; whoever registered it vouches for them.
        let library = unsafe { libloading::Library::new(path) }.map_err(failed)?;
        // SAFETY: whoever registered the symbol vouches for its signature; that is part of the contract of `register_symbol`.
        let function = *unsafe { library.get::<EntryFn>(symbol.as_bytes()) }.map_err(failed)?;
        Ok(Self { function, _library: library })
    }

    pub(super) fn call(&self, args: &SubArgs<'_>, captured: &[u8]) -> Result<(), BoxError> {
        let mut message = [0_u8; MESSAGE];
        let call = NativeCall {
            tensors: args.tensors().as_ptr(),
            tensor_count: args.tensors().len(),
            scalars: args.scalars().as_ptr(),
            scalar_count: args.scalars().len(),
            captured: captured.as_ptr(),
            captured_len: captured.len(),
            message: message.as_mut_ptr().cast(),
            message_len: message.len(),
        };
        // SAFETY: the signature was vouched for, the library is loaded, and everything that `call` names outlives the call.
        let code = unsafe { (self.function)(&call) };
        if code == 0 {
            return Ok(());
        }
        let len = message.iter().position(|byte| *byte == 0).unwrap_or(MESSAGE);
        Err(format!("code {code}: {}", String::from_utf8_lossy(&message[..len])).into())
    }
}
