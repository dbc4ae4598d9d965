//! What a SUB child does with a task.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use laneway_core::serve::{Failure, Leaf, Report, Task};
use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;

use super::SubArgs;
use crate::Error;
use crate::callable::{Body, CallableName, HostFn, Role};
use crate::late::{Images, Payload};
use crate::sys::panics;
use crate::table::Table;
use crate::worker::{fail, fetch};

/// Calls host functions by digest.
pub(crate) struct SubLeaf {
    functions: Table<HostFn>,
    shared: Vec<Range<u64>>,
    /// The buffer region of the parent.
    staging: Range<u64>,
    images: Images,
}

impl SubLeaf {
    pub(crate) fn new(
        functions: HashMap<Digest, HostFn>,
        shared: Vec<Range<u64>>,
        staging: Range<u64>,
        images: Images,
    ) -> Self {
        Self { functions: Table::new(functions), shared, staging, images }
    }

    fn install(&mut self, digest: Digest, bytes: &[u8]) -> Result<(), Error> {
        let images = &self.images;
        self.functions.install(digest, || match Payload::decode(bytes, &digest, images)?.body()? {
            Body::Function(function) => Ok(function),
            other => {
                let callable = CallableName::unnamed(digest);
                Err(Error::CallableRole { callable, found: other.role(), wanted: Role::Function })
            }
        })
    }
}

impl Leaf for SubLeaf {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.functions.get(digest).is_some()
    }

    #[inline(always)]
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
        match *request {
            ControlRequest::PyRegister { staged, bytes, digest } => {
                let payload = fetch(&self.staging, staged, bytes, report)?;
                // Loading a library runs code of its own.
                let installed = panics::catch(|| self.install(digest, &payload).map_err(|error| error.to_string()));
                installed.unwrap_or_else(Err).map(|()| 0).map_err(|text| fail(report, &text))
            }
            ControlRequest::PyUnregister { digest } => {
                self.functions.remove(&digest);
                Ok(0)
            }
            _ => Err(fail(report, &format_args!("a SUB child does not serve {:?}", request.command()))),
        }
    }

    fn shutdown(&mut self) {}
}
