//! A level-3 worker with simulated A2/A3 chips and SUB children computes `d = (a + b) * 2` over real tensors.
//!
//! Each chip adds its share of `a` and `b` into scratch memory `c`, then doubles `c` into `d`; the second task waits for the
//! first because it reads what that writes. SUB tasks, each in a process of its own, then compare every element of `d` with
//! the closed form. See `--help`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use laneway_linux::{BoxError, CallableHandle, Chip, Error, Orchestrator, SubArgs, TaskArgs, Tensor, Worker, WorkerId};
use laneway_sim::{Config, HostMemory, Kernel, Profile, Simulator, callable, scale_factor};

const USAGE: &str = "\
usage: vector_add [--elements N] [--chips N] [--subs N] [--corrupt INDEX]

  --elements N     elements of each vector, 1 to 67,108,864 (default 1,000,000)
  --chips N        simulated A2/A3 chips, 1 to 64, no more than elements (default 2)
  --subs N         SUB children that check the result, 1 to 64, no more than elements (default 1)
  --corrupt INDEX  change one element of `a` after the fact, to see the check fail";

const PROFILE: Profile = Profile::A2a3HostBuildGraph;

/// What the command line asks for.
struct Options {
    elements: u32,
    chips: u32,
    subs: u32,
    corrupt: Option<u32>,
}

fn main() -> ExitCode {
    let options = match Options::parse() {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(sentence) => {
            eprintln!("vector_add: {sentence}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vector_add: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The two inputs, small enough that every sum is exact in f32.
fn a(i: usize) -> f32 {
    (i % 4096) as f32
}

fn b(i: usize) -> f32 {
    (i % 1000) as f32 * 0.25
}

fn run(options: &Options) -> Result<(), Error> {
    let worker = Worker::builder().level(3).subs(options.subs).build()?;
    let mut chips = Vec::new();
    for _ in 0..options.chips {
        chips.push(worker.add_chip(chip())?);
    }
    let calls = Calls {
        add: worker.register_chip(PROFILE.platform(), PROFILE.runtime(), &callable(Kernel::Add))?,
        scale: worker.register_chip(PROFILE.platform(), PROFILE.runtime(), &callable(Kernel::Scale))?,
        check: worker.register("check", check)?,
    };
    let start = Instant::now();
    worker.init()?;
    let ready = start.elapsed();

    let elements = options.elements;
    let (left, right) = (worker.tensor::<f32>(&[elements])?, worker.tensor::<f32>(&[elements])?);
    left.fill_with(a)?;
    right.fill_with(b)?;
    if let Some(index) = options.corrupt {
        left.view()?.set(index as usize, a(index as usize) + 1.0)?;
    }
    let start = Instant::now();
    let tasks = worker.run(|orch| calls.submit(orch, &chips, options, &left, &right))?;
    report(options, tasks, ready, start.elapsed());
    worker.close()
}

/// A chip child with a simulated A2/A3.
#[allow(unsafe_code)]
fn chip() -> Chip {
    Chip::new(PROFILE.platform(), PROFILE.runtime(), |shared| {
        // SAFETY: these are the ranges that hold the tensors of the tree; the worker keeps them mapped for writing for as
        // long as the child lives, and nothing in the child holds a reference into them.
        let host = unsafe { HostMemory::ranges(shared.iter().cloned()) };
        Simulator::new(Config::new(PROFILE), host)
    })
}

/// What the graph is made of.
struct Calls {
    add: CallableHandle,
    scale: CallableHandle,
    check: CallableHandle,
}

impl Calls {
    /// Builds the graph; the number of its tasks.
    fn submit(
        &self,
        orch: &mut Orchestrator<'_>,
        chips: &[WorkerId],
        options: &Options,
        left: &Tensor<f32>,
        right: &Tensor<f32>,
    ) -> Result<usize, BoxError> {
        let result = orch.alloc::<f32>(&[options.elements])?;
        let mut tasks = 0;
        for (&chip, share) in chips.iter().zip(shares(options.elements, options.chips)) {
            let part = |tensor: laneway_linux::ChipTensor| tensor.slice(0, share.start, share.end, 1);
            let (a, b, d) = (part(left.as_arg())?, part(right.as_arg())?, part(result)?);
            // Scratch: released when both tasks that name it have ended, although the scope is left at once.
            orch.scope(|orch| {
                let c = orch.alloc::<f32>(&[share.end - share.start])?;
                orch.submit_next_level(&self.add, chip, TaskArgs::new().input(a).input(b).output(c))?;
                let double = scale_factor(2.0);
                orch.submit_next_level(&self.scale, chip, TaskArgs::new().input(c).output(d).scalar(double))?;
                Ok::<_, BoxError>(())
            })?;
            tasks += 2;
        }
        for share in shares(options.elements, options.subs) {
            let part = result.slice(0, share.start, share.end, 1)?;
            orch.submit_sub(&self.check, TaskArgs::new().input(part).scalar(share.start.into()))?;
            tasks += 1;
        }
        Ok(tasks)
    }
}

/// Runs in a SUB child: compares every element of its share with the closed form.
fn check(args: &SubArgs<'_>) -> Result<(), BoxError> {
    let (d, first) = (args.tensor::<f32>(0)?, args.scalar(0)? as usize);
    for (i, found) in (first..).zip(d.iter()) {
        let expected = (a(i) + b(i)) * 2.0;
        if found != expected {
            return Err(format!("element {i} is {found}, expected {expected}").into());
        }
    }
    Ok(())
}

/// `count` shares of `elements`, as equal as they can be.
fn shares(elements: u32, count: u32) -> impl Iterator<Item = std::ops::Range<u32>> {
    let bound = move |i: u32| (u64::from(elements) * u64::from(i) / u64::from(count)) as u32;
    (0..count).map(move |i| bound(i)..bound(i + 1))
}

fn report(options: &Options, tasks: usize, ready: Duration, took: Duration) {
    let (chips, subs) = (options.chips, options.subs);
    // a and b read, c written and read, d written, then read by the check.
    let bytes = 6 * u64::from(options.elements) * size_of::<f32>() as u64;
    println!("elements   {}", options.elements);
    println!("children   {} ({chips} chips, {subs} SUB), ready in {ready:.1?}", chips + subs);
    println!("tasks      {tasks} ({} on chips, {} on SUB children)", tasks - subs as usize, subs);
    println!("bytes      {bytes} read and written");
    println!("time       {took:.1?}, {:.1?} per task", took / tasks as u32);
    println!("check      passed: every element of d equals (a + b) * 2");
}

impl Options {
    /// `None` asks for the usage.
    fn parse() -> Result<Option<Self>, String> {
        use lexopt::prelude::*;
        let mut options = Self { elements: 1_000_000, chips: 2, subs: 1, corrupt: None };
        let mut parser = lexopt::Parser::from_env();
        while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
            match arg {
                Long("elements") => options.elements = number(&mut parser, "--elements", 1, 1 << 26)?,
                Long("chips") => options.chips = number(&mut parser, "--chips", 1, 64)?,
                Long("subs") => options.subs = number(&mut parser, "--subs", 1, 64)?,
                Long("corrupt") => options.corrupt = Some(number(&mut parser, "--corrupt", 0, (1 << 26) - 1)?),
                Short('h') | Long("help") => return Ok(None),
                other => return Err(other.unexpected().to_string()),
            }
        }
        let elements = options.elements;
        let least = options.chips.max(options.subs);
        if elements < least {
            return Err(format!("--elements {elements} is too few for {least} children to have one each"));
        }
        match options.corrupt {
            Some(index) if index >= elements => Err(format!("--corrupt {index}: there are only {elements} elements")),
            _ => Ok(Some(options)),
        }
    }
}

/// The value of an option, refused with a sentence unless it is a whole number in range.
fn number(parser: &mut lexopt::Parser, option: &str, least: u32, most: u32) -> Result<u32, String> {
    let value = parser.value().map_err(|error| error.to_string())?;
    let text = value.to_string_lossy();
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("{option} {text}: a whole number from {least} to {most} is needed")),
    }
}
