//! What a SUB child does with a task.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use laneway_core::serve::{Failure, Leaf, Report, Task};
use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;

use super::SubArgs;
use crate::callable::HostFn;
use crate::sys::panics;

/// Calls host functions by digest.
pub(crate) struct SubLeaf {
    functions: HashMap<Digest, HostFn>,
    shared: Vec<Range<u64>>,
}

impl SubLeaf {
    pub(crate) fn new(functions: HashMap<Digest, HostFn>, shared: Vec<Range<u64>>) -> Self {
        Self { functions, shared }
    }
}

impl Leaf for SubLeaf {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.functions.contains_key(digest)
    }

    fn run(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure> {
        // Known: the frame was refused otherwise.
        let Some(function) = self.functions.get(task.digest) else { return Err(Failure::MESSAGE) };
        let args = SubArgs::new(task.args, &self.shared);
        // The text is taken in there too: an error of the user's may panic when it is printed or dropped.
        let ended = panics::catch(|| function(&args).map_err(|error| error.to_string()));
        // A report that is full cuts what comes after; writing to it cannot fail.
        let _ = match ended {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(text)) => report.write_str(&text),
            Err(text) => write!(report, "panic: {text}"),
        };
        Err(Failure::MESSAGE)
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        let _ = write!(report, "a SUB child does not serve {:?}", request.command());
        Err(Failure::MESSAGE)
    }

    fn shutdown(&mut self) {}
}
