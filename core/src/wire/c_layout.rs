//! The layout seen from outside: a C program declares the structures of the contract on its own, the system's compiler
//! lays them out, and its sizes and offsets are compared with ours, line by line and in both directions.

extern crate std;

use std::collections::BTreeMap;
use std::env;
use std::format;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::string::{String, ToString};

use super::buffer::RawBufferDescriptor;
use super::chip_callable::{CoreHeader, Header};
use super::chip_tensor::RawChipTensor;
use super::control::{Addresses, Buffers, NameAndDigest};
use super::remote::header::RawHeader;
use super::remote::sidecar::RawDesc;
use super::remote::task::RawTensorHead;
use super::tensor::RawTensor;
use super::*;
use super::{extension, frame};

/// What the C program prints.
fn theirs() -> BTreeMap<String, usize> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/layout.c");
    let program = env::temp_dir().join(format!("laneway-layout-{}", std::process::id()));
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let built = Command::new(&compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(&source)
        .output();
    let built = match built {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("no C compiler named '{compiler}' on this machine: install gcc or clang, or name one in CC")
        }
        built => built.expect("the compiler starts"),
    };
    assert!(built.status.success(), "{compiler} failed:\n{}", String::from_utf8_lossy(&built.stderr));
    let output = Command::new(&program).output().expect("the program starts");
    std::fs::remove_file(&program).expect("the program is ours to remove");
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).expect("ASCII");
    lines
        .lines()
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a number");
            (name.to_string(), value.parse().expect("a number"))
        })
        .collect()
}

/// `layout!(out, "CName" = RustType { c_field = rust_field, … })`: offsets under their C names.
macro_rules! layout {
    ($out:ident, $c:literal = $type:ty { $($field:ident),* $(,)? $(; $($theirs:literal = $ours:ident),*)? }) => {
        $($out.insert(concat!($c, ".", stringify!($field)).to_string(), core::mem::offset_of!($type, $field));)*
        $($($out.insert(concat!($c, ".", $theirs).to_string(), core::mem::offset_of!($type, $ours));)*)?
    };
}

fn ours() -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    layout!(
        out,
        "CallConfig" = CallConfig {
            aicpu_thread_num,
            enable_chip_swimlane,
            enable_dump_args,
            enable_pmu,
            enable_dep_gen,
            enable_scope_stats,
            ring_task_window,
            ring_heap,
            ring_dep_pool,
            output_prefix
        }
    );
    layout!(out, "PipelineSlotLease" = PipelineSlotLease { slot_id, reserved, generation });
    layout!(out, "Trailer" = Trailer { protocol, run, slot, generation, dispatch });
    layout!(
        out,
        "ChipTensor" = RawChipTensor {
            addr,
            bytes,
            owner_task_id,
            start_offset,
            version,
            ndims,
            dtype,
            manual_dep,
            is_contiguous,
            address_space,
            shapes,
            extent_elem,
            strides,
            zero
        }
    );
    layout!(
        out,
        "BufferDescriptor" = RawBufferDescriptor {
            magic,
            address_space,
            access,
            backend,
            owner,
            buffer_id,
            generation,
            nbytes,
            owner_path,
            body_len,
            reserved,
            body
        }
    );
    layout!(out, "Tensor" = RawTensor { buffer, byte_offset, ndims, shapes, strides, dtype, zero });
    layout!(out, "ChipStorageTaskArgs" = ChipStorageTaskArgs { tensors, scalars, tensor_count, scalar_count });
    layout!(
        out,
        "TaskFrame" = frame::TaskFrame {
            state,
            error,
            reserved,
            config,
            lease,
            digest,
            args,
            shutdown,
            zero,
            trailer,
            accepted,
            preparation,
            message
        }
    );
    layout!(out, "PipelineResource" = PipelineResource { kind, bytes_per_copy; "class_" = class });
    layout!(out, "PipelineContract" = PipelineContract { abi_version, resource_count, pipeline_depth, resources });
    layout!(
        out,
        "NativeRunDescriptor" = NativeRunDescriptor {
            pipeline_slot,
            arena_bank,
            run_id,
            generation,
            dispatch_id,
            run_epoch,
            accepted_state,
            accepted_value
        }
    );
    layout!(
        out,
        "ChipCallable" = Header {
            signature,
            sig_count,
            binary_size,
            func_name,
            func_name_len,
            child_func_ids,
            child_offsets,
            child_count,
            config_name,
            config_name_len
        }
    );
    layout!(out, "CoreCallable" = CoreHeader { signature, sig_count, binary_size, resolved_addr });
    layout!(out, "RemoteHeader" = RawHeader {
        magic, version, session, worker, sequence, payload_bytes, flags; "type" = kind
    });
    layout!(
        out,
        "RemoteTensorHead" = RawTensorHead {
            owner,
            buffer_id,
            generation,
            space,
            access,
            backend,
            nbytes,
            owner_path,
            body_len,
            byte_offset,
            ndims
        }
    );
    layout!(
        out,
        "RemoteTensorDesc" = RawDesc {
            space,
            owner,
            buffer_id,
            offset,
            nbytes,
            remote_addr,
            rkey,
            generation,
            inline_offset,
            inline_length,
            flags
        }
    );
    let payload = frame::CONTROL_PAYLOAD;
    let numbers = [
        ("CallConfig", size_of::<CallConfig>()),
        ("PipelineSlotLease", size_of::<PipelineSlotLease>()),
        ("Trailer", size_of::<Trailer>()),
        ("ChipTensor", size_of::<ChipTensor>()),
        ("alignof ChipTensor", align_of::<ChipTensor>()),
        ("BufferDescriptor", size_of::<BufferDescriptor>()),
        ("Tensor", size_of::<Tensor>()),
        ("TaskArgsView", size_of::<TaskArgsView<'_>>()),
        ("ChipStorageTaskArgs", size_of::<ChipStorageTaskArgs>()),
        ("alignof ChipStorageTaskArgs", align_of::<ChipStorageTaskArgs>()),
        ("TaskFrame", size_of::<frame::TaskFrame>()),
        ("BaseFrame", frame::FRAME_BYTES),
        ("BaseFrame.state", frame::STATE),
        ("BaseFrame.error", frame::ERROR),
        ("BaseFrame.subcommand", frame::SUBCOMMAND),
        ("BaseFrame.arg0", frame::CONTROL_ARG0),
        ("BaseFrame.result", frame::CONTROL_RESULT),
        ("BaseFrame.startup", frame::LEASE),
        ("BaseFrame.payload.named.name", payload + core::mem::offset_of!(NameAndDigest, name)),
        ("BaseFrame.payload.named.digest", payload + core::mem::offset_of!(NameAndDigest, digest)),
        ("BaseFrame.payload.addresses.src", payload + core::mem::offset_of!(Addresses, src)),
        ("BaseFrame.payload.addresses.nbytes", payload + core::mem::offset_of!(Addresses, nbytes)),
        ("BaseFrame.payload.buffers.src", payload + core::mem::offset_of!(Buffers, src)),
        ("BaseFrame.payload.buffers.nbytes", payload + core::mem::offset_of!(Buffers, nbytes)),
        ("BaseFrame.extension.parent_magic", extension::PARENT),
        ("BaseFrame.extension.parent_cpu", extension::PARENT_CPU),
        ("BaseFrame.extension.parent_crowded", extension::PARENT_CROWDED),
        ("BaseFrame.extension.child_magic", extension::CHILD),
        ("BaseFrame.extension.parked", extension::PARKED),
        ("BaseFrame.extension.child_cpu", extension::CHILD_CPU),
        ("BaseFrame.extension.activity", extension::STATUS_ACTIVITY),
        ("BaseFrame.extension.run", extension::STATUS_RUN),
        ("BaseFrame.extension.dispatch", extension::STATUS_DISPATCH),
        ("BaseFrame.extension.tasks", extension::STATUS_TASKS),
        ("BaseFrame.extension.busy_nanos", extension::STATUS_BUSY_NANOS),
        ("BaseFrame.extension.spin_nanos", extension::STATUS_SPIN_NANOS),
        ("BaseFrame.extension.since_nanos", extension::STATUS_SINCE_NANOS),
        ("BaseFrame.shutdown", frame::SHUTDOWN),
        ("BaseFrame.trailer", frame::TRAILER),
        ("BaseFrame.accepted", frame::ACCEPTED),
        ("BaseFrame.preparation", frame::PREPARATION),
        ("BaseFrame.message", frame::MESSAGE),
        ("PipelineResource", size_of::<PipelineResource>()),
        ("PipelineContract", size_of::<PipelineContract>()),
        ("NativeRunDescriptor", size_of::<NativeRunDescriptor>()),
        ("ChipCallable.storage", size_of::<Header>()),
        ("CoreCallable.binary", size_of::<CoreHeader>()),
        ("RemoteHeader", size_of::<RawHeader>()),
        ("RemoteTensorHead", size_of::<RawTensorHead>()),
        ("RemoteTensorDesc", size_of::<RawDesc>()),
    ];
    out.extend(numbers.map(|(name, value)| (name.to_string(), value)));
    out
}

/// W-4, W-5, W-6 and every table of the contract.
#[test]
fn a_c_compiler_lays_the_contract_out_as_we_do() {
    assert_eq!(theirs(), ours());
}
