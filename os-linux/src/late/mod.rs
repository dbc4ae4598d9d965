//! Host callables that reach children which exist already: a function of this very program with data that it
//! captured, or a symbol of a shared library.

mod images;
mod library;
mod payload;

use std::sync::Arc;

use laneway_core::model::identity::{self, Descriptor};
use laneway_core::wire::{CallConfig, Digest, TaskArgsView};

use crate::Error;
use crate::callable::{Body, BoxError, Role};
use crate::orchestrator::Orchestrator;
use crate::sub::SubArgs;

pub(crate) use images::Images;
pub use library::NativeCall;
pub(crate) use payload::Payload;

/// A host function of this program, with the bytes that it was registered with.
pub type LateFn = fn(&SubArgs<'_>, &[u8]) -> Result<(), BoxError>;

/// An orchestration of this program, with the bytes that it was registered with.
pub type LateOrchestration = fn(&mut Orchestrator<'_>, TaskArgsView<'_>, &CallConfig, &[u8]) -> Result<(), BoxError>;

/// What is to be called.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Function(LateFn),
    Orchestration(LateOrchestration),
    /// A symbol of a shared library, for SUB children.
    Symbol {
        path: String,
        symbol: String,
    },
}

/// A callable that can be sent to a child.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) target: Target,
    pub(crate) captured: Vec<u8>,
}

impl Late {
    pub(crate) fn role(&self) -> Role {
        match self.target {
            Target::Function(_) | Target::Symbol { .. } => Role::Function,
            Target::Orchestration(_) => Role::Orchestration,
        }
    }

    /// R-1, kind 4, instance 0.
    pub(crate) fn digest(&self) -> Result<Digest, Error> {
        let captured = identity::sha256(&self.captured);
        Ok(Descriptor::Native { name: &self.name, version: self.version, captured, instance: 0 }.digest()?)
    }

    /// What tells it from another callable of the same name, for people.
    pub(crate) fn identity(&self) -> String {
        match &self.target {
            Target::Function(function) => format!("the function at {:#x}", (*function as *const ()).addr()),
            Target::Orchestration(function) => format!("the orchestration at {:#x}", (*function as *const ()).addr()),
            Target::Symbol { path, symbol } => format!("symbol {symbol} of {path}"),
        }
    }

    /// The address that must lie in an image which the children have too.
    pub(crate) fn address(&self) -> Option<u64> {
        match &self.target {
            Target::Function(function) => Some((*function as *const ()).addr() as u64),
            Target::Orchestration(function) => Some((*function as *const ()).addr() as u64),
            Target::Symbol { .. } => None,
        }
    }

    /// What a child calls. Loads the library if it is one of a library.
    pub(crate) fn body(self) -> Result<Body, Error> {
        let captured = self.captured;
        Ok(match self.target {
            Target::Function(function) => Body::Function(Arc::new(move |args| function(args, &captured))),
            Target::Orchestration(function) => {
                Body::Orchestration(Arc::new(move |orch, args, config| function(orch, args, config, &captured)))
            }
            Target::Symbol { path, symbol } => {
                let entry = library::Entry::load(&path, &symbol)?;
                Body::Function(Arc::new(move |args| entry.call(args, &captured)))
            }
        })
    }
}
