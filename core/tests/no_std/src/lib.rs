//! Links laneway-core without std; see Cargo.toml beside this folder.
#![no_std]

#[cfg(feature = "std")]
extern crate std;

use core::panic::PanicInfo;

/// Keeps a symbol of core in the library.
#[unsafe(no_mangle)]
pub extern "C" fn laneway_first_run() -> u64 {
    laneway_core::ids::RunId::FIRST.get()
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

#[cfg(feature = "engine")]
mod allocator {
    use core::alloc::{GlobalAlloc, Layout};

    struct Empty;

    // SAFETY: it never hands out memory.
    unsafe impl GlobalAlloc for Empty {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            core::ptr::null_mut()
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[global_allocator]
    static ALLOCATOR: Empty = Empty;
}
