//! Controls.

use std::collections::BTreeSet;

use laneway_core::wire::control::{ControlCommand, ControlFrame, ControlRequest, CopySpan, ShmName, Staged};
use laneway_core::wire::frame;
use laneway_core::wire::*;

use crate::golden::golden;
use crate::values::{at_address, by_name};
use crate::wire_properties;

/// Each control command, at its place on the base frame.
#[test]
fn controls() {
    let digest = |first: u8| Digest(std::array::from_fn(|i| first + i as u8));
    let addresses = CopySpan::Addresses { dst: 0xd000_1000, src: 0x7f00_0000_2000, nbytes: 256 };
    let device = at_address(Backend::DeviceMalloc, AddressSpace::Device, Access::ReadWrite, 5, 4096, 0xd000_1000);
    let buffers = CopySpan::Buffers { dst: device, src: by_name(6, 512, "psm_3f"), nbytes: 256 };
    let named = Staged::Shm(ShmName::new("/psm_callable_0123456789abcdef0").expect("31 bytes"));
    let (v2, v3) = (Protocol::ChipTensors, Protocol::Tensors);
    let vectors = [
        ("malloc", v2, ControlRequest::Malloc { bytes: 1 << 20 }),
        ("free", v2, ControlRequest::Free { address: 0xd000_0000 }),
        ("copy_to_v2", v2, ControlRequest::CopyTo(addresses)),
        ("copy_to_v3", v3, ControlRequest::CopyTo(buffers)),
        ("copy_from_v2", v2, ControlRequest::CopyFrom(addresses)),
        ("copy_from_v3", v3, ControlRequest::CopyFrom(buffers)),
        ("prepare", v2, ControlRequest::Prepare { digest: digest(0x10) }),
        (
            "register",
            v2,
            ControlRequest::Register { staged: Staged::Region(0x1f_40c0), bytes: 9999, digest: digest(0x10) },
        ),
        ("unregister", v2, ControlRequest::Unregister { digest: digest(0x10) }),
        ("alloc_domain", v2, ControlRequest::Unsupported(ControlCommand::AllocDomain)),
        ("release_domain", v2, ControlRequest::Unsupported(ControlCommand::ReleaseDomain)),
        ("comm_init", v2, ControlRequest::Unsupported(ControlCommand::CommInit)),
        ("region_allocate", v2, ControlRequest::Unsupported(ControlCommand::RegionAllocate)),
        ("region_release", v2, ControlRequest::Unsupported(ControlCommand::RegionRelease)),
        ("py_register", v2, ControlRequest::PyRegister { staged: named, bytes: 321, digest: digest(0x20) }),
        ("py_unregister", v2, ControlRequest::PyUnregister { digest: digest(0x20) }),
        ("committed_device_memory", v2, ControlRequest::CommittedDeviceMemory),
    ];
    let mut commands = BTreeSet::new();
    for (name, protocol, request) in vectors {
        let bytes = golden(&format!("control_{name}"));
        let gathered = wire_properties::gather_control(&bytes);
        assert_eq!(gathered.decode(protocol), Ok(request), "{name}");
        commands.insert(gathered.subcommand);

        let encoded = ControlFrame::encode(&request);
        let mut head = vec![0; frame::CONTROL_PAYLOAD + frame::CONTROL_PAYLOAD_BYTES];
        head[frame::STATE..][..4].copy_from_slice(&FrameState::ControlRequest.raw().to_le_bytes());
        head[frame::SUBCOMMAND..][..8].copy_from_slice(&encoded.subcommand.to_le_bytes());
        head[frame::CONTROL_ARG0..][..8].copy_from_slice(&encoded.arg0.to_le_bytes());
        head[frame::CONTROL_PAYLOAD..].copy_from_slice(&encoded.payload);
        assert_eq!(head, bytes, "{name}");
    }
    let all: BTreeSet<_> = ControlCommand::ALL.iter().map(|command| command.raw()).collect();
    assert_eq!(commands, all);
}
