//! An endpoint of one's own: tasks go to something that is no child, and end when it says so.

// ANCHOR: endpoint
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};

use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;
use laneway_linux::{Endpoint, EndpointStart, Error, Failure, OwnEndpoint, Report, Task, TaskArgs, Worker};

/// A task asks whether its scalar is a prime. A thread of ours finds out; it could be another program, or another machine.
struct Primes {
    callables: HashSet<Digest>,
    questions: Sender<u64>,
    answers: Receiver<Result<(), String>>,
}

impl Primes {
    /// Called once, in the endpoint's own thread, when the children that are processes are ready.
    fn open(start: EndpointStart<'_>) -> Result<Self, Error> {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let bell = start.bell;
        std::thread::spawn(move || {
            for n in asked {
                let factor = (2..n).take_while(|i| i * i <= n).find(|i| n % i == 0);
                let found = factor.map_or(Ok(()), |factor| Err(format!("{n} is {factor} times {}", n / factor)));
                if answer.send(found).is_err() {
                    return;
                }
                bell.ring(); // now `poll` has something to say
            }
        });
        let callables = start.callables.iter().map(|(digest, _)| *digest).collect();
        Ok(Self { callables, questions, answers })
    }
}

impl Endpoint for Primes {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.callables.contains(digest)
    }

    fn submit(&mut self, task: &Task<'_>, _: &mut Report) -> Result<(), Failure> {
        let asked = task.args.scalars().first().is_some_and(|n| self.questions.send(*n).is_ok());
        if asked { Ok(()) } else { Err(Failure::FATAL) }
    }

    fn poll(&mut self, report: &mut Report) -> Option<Result<(), Failure>> {
        let found = self.answers.try_recv().ok()?;
        Some(found.map_err(|text| {
            report.push_str(&text);
            Failure::MESSAGE
        }))
    }

    fn control(&mut self, _: &ControlRequest, _: &mut Report) -> Result<u64, Failure> {
        Err(Failure::MESSAGE)
    }

    fn shutdown(&mut self) {}
}
// ANCHOR_END: endpoint

// ANCHOR: use
fn main() -> Result<(), Error> {
    let worker = Worker::builder().build()?;
    let primes = worker.add_endpoint(OwnEndpoint::new("primes", Primes::open))?;
    let is_prime = worker.register_custom("is prime", 1, b"")?;
    worker.init()?;
    for n in [97, 91] {
        let args = TaskArgs::new().scalar(n).clone();
        match worker.run(|orch| Ok(orch.submit_next_level(&is_prime, primes, &args)?)) {
            Ok(_) => println!("{n} is a prime"),
            Err(error) => println!("{error}"),
        }
    }
    worker.close()
}
// ANCHOR_END: use
