//! Writes the callables of the simulator's kernels to files: `callables FOLDER` makes `add.bin`, `mul.bin` and so on.

use std::path::PathBuf;
use std::process::ExitCode;

use laneway_sim::{Kernel, callable};

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: callables FOLDER");
        return ExitCode::from(2);
    };
    for kernel in Kernel::ALL {
        let file = folder.join(kernel.name()).with_extension("bin");
        if let Err(error) = std::fs::write(&file, callable(kernel)) {
            eprintln!("callables: {}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    }
    println!("{} callables in {}", Kernel::ALL.len(), folder.display());
    ExitCode::SUCCESS
}
