//! An endpoint: it sends numbers to another program and gets their sum back, in its own time.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use laneway_core::ids::DispatchId;
use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;
use laneway_linux::{BoxError, ChipTensor, Endpoint, EndpointStart, Failure, Report, Task};

use crate::clerk::elements;

/// Makes this program the calculator.
pub const SERVE: &str = "--calculate";

/// The other program: a line of numbers, the first of which comes back with their sum.
pub fn serve() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lines() {
        let line = line?;
        let mut numbers = line.split(' ').map(str::parse::<i64>);
        let id = numbers.next().ok_or("a line without an id")??;
        let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        match numbers.iter().all(|number| *number >= 0) {
            true => println!("{id} {}", numbers.iter().sum::<i64>()),
            false => println!("{id} the calculator does not do negative numbers"),
        }
    }
    Ok(())
}

pub struct Calculator {
    callables: HashMap<Digest, Vec<u8>>,
    program: Child,
    questions: ChildStdin,
    answers: Receiver<String>,
    reader: Option<JoinHandle<()>>,
    /// The task that is under way, and where its result goes.
    open: Option<(DispatchId, ChipTensor)>,
}

impl Calculator {
    pub fn start(given: EndpointStart<'_>) -> Result<Self, BoxError> {
        let mut program =
            Command::new(std::env::current_exe()?).arg(SERVE).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let questions = program.stdin.take().ok_or("no way to ask")?;
        let output = program.stdout.take().ok_or("no way to hear")?;
        let (send, answers) = channel();
        let bell = given.bell;
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Nobody listens any more once the endpoint is gone.
                let _ = send.send(line);
                bell.ring();
            }
        });
        let callables = given.callables.iter().map(|(digest, name)| (*digest, name.to_vec())).collect();
        Ok(Self { callables, program, questions, answers, reader: Some(reader), open: None })
    }
}

impl Endpoint for Calculator {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.callables.contains_key(digest)
    }

    fn submit(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure> {
        assert!(self.callables[task.digest] != b"panic", "as asked");
        let [from, to] = task.args.tensors() else {
            report.push_str("two tensors are needed");
            return Err(Failure::MESSAGE);
        };
        // The identity of the dispatch goes along, so that an answer can be told from a late one.
        let mut question = task.identity.dispatch.to_string();
        for element in elements(from) {
            question.push_str(&format!(" {}", element.load(Ordering::Relaxed)));
        }
        if writeln!(self.questions, "{question}").is_err() {
            report.push_str("the calculator is gone");
            return Err(Failure::FATAL);
        }
        self.open = Some((task.identity.dispatch, *to));
        Ok(())
    }

    fn poll(&mut self, report: &mut Report) -> Option<Result<(), Failure>> {
        let answer = self.answers.try_recv().ok()?;
        let (dispatch, to) = self.open.take()?;
        let (id, text) = answer.split_once(' ')?;
        assert_eq!(id, dispatch.to_string(), "an answer to something else");
        Some(match text.parse() {
            Ok(sum) => {
                elements(&to)[0].store(sum, Ordering::Relaxed);
                Ok(())
            }
            Err(_) => {
                report.push_str(text);
                Err(Failure::MESSAGE)
            }
        })
    }

    fn control(&mut self, _: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        report.push_str("a calculator serves no controls");
        Err(Failure::MESSAGE)
    }

    fn shutdown(&mut self) {}
}

impl Drop for Calculator {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
        // Its pipe has hung up.
        self.reader.take().map(JoinHandle::join);
    }
}
