//! The symbol table of a host runtime.
#![allow(unsafe_code)]

use std::path::Path;

use libloading::os::unix::Library;

use crate::abi;
use crate::error::AscendError;

/// Looks a symbol up.
///
/// # Safety
/// If the library has the symbol, it has the type `T`, a function pointer.
unsafe fn find<T: Copy>(library: &Library, name: &str) -> Option<T> {
    // SAFETY: the type is right, as the caller promises. libloading adds the NUL.
    let symbol = unsafe { library.get::<T>(name.as_bytes()) };
    symbol.ok().map(|symbol| *symbol)
}

macro_rules! symbols {
    (
        required { $($name:ident: $type:ty,)* }
        unused { $($unused:ident: $unused_type:ty,)* }
        optional { $($optional:ident: $optional_type:ty,)* }
    ) => {
        /// The functions of a host runtime, by their names in the library.
        #[derive(Clone, Copy)]
        pub(crate) struct Symbols {
            $(pub(crate) $name: $type,)*
        }

        impl Symbols {
            /// Looks all of them up.
            ///
            /// # Safety
            /// `library` is a host runtime: what it exports under these names has these types.
            pub(crate) unsafe fn resolve(library: &Library, path: &Path) -> Result<Self, AscendError> {
                let missing = |symbol| AscendError::MissingSymbol { symbol, path: path.to_owned() };
                $(
                    // SAFETY: the type of this symbol, as the caller promises.
                    unsafe { find::<$unused_type>(library, stringify!($unused)) }
                        .ok_or_else(|| missing(stringify!($unused)))?;
                )*
                Ok(Self {
                    $(
                        // SAFETY: the type of this symbol, as the caller promises.
                        $name: unsafe { find::<$type>(library, stringify!($name)) }
                            .ok_or_else(|| missing(stringify!($name)))?,
                    )*
                })
            }
        }

        /// Which of the functions that a host runtime may leave out it has: DMA work spaces and communication domains.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct OptionalSymbols {
            $(
                #[doc = concat!("Whether it has `", stringify!($optional), "`.")]
                pub $optional: bool,
            )*
        }

        impl OptionalSymbols {
            /// Looks all of them up.
            ///
            /// # Safety
            /// As [`Symbols::resolve`].
            pub(crate) unsafe fn resolve(library: &Library) -> Self {
                Self {
                    $(
                        // SAFETY: the type of this symbol, as the caller promises.
                        $optional: unsafe { find::<$optional_type>(library, stringify!($optional)) }.is_some(),
                    )*
                }
            }
        }
    };
}

symbols! {
    required {
        get_pipeline_contract: abi::GetPipelineContract,
        create_device_context: abi::CreateContext,
        destroy_device_context: abi::DestroyContext,
        get_runtime_size: abi::GetSize,
        get_runtime_alignment: abi::GetSize,
        simpler_init: abi::Init,
        finalize_device: abi::OnContext,
        simpler_register_callable: abi::RegisterCallable,
        simpler_unregister_callable: abi::UnregisterCallable,
        simpler_prepare_run: abi::PrepareRun,
        simpler_launch_run: abi::OnRun,
        simpler_poll_run: abi::OnRun,
        simpler_wait_run: abi::OnRun,
        simpler_finalize_run: abi::OnRun,
        supports_concurrent_native_prepare_ctx: abi::OnContext,
        device_malloc_ctx: abi::Malloc,
        device_free_ctx: abi::Free,
        copy_to_device_ctx: abi::Copy,
        copy_from_device_ctx: abi::Copy,
        committed_device_memory_ctx: abi::Count,
        get_aicpu_dlopen_count: abi::Count,
        get_host_dlopen_count: abi::Count,
        get_run_stream_set_create_count: abi::Count,
        get_arena_bank_gm_heap_base_ctx: abi::AddressOf,
        get_retained_temp_addr_ctx: abi::AddressOf,
        simpler_host_log_bind_state: abi::BindLogState,
    }
    unused {
        // The trait composes its blocking run of the four phases; a library without this one is another version.
        simpler_run: abi::PrepareRun,
    }
    optional {
        simpler_provision_dma_workspace: abi::ProvisionDma,
        ensure_acl_ready_ctx: abi::EnsureAcl,
        create_comm_stream_ctx: abi::CreateStream,
        destroy_comm_stream_ctx: abi::DestroyStream,
        comm_init: abi::CommInit,
        comm_alloc_windows: abi::CommAllocWindows,
        comm_get_local_window_base: abi::CommWindowBase,
        comm_get_window_size: abi::CommWindowSize,
        comm_barrier: abi::CommCall,
        comm_destroy: abi::CommCall,
    }
}

/// The one function that both libraries of a simulation platform have, each its own copy.
///
/// # Safety
/// As [`Symbols::resolve`].
pub(crate) unsafe fn log_binder(library: &Library, path: &Path) -> Result<abi::BindLogState, AscendError> {
    const NAME: &str = "simpler_host_log_bind_state";
    // SAFETY: the type of this symbol, as the caller promises.
    let found = unsafe { find(library, NAME) };
    found.ok_or_else(|| AscendError::MissingSymbol { symbol: NAME, path: path.to_owned() })
}
