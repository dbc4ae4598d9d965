//! Callables: their digests, their images and the contract of the runtime under them.

use laneway_core::wire::*;

///
#[test]
fn a_digest_has_one_text_form() {
    let digest = Digest(std::array::from_fn(|i| i as u8 * 7));
    let text = digest.to_string();
    assert_eq!(text.parse(), Ok(digest));
    assert_eq!(Digest::from_words(digest.words()), digest);
    let refused = |text: &str| match text.parse::<Digest>() {
        Err(WireError::DigestFormat { at, .. }) => at,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(""), 0);
    assert_eq!(refused("sha256"), 6);
    assert_eq!(refused("SHA256:"), 0);
    assert_eq!(refused(&text[..70]), 70);
    assert_eq!(refused(&format!("{text}0")), 71);
    assert_eq!(refused(&format!("{text} ")), 71);
    assert_eq!(refused(&text.replace('e', "E")), 7 + text[7..].find('e').expect("an e") as u64);
    assert_eq!(refused(&format!("{}g", &text[..70])), 70);
    assert!("x".parse::<Digest>().expect_err("no digest").to_string().starts_with("HASHID_FORMAT_INVALID"));
}

fn callable(children: &[CoreCallableSource<'_>]) -> Vec<u8> {
    let source = ChipCallableSource {
        func_name: "orchestrate",
        config_name: "configure",
        signature: &[ArgDirection::In],
        binary: &[7; 100],
        children,
    };
    let mut out = vec![0; source.encoded_len().expect("small")];
    source.encode(&mut out).expect("room");
    out
}

/// C-14
#[test]
fn each_gate_of_a_chip_callable_names_what_fails() {
    let core = CoreCallableSource { binary: &[9; 40], ..CoreCallableSource::default() };
    let good = callable(&[core, core]);
    assert!(ChipCallable::parse(&good).is_ok());
    let refused = |at: usize, value: u32| {
        let mut blob = good.clone();
        blob[at..at + 4].copy_from_slice(&value.to_le_bytes());
        ChipCallable::parse(&blob).expect_err("illegal").to_string()
    };
    let storage = good.len() - 9_376;
    assert_eq!(refused(1_024, 257), "sig_count is 257, must be 0..=256");
    assert_eq!(refused(1_024, u32::MAX), "sig_count is -1, must be 0..=256");
    assert!(refused(0, 4).starts_with("argument direction is 4"));
    let outside = format!("orchestration binary at 0 with 100000 bytes leaves the {storage} bytes");
    assert!(refused(1_028, 100_000).starts_with(&outside));
    assert_eq!(refused(1_096, 65), "func_name has 65 bytes, at most 64 fit");
    assert_eq!(refused(9_360, 65), "config_name has 65 bytes, at most 64 fit");
    assert_eq!(refused(1_032, 0xFF), "func_name has an illegal byte at 0, must be UTF-8");
    assert_eq!(refused(9_292, 1_025), "child_count is 1025, must be 0..=1024");
    assert_eq!(refused(5_200, 130), "child 1: offset is 130, must be a multiple of 64");
    assert_eq!(refused(5_196, 64), format!("child 0: offset is 64, must be 100..={storage}"));
    assert!(refused(5_200, 1 << 20).starts_with("child 1: offset is 1048576"));
    assert!(refused(5_200, 576).starts_with("child 1: end of header"));
    assert_eq!(refused(5_200, 128), "child 0 and 1 overlap");
    assert_eq!(refused(9_376 + 128 + 132, 65), "child 0 and 1 overlap");
    assert!(refused(9_376 + 384 + 132, 41).starts_with("child 1: end of binary"));
    assert_eq!(refused(9_376 + 128 + 128, 33), "child 0: sig_count is 33, must be 0..=32");
    assert!(ChipCallable::parse(&good[..9_375]).is_err());
    // Children may stand in any order, and bytes may follow.
    let mut swapped = good.clone();
    swapped[5_196..5_200].copy_from_slice(&384u32.to_le_bytes());
    swapped[5_200..5_204].copy_from_slice(&128u32.to_le_bytes());
    swapped.push(0);
    assert!(ChipCallable::parse(&swapped).is_ok());
}

/// C-2
#[test]
fn a_contract_out_of_range_is_refused_by_field() {
    use ResourceClass::{DeviceScratch, ExecHandle, HostPerRun};
    use ResourceKind::{AicpuStream, GmHeap, GmSm, TaskArgs};
    let good = PipelineContract::new(2, &[(GmHeap, HostPerRun), (AicpuStream, ExecHandle)]).expect("legal");
    let refused = |change: fn(&mut PipelineContract)| {
        let mut contract = good;
        change(&mut contract);
        contract.validate().expect_err("illegal").to_string()
    };
    assert_eq!(refused(|c| c.abi_version = 2), "contract abi_version is 2, must be 1..=1");
    assert_eq!(refused(|c| c.resource_count = 9), "contract resource_count is 9, must be 0..=8");
    assert_eq!(refused(|c| c.pipeline_depth = 0), "contract pipeline_depth is 0, must be 1..=2");
    assert_eq!(refused(|c| c.pipeline_depth = 3), "contract pipeline_depth is 3, must be 1..=2");
    assert!(refused(|c| c.resources[0].kind = 7).starts_with("contract resource kind is 7, known are 1 GM_HEAP"));
    assert!(refused(|c| c.resources[1].class = 3).starts_with("contract resource class is 3, known are 0 HOST"));
    assert!(refused(|c| c.resource_count = 3).starts_with("contract resource kind is 0"));
    assert_eq!(refused(|c| c.resources[0].bytes_per_copy = 64), "contract resource bytes_per_copy is 0x40, must be 0");
    assert_eq!(
        PipelineContract::new(2, &[(GmHeap, HostPerRun), (GmHeap, HostPerRun)]),
        Err(WireError::ResourceTwice { kind: GmHeap })
    );
    assert_eq!(
        PipelineContract::new(2, &[(GmHeap, HostPerRun), (GmSm, DeviceScratch)]),
        Err(WireError::ArenaCopies { kind: GmSm, copies: 1, others: 2 })
    );
    // At depth 1 every class has one copy; other resources may be declared as often as one likes.
    assert!(PipelineContract::new(1, &[(GmHeap, HostPerRun), (GmSm, DeviceScratch)]).is_ok());
    assert!(PipelineContract::new(2, &[(TaskArgs, HostPerRun), (TaskArgs, DeviceScratch)]).is_ok());
    assert!(PipelineContract::new(2, &[(TaskArgs, HostPerRun); 9]).is_err());
}
