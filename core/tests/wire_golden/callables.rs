//! Callables: identities, images and the contract of the runtime under them.

use laneway_core::model::identity::{self, Descriptor};
use laneway_core::wire::*;
use zerocopy::{FromBytes, IntoBytes};

use crate::golden::golden;

///
#[test]
fn identities() {
    let abc = identity::sha256(b"abc");
    let signature = [ArgDirection::In, ArgDirection::In, ArgDirection::Out];
    let vectors = [
        (
            "descriptor_chip_callable",
            Descriptor::ChipCallable {
                platform: "a2a3sim",
                runtime: "host_build_graph",
                blob: std::array::from_fn(|i| i as u8),
                signature: identity::signature_digest(signature.into_iter()),
            },
        ),
        ("descriptor_python_serialized", Descriptor::PythonSerialized { payload: abc }),
        ("descriptor_python_import", Descriptor::PythonImport { module: "my_pkg.remote_orch", qualname: "l3_orch" }),
        ("descriptor_native", Descriptor::Native { name: "scale", version: 2, captured: abc, instance: 3 }),
    ];
    for (name, descriptor) in vectors {
        let bytes = golden(name);
        assert_eq!(Descriptor::decode(&bytes), Ok(descriptor), "{name}");
        let mut out = Vec::new();
        descriptor.write(|piece| out.extend_from_slice(piece)).expect("a known platform");
        assert_eq!(out, bytes, "{name}");
    }
    let text = golden("digest_text");
    let digest = Digest::from_text(&text).expect("71 characters");
    assert_eq!(vectors[0].1.digest(), Ok(digest));
    assert_eq!(digest.to_string().as_bytes(), text);
}

/// C-2: the contracts seen in the field.
#[test]
fn contracts_and_run_descriptor() {
    use ResourceClass::{DeviceScratch, ExecHandle, HostPerRun};
    use ResourceKind::{AicoreStream, AicpuStream, GmHeap, GmSm, RuntimeImage, TaskArgs};
    let tmr = [
        (TaskArgs, HostPerRun),
        (GmHeap, DeviceScratch),
        (GmSm, DeviceScratch),
        (RuntimeImage, DeviceScratch),
        (AicpuStream, ExecHandle),
        (AicoreStream, ExecHandle),
    ];
    let hbg = [(GmHeap, HostPerRun), (RuntimeImage, HostPerRun), (AicpuStream, ExecHandle), (AicoreStream, ExecHandle)];
    for (name, resources) in [("contract_tmr", &tmr[..]), ("contract_hbg", &hbg[..])] {
        let bytes = golden(name);
        let contract = PipelineContract::read_from_bytes(&bytes).expect("144 bytes");
        contract.validate().expect("legal");
        assert!(contract.declared().eq(resources.iter().copied()), "{name}");
        assert_eq!(PipelineContract::new(2, resources).expect("legal").as_bytes(), bytes, "{name}");
    }
    let run = NativeRunDescriptor {
        pipeline_slot: 1,
        arena_bank: 1,
        run_id: 11,
        generation: 5,
        dispatch_id: 23,
        run_epoch: 99,
        accepted_state: 0x7f00_0000_3000,
        accepted_value: 1,
        reserved: 0,
    };
    assert_eq!(run.as_bytes(), golden("native_run"));
}

/// C-14
#[test]
fn chip_callable() {
    let bytes = golden("chip_callable");
    let callable = ChipCallable::parse(&bytes).expect("legal");
    assert_eq!((callable.func_name(), callable.config_name()), ("orchestrate", "configure"));
    let children: Vec<_> = callable.children().collect();
    assert_eq!(children.iter().map(|child| child.func_id()).collect::<Vec<_>>(), [7, -1]);
    assert_eq!(children.iter().map(|child| child.offset()).collect::<Vec<_>>(), [128, 384]);
    let binary: Vec<u8> = (0..100).collect();
    let source = ChipCallableSource {
        func_name: "orchestrate",
        config_name: "configure",
        signature: &[ArgDirection::In, ArgDirection::In, ArgDirection::Out, ArgDirection::Scalar],
        binary: &binary,
        children: &[
            CoreCallableSource { func_id: 7, signature: &[ArgDirection::InOut], resolved_addr: 0, binary: &[0xA0; 33] },
            CoreCallableSource {
                func_id: -1,
                signature: &[ArgDirection::InOut, ArgDirection::Scalar],
                resolved_addr: 0x1234,
                binary: &[0xA1; 5],
            },
        ],
    };
    assert!(callable.signature().eq(source.signature.iter().copied()));
    for (child, source) in children.iter().zip(source.children) {
        assert!(child.signature().eq(source.signature.iter().copied()));
        assert_eq!((child.binary(), child.resolved_addr()), (source.binary, source.resolved_addr));
    }
    let mut out = vec![0xEE; source.encoded_len().expect("small")];
    assert_eq!(source.encode(&mut out), Ok(bytes.len()));
    assert!(out == bytes);
}
