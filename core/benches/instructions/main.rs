//! Instructions of the hot paths, compared with committed figures: `cargo bench -p laneway-core --bench instructions`.
//!
//! Instructions do not depend on what else the machine does, so a regression is a fact and not a guess. The program runs
//! itself under valgrind's callgrind, once per case, and counts inside the functions whose name starts with `counted_`
//! alone. It fails if a case has grown by more than 5 % over its figure in `figures.txt`; `-- --commit` writes what was
//! measured there, to be committed with the change that explains it. Without `--bench` (as `cargo test --benches` starts
//! it) it only checks that every case runs and has a figure.

mod decode;
mod engine;
mod figures;
mod level;
#[path = "../load/mod.rs"]
mod load;
mod words;

use std::env;
use std::io::ErrorKind;
use std::process::{Command, ExitCode};

use figures::Figures;

/// A case: its name, how many times its counted part runs, and the program that runs it.
pub struct Case {
    name: &'static str,
    times: u64,
    run: fn(),
}

/// Which case a child process runs.
const CASE: &str = "LANEWAY_INSTRUCTIONS_CASE";

/// The C library picks its memory functions by the CPU; without these it takes the same everywhere.
const PLAIN_CPU: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-ERMS,-FSRM,-SSSE3,\
                         -AVX_Fast_Unaligned_Load,-Prefer_No_AVX512_Probing";

fn cases() -> impl Iterator<Item = &'static Case> {
    engine::CASES.iter().chain(level::CASES).chain(decode::CASES)
}

fn main() -> ExitCode {
    if let Ok(wanted) = env::var(CASE) {
        let case = cases().find(|case| case.name == wanted).expect("a case of this program");
        (case.run)();
        return ExitCode::SUCCESS;
    }
    let mut figures = match Figures::load(cases().map(|case| case.name)) {
        Ok(figures) => figures,
        Err(fault) => {
            eprintln!("{fault}");
            return ExitCode::FAILURE;
        }
    };
    let arguments: Vec<String> = env::args().collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        cases().for_each(|case| (case.run)());
        println!("{} cases run; instructions are counted by `cargo bench`", cases().count());
        return ExitCode::SUCCESS;
    }
    for case in cases() {
        let Some(count) = count(case) else {
            eprintln!("valgrind is not installed: it counts the instructions (apt-get install valgrind)");
            return ExitCode::FAILURE;
        };
        figures.measured(case.name, count.div_ceil(case.times));
    }
    println!("{figures}");
    if arguments.iter().any(|argument| argument == "--commit") {
        figures.save();
        return ExitCode::SUCCESS;
    }
    if figures.judge() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The instructions of one case; `None` without valgrind.
fn count(case: &Case) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*counted_*"])
        .arg(env::current_exe().expect("the path of this program"))
        .env(CASE, case.name)
        .env("GLIBC_TUNABLES", PLAIN_CPU)
        .output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        output => output.expect("valgrind starts"),
    };
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} failed under valgrind:\n{report}", case.name);
    let collected = report.lines().find_map(|line| line.split_once("Collected :"));
    let count = collected.and_then(|(_, count)| count.trim().parse().ok());
    Some(count.unwrap_or_else(|| panic!("no count in the report of valgrind:\n{report}")))
}
