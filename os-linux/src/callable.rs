//! Callables: what a worker's children can be asked to run, and the handles that name them.

use std::any::{Any, TypeId, type_name};
use std::error::Error as StdError;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use laneway_core::wire::{CallConfig, CallableKind, Digest, Namespace, TaskArgsView};

use crate::late::Late;
use crate::orchestrator::Orchestrator;
use crate::sub::SubArgs;

/// What a callable or a callback returns when it fails: any error, or a sentence turned into one with `?` or `.into()`.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// A host function as a SUB child calls it.
pub(crate) type HostFn = Arc<dyn Fn(&SubArgs<'_>) -> Result<(), BoxError> + Send + Sync>;

/// An orchestration as a nested worker calls it: it builds a run on that worker.
pub(crate) type OrchestrationFn =
    Arc<dyn Fn(&mut Orchestrator<'_>, TaskArgsView<'_>, &CallConfig) -> Result<(), BoxError> + Send + Sync>;

/// Which kind of child runs a callable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Role {
    /// A SUB child: a host function.
    Function,
    /// A nested worker: an orchestration.
    Orchestration,
    /// A chip.
    Chip,
    /// A child of a user's own kind (P-28).
    Custom,
}

impl Role {
    /// Where the digest is resolved.
    #[must_use]
    pub const fn namespace(self) -> Namespace {
        match self {
            Self::Function | Self::Orchestration | Self::Custom => Namespace::LocalPython,
            Self::Chip => Namespace::LocalChip,
        }
    }
}

impl Role {
    /// How a worker gets a child that runs it.
    pub(crate) const fn way_to_a_child(self) -> &'static str {
        match self {
            Self::Function => "ask for SUB children with subs(n)",
            Self::Orchestration => "add a nested worker with add_worker",
            Self::Chip => "add a chip with add_chip",
            Self::Custom => "add one with add_child",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function => "a host function, for SUB children",
            Self::Orchestration => "an orchestration, for nested workers",
            Self::Chip => "a chip callable",
            Self::Custom => "a callable for children of a user's own kind",
        })
    }
}

/// Names one registration of a callable with one worker. Cannot be made by hand; two registrations of the same
/// payload are two handles with one digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallableHandle {
    pub(crate) digest: Digest,
    pub(crate) kind: CallableKind,
    pub(crate) role: Role,
    pub(crate) owner: u64,
    pub(crate) id: u32,
    pub(crate) name: Arc<str>,
}

impl CallableHandle {
    /// SHA-256 of the canonical descriptor.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The name that it was registered under; of a chip callable the one that its blob carries.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn callable(&self) -> CallableName {
        CallableName { name: self.name.clone(), digest: self.digest }
    }

    /// What was registered.
    #[must_use]
    pub fn kind(&self) -> CallableKind {
        self.kind
    }

    /// Which kind of child runs it.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Where its digest is resolved.
    #[must_use]
    pub fn namespace(&self) -> Namespace {
        self.role.namespace()
    }
}

impl fmt::Display for CallableHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.digest)
    }
}

/// A callable in a message: its name and the first digits of its digest, or the whole digest if no name is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallableName {
    /// What it was registered as; empty if that is not known where the message was written.
    pub name: Arc<str>,
    /// What names it to children.
    pub digest: Digest,
}

impl CallableName {
    pub(crate) fn unnamed(digest: Digest) -> Self {
        Self { name: "".into(), digest }
    }
}

impl fmt::Display for CallableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.name {
            "" => write!(f, "callable {}", self.digest),
            name => write!(f, "{name} ({})", self.digest.short()),
        }
    }
}

/// What a digest stands for.
#[derive(Clone)]
pub(crate) enum Body {
    Function(HostFn),
    Orchestration(OrchestrationFn),
    Chip(Arc<[u8]>),
    Custom(Arc<[u8]>),
    /// Resolved in the child that calls it.
    Late(Late),
}

impl Body {
    pub(crate) fn role(&self) -> Role {
        match self {
            Self::Late(late) => late.role(),
            Self::Function(_) => Role::Function,
            Self::Orchestration(_) => Role::Orchestration,
            Self::Chip(_) => Role::Chip,
            Self::Custom(_) => Role::Custom,
        }
    }
}

/// Which function of a program a name was given to: its type, and for function pointers, which all have one type,
/// the address.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    type_id: TypeId,
    address: usize,
    name: &'static str,
    /// Where it was registered first; closures of one function have one name.
    place: &'static Location<'static>,
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        (self.type_id, self.address) == (other.type_id, other.address)
    }
}

impl Identity {
    /// The identity of `function`; `P` is the pointer type of its signature, whose address `address` tells.
    #[track_caller]
    pub(crate) fn of<F: 'static, P: 'static>(function: &F, address: impl FnOnce(&P) -> usize) -> Self {
        let address = (function as &dyn Any).downcast_ref::<P>().map_or(0, address);
        Self { type_id: TypeId::of::<F>(), address, name: type_name::<F>(), place: Location::caller() }
    }

    /// Whether the type and the address tell everything: nothing is captured.
    pub(crate) fn is_plain<F>(&self) -> bool {
        size_of::<F>() == 0 || self.address != 0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (registered at {})", self.name, self.place)
    }
}
