extern crate std;

use std::string::ToString;
use std::vec::Vec;

use super::*;

fn bytes(descriptor: &Descriptor<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    descriptor.write(|piece| out.extend_from_slice(piece)).expect("a known platform");
    out
}

fn hex(bytes: &[u8]) -> std::string::String {
    Digest(bytes.try_into().expect("32 bytes")).to_string()[7..].into()
}

const SIGNATURE: [ArgDirection; 3] = [ArgDirection::In, ArgDirection::In, ArgDirection::Out];

/// The vectors of the contract: descriptor, length, digest.
fn vectors() -> [(Descriptor<'static>, usize, &'static str); 3] {
    let blob = core::array::from_fn(|i| i as u8);
    let signature = signature_digest(SIGNATURE.into_iter());
    [
        (
            Descriptor::ChipCallable { platform: "a2a3sim", runtime: "host_build_graph", blob, signature },
            119,
            "sha256:e7bd3ba19e5d5d22be738e7ecbb87f12ad858031ef3682268ea6cc51c25dc38d",
        ),
        (
            Descriptor::PythonImport { module: "my_pkg.remote_orch", qualname: "l3_orch" },
            41,
            "sha256:b3668608cc056bda943c64285f95807c78949f38040a8698a7ce0d254427e557",
        ),
        (
            Descriptor::PythonSerialized { payload: sha256(b"abc") },
            52,
            "sha256:0511fef99694f1d2c47fa648b6988858b08104a40cf58ea2b3a7e40fbec28b4d",
        ),
    ]
}

/// R-1
#[test]
fn the_published_vectors_come_out() {
    assert_eq!(
        hex(&signature_digest(SIGNATURE.into_iter())),
        "ce92de584494e4e8cede4ff1a5cefb98b471876d9c2a7e7b69b352a005f22e1b"
    );
    for (descriptor, len, digest) in vectors() {
        assert_eq!(bytes(&descriptor).len(), len, "{descriptor:?}");
        assert_eq!(descriptor.digest().expect("known").to_string(), digest, "{descriptor:?}");
    }
}

/// R-1
#[test]
fn a_descriptor_reads_back_and_no_cut_of_it_does() {
    let native = Descriptor::Native { name: "scale", version: 3, captured: sha256(b""), instance: 1 << 40 };
    for descriptor in vectors().into_iter().map(|(descriptor, ..)| descriptor).chain([native]) {
        let bytes = bytes(&descriptor);
        assert_eq!(Descriptor::decode(&bytes), Ok(descriptor));
        for cut in 0..bytes.len() {
            assert!(Descriptor::decode(&bytes[..cut]).is_err(), "{descriptor:?} cut at {cut}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(matches!(Descriptor::decode(&longer), Err(ModelError::Wire(WireError::Trailing { extra: 1, .. }))));
    }
}

/// R-1: closures registered in a loop differ by their instance alone.
#[test]
fn every_field_of_a_native_descriptor_changes_its_name() {
    let of = |name, version, captured: &[u8], instance| {
        Descriptor::Native { name, version, captured: sha256(captured), instance }.digest().expect("native")
    };
    let all = [of("f", 1, b"", 0), of("g", 1, b"", 0), of("f", 2, b"", 0), of("f", 1, b"x", 0), of("f", 1, b"", 1)];
    for (i, a) in all.iter().enumerate() {
        assert!(all[i + 1..].iter().all(|b| a != b));
    }
}

/// R-1
#[test]
fn an_unknown_platform_or_a_foreign_architecture_is_refused() {
    let unknown = Descriptor::ChipCallable { platform: "a9", runtime: "r", blob: [0; 32], signature: [0; 32] };
    assert_eq!(unknown.digest(), Err(ModelError::UnknownPlatform));
    let mut forged = bytes(&vectors()[0].0);
    forged[12..16].copy_from_slice(b"a5a5");
    assert_eq!(Descriptor::decode(&forged), Err(ModelError::UnknownPlatform));
}
