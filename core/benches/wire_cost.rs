//! What decoding costs, in instructions: `cargo bench -p laneway-core --bench wire_cost`.
//!
//! Instructions do not depend on what else the machine does, so a regression is a fact and not a guess. The program
//! runs itself under valgrind's callgrind, once per case, and counts inside the measured function alone. It fails if a
//! case is over its ceiling. Without `--bench` (as `cargo test --benches` starts it) it only checks that the cases run.

use std::env;
use std::hint::black_box;
use std::io::ErrorKind;
use std::process::{Command, ExitCode};

use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::wire::args;
use laneway_core::wire::frame::TaskFrame;
use laneway_core::wire::*;

/// A case: name, what it runs, and the most instructions it may take.
struct Case {
    name: &'static str,
    run: fn(&Input),
    ceiling: u64,
}

const CASES: [Case; 8] = [
    Case { name: "decode a frame without arguments", run: |input| decode(&input.empty), ceiling: 230 },
    Case { name: "decode a frame of 1 tensor", run: |input| decode(&input.one), ceiling: 420 },
    Case { name: "decode a frame of 4 tensors", run: |input| decode(&input.four), ceiling: 820 },
    Case { name: "decode a frame of 4 tensors and 8 scalars", run: |input| decode(&input.scalars), ceiling: 820 },
    Case { name: "decode a frame of 256 tensors", run: |input| decode(&input.full), ceiling: 34_000 },
    Case { name: "decode a frame of 4 tensors, protocol 3", run: |input| decode_v3(&input.described), ceiling: 2_100 },
    Case { name: "judge the identity of a frame", run: |input| judge(&input.four), ceiling: 75 },
    Case { name: "judge an empty config", run: |input| config(&input.four.config), ceiling: 60 },
];

struct Input {
    empty: TaskFrame,
    one: TaskFrame,
    four: TaskFrame,
    scalars: TaskFrame,
    full: TaskFrame,
    described: TaskFrame,
}

const RULE: SlotRule = SlotRule::Exactly(PipelineSlot::Zero);

/// Everything that is counted happens in functions of this name.
mod measured {
    use super::*;

    #[inline(never)]
    pub(super) fn counted_decode(frame: &TaskFrame, served: Protocol) -> bool {
        frame.decode(served, RULE).is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_judge(frame: &TaskFrame) -> bool {
        frame.trailer.judge(&frame.lease, Protocol::ChipTensors, RULE).is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_config(config: &CallConfig) -> bool {
        config.validate().is_ok()
    }
}

fn decode(frame: &TaskFrame) {
    assert!(measured::counted_decode(black_box(frame), Protocol::ChipTensors));
}

fn decode_v3(frame: &TaskFrame) {
    assert!(measured::counted_decode(black_box(frame), Protocol::Tensors));
}

fn judge(frame: &TaskFrame) {
    assert!(measured::counted_judge(black_box(frame)));
}

fn config(config: &CallConfig) {
    assert!(measured::counted_config(black_box(config)));
}

fn frame(protocol: Protocol) -> TaskFrame {
    let identity = DispatchIdentity {
        run: RunId::FIRST,
        slot: PipelineSlot::Zero,
        generation: Generation::FIRST,
        dispatch: DispatchId::FIRST,
    };
    TaskFrame { lease: identity.lease(), trailer: identity.trailer(protocol), ..TaskFrame::new() }
}

fn input() -> Input {
    let tensors: Vec<_> = (0..256u64)
        .map(|i| ChipTensor::contiguous(0x1000 + 8192 * i, 8192, Dtype::F32, &[32, 64], AddressSpace::Host))
        .collect::<Result<_, _>>()
        .expect("fits");
    let of = |count: usize, scalars: &[u64]| {
        let mut frame = frame(Protocol::ChipTensors);
        args::encode(&tensors[..count], scalars, &mut frame.args).expect("room");
        frame
    };
    let identity = BufferIdentity { owner: [1; 8], buffer_id: 1, generation: 1 };
    let range = BufferRange { space: AddressSpace::Host, access: Access::ReadWrite, nbytes: 8192, owner_path: 0 };
    let buffer = BufferDescriptor::at_address(Backend::ForkShm, identity, range, 0x1000).expect("legal");
    let tensor = Tensor::contiguous(buffer, 0, Dtype::F32, &[32, 64]).expect("fits");
    let mut described = frame(Protocol::Tensors);
    args::encode_described(&[tensor; 4], &[], &mut described.args).expect("room");
    Input {
        empty: of(0, &[]),
        one: of(1, &[]),
        four: of(4, &[]),
        scalars: of(4, &[7; 8]),
        full: of(256, &[]),
        described,
    }
}

fn main() -> ExitCode {
    if let Ok(case) = env::var("LANEWAY_COST_CASE") {
        let case = CASES.iter().find(|known| known.name == case).expect("a case of this program");
        (case.run)(&input());
        return ExitCode::SUCCESS;
    }
    if !env::args().any(|arg| arg == "--bench") {
        let input = input();
        CASES.iter().for_each(|case| (case.run)(&input));
        println!("{} cases run; instructions are counted by `cargo bench`", CASES.len());
        return ExitCode::SUCCESS;
    }
    let mut over = 0;
    for case in &CASES {
        let Some(count) = count(case) else {
            eprintln!("valgrind is not installed: it counts the instructions (apt-get install valgrind)");
            return ExitCode::FAILURE;
        };
        let verdict = if count > case.ceiling { "  OVER ITS CEILING" } else { "" };
        over += usize::from(count > case.ceiling);
        println!("{:<44} {count:>7} instructions (ceiling {}){verdict}", case.name, case.ceiling);
    }
    println!("{} passed, {over} failed", CASES.len() - over);
    if over == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The instructions of one case; `None` without valgrind.
fn count(case: &Case) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*counted_*"])
        .arg(env::current_exe().expect("the path of this program"))
        .env("LANEWAY_COST_CASE", case.name)
        .output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        output => output.expect("valgrind starts"),
    };
    let report = String::from_utf8_lossy(&output.stderr);
    let collected = report.lines().find_map(|line| line.split_once("Collected :"));
    let count = collected.and_then(|(_, count)| count.trim().parse().ok());
    Some(count.unwrap_or_else(|| panic!("no count in the report of valgrind:\n{report}")))
}
