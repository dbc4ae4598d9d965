//! Memory that the library is given for each run slot and may keep pointers into from prepare to finalize.
#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, Ordering};

use laneway_core::wire::{CallConfig, ChipStorageTaskArgs, NativeRunDescriptor};

/// What the library stores in the acceptance word.
const ACCEPTED: i32 = 1;

/// The run storage of the library: zeroed once, never moved.
#[derive(Debug)]
struct Storage {
    at: NonNull<u8>,
    layout: Layout,
}

impl Storage {
    /// `None` if the library asked for something that cannot be.
    fn new(size: usize, alignment: usize) -> Option<Self> {
        let layout = Layout::from_size_align(size, alignment).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the layout has a size.
        let at = unsafe { alloc::alloc_zeroed(layout) };
        Some(Self { at: NonNull::new(at)?, layout })
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and no one else frees it.
        unsafe { alloc::dealloc(self.at.as_ptr(), self.layout) };
    }
}

/// What a prepare is handed by pointer. The interface does not say how long the library looks at it, so it stays where it
/// is until the run is finalized.
struct Handed {
    args: ChipStorageTaskArgs,
    config: CallConfig,
    descriptor: NativeRunDescriptor,
    accepted: AtomicI32,
}

/// Everything of one run slot that the library points into.
pub(crate) struct RunSlot {
    storage: Storage,
    /// From a box, which must not be one while the library holds pointers into it.
    handed: NonNull<Handed>,
}

/// The pointers of a prepare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointers {
    pub(crate) storage: *mut c_void,
    pub(crate) args: *const ChipStorageTaskArgs,
    pub(crate) config: *const CallConfig,
    pub(crate) descriptor: *const NativeRunDescriptor,
}

impl RunSlot {
    /// `None` if the library asked for storage that cannot be.
    pub(crate) fn new(size: usize, alignment: usize) -> Option<Self> {
        let storage = Storage::new(size, alignment)?;
        let handed = Box::new(Handed {
            args: ChipStorageTaskArgs::new(),
            config: CallConfig::ZERO,
            descriptor: NativeRunDescriptor::default(),
            accepted: AtomicI32::new(0),
        });
        Some(Self { storage, handed: NonNull::from(Box::leak(handed)) })
    }

    /// Puts down what a prepare hands over. The slot must be empty: the library holds no pointer into it then.
    pub(crate) fn fill(
        &mut self,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        mut descriptor: NativeRunDescriptor,
    ) -> Pointers {
        // SAFETY: it came from a box in `new` and is freed in `drop` alone; no run is in the slot, so the library looks
        // at none of it.
        let handed = unsafe { self.handed.as_mut() };
        handed.accepted.store(0, Ordering::Relaxed);
        handed.args.clone_from(args);
        handed.config = *config;
        descriptor.accepted_state = ptr::from_ref(&handed.accepted).expose_provenance() as u64;
        descriptor.accepted_value = ACCEPTED;
        handed.descriptor = descriptor;
        Pointers {
            storage: self.storage(),
            args: ptr::from_ref(&handed.args),
            config: ptr::from_ref(&handed.config),
            descriptor: ptr::from_ref(&handed.descriptor),
        }
    }

    /// The run storage.
    pub(crate) fn storage(&self) -> *mut c_void {
        self.storage.at.as_ptr().cast()
    }

    /// Whether the library has signalled the acceptance of the run that the slot was filled for.
    pub(crate) fn is_accepted(&self) -> bool {
        let handed = self.handed.as_ptr();
        // SAFETY: it came from a box in `new` and is freed in `drop` alone.
        let word = unsafe { &raw const (*handed).accepted };
        // SAFETY: points to the word; the library writes it as a word of this size, and no one makes a reference to it
        // that is not to an atomic.
        let word = unsafe { &*word };
        word.load(Ordering::Acquire) == ACCEPTED
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        // SAFETY: it came from a box in `new`, nobody else frees it, and the device was closed before its slots go, so
        // the library looks at it no more.
        drop(unsafe { Box::from_raw(self.handed.as_ptr()) });
    }
}

/// The bytes of a callable at an address that stays, aligned as its children need.
#[derive(Debug)]
pub(crate) struct Blob {
    chunks: Vec<Chunk>,
}

#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Chunk([u8; 64]);

impl Blob {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let chunks = bytes.chunks(64).map(|part| {
            let mut chunk = Chunk([0; 64]);
            chunk.0[..part.len()].copy_from_slice(part);
            chunk
        });
        Self { chunks: chunks.collect() }
    }

    pub(crate) fn as_ptr(&self) -> *const c_void {
        self.chunks.as_ptr().cast()
    }
}
