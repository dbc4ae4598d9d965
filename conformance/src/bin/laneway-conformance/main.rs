//! Runs the conformance cases against the simulator or a vendor's library. See `--help`.

mod options;
mod show;

use std::fs;
use std::process::ExitCode;

use laneway_conformance::{Backend, Counts, Report, Runner, junit};

use options::{Asked, Options, USAGE};
use show::Show;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == "bench") {
        return laneway_conformance::bench::main(std::env::args_os().skip(2));
    }
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(Asked::Help) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Run(options)) => *options,
        Err(sentence) => return unusable(&format!("{sentence}\n\n{USAGE}")),
    };
    let mut runner = Runner::new(options.filter.clone()).seed(options.seed).timeout(options.timeout);
    for case in &options.files {
        runner = runner.and(case.clone());
    }
    if options.in_this_process {
        runner = runner.in_this_process();
    }
    if options.list {
        for case in runner.cases() {
            println!("{} [{}]: {}", case.name(), case.rules().join(" "), case.says());
        }
        return ExitCode::SUCCESS;
    }
    let show = Show::new(options.json);
    let reports: Vec<Report> =
        options.backends().into_iter().map(|mut one| run(&runner, one.as_mut(), &show)).collect();
    if options.json {
        match serde_json::to_string_pretty(&reports) {
            Ok(text) => println!("{text}"),
            Err(error) => return unusable(&error.to_string()),
        }
    }
    if let Some(path) = &options.junit {
        let written = junit(&reports).map_err(|error| error.to_string());
        if let Err(error) = written.and_then(|xml| fs::write(path, xml).map_err(|error| error.to_string())) {
            return unusable(&format!("{}: {error}", path.display()));
        }
    }
    let counts: Counts = reports.iter().map(Report::counts).sum();
    if reports.len() > 1 {
        show.line(&counts.to_string());
    }
    ExitCode::from(counts.exit_status())
}

fn run(runner: &Runner, backend: &mut dyn Backend, show: &Show) -> Report {
    let progress = show.begin(backend.name(), runner.cases());
    let report = runner.run(backend, |news| progress.tell(news));
    progress.end(&report);
    report
}

/// The command could not do what it is for.
fn unusable(sentence: &str) -> ExitCode {
    eprintln!("laneway-conformance: {sentence}");
    ExitCode::from(2)
}
