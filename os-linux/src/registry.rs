//! What one worker has registered: digests, what they stand for, where they stand, and the handles that are alive.

use std::collections::HashMap;
use std::sync::Arc;

use laneway_core::chip::{CallableSlot, Platform, RuntimeKind};
use laneway_core::model::identity::{self, Descriptor};
use laneway_core::wire::{CallableKind, ChipCallable, Digest};

use crate::callable::{Body, CallableHandle, CallableName, Identity, Role};
use crate::error::{CallableError, Error};
use crate::late::Late;
use crate::snapshot::{Named, Snapshot};

/// The version of callables that are registered without one.
const VERSION: u32 = 1;

/// All registrations of one worker.
pub(crate) struct Registry {
    owner: u64,
    closures: u64,
    /// By handle id: whether it was not unregistered.
    alive: Vec<bool>,
    by_digest: HashMap<Digest, Entry>,
}

/// One digest.
struct Entry {
    /// What its user called it; what a chip callable calls itself.
    name: Arc<str>,
    role: Role,
    kind: CallableKind,
    standing: Standing,
    /// What the fork carries into the children; absent for what was registered later.
    body: Option<Body>,
    /// Which function has the name, where it is one.
    function: Option<Function>,
    /// Handles of this worker's user that are alive.
    handles: u32,
    /// The handle by which orchestrations name what the worker above registered.
    above: Option<u32>,
}

/// Where a digest stands.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Standing {
    /// The children are being asked.
    Installing,
    /// Every child in scope has it, or will inherit it.
    Ready,
    /// The last handle is gone; the children are being asked to forget it.
    Leaving,
    /// Some child may have it and some not, and that could not be mended.
    Uncertain(String),
}

/// Which function a name was given to.
#[derive(Clone, PartialEq, Debug)]
enum Function {
    Inherited(Identity),
    Late(String),
}

impl Function {
    fn text(&self) -> String {
        match self {
            Self::Inherited(identity) => identity.to_string(),
            Self::Late(text) => text.clone(),
        }
    }
}

/// What the caller of [`Registry::begin`] has to do.
pub(crate) enum Begun {
    /// Nothing: the children have it.
    Known(CallableHandle),
    /// Wait, and ask again: somebody else is installing it.
    Busy,
    /// Install it in the children, then say how that went.
    New,
}

/// What the caller of an unregistration has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Left {
    /// Nothing: other handles are alive.
    Lowered,
    /// Remove it from the children, then say how that went.
    Last,
}

/// A callable to be registered.
pub(crate) struct Newcomer<'a> {
    pub(crate) digest: Digest,
    pub(crate) role: Role,
    pub(crate) kind: CallableKind,
    /// What its user calls it; what a chip callable calls itself.
    pub(crate) name: &'a str,
    /// Which function has the name, where it is one.
    pub(crate) function: Option<String>,
}

impl Registry {
    /// An empty registry of the worker `owner`, a number unique in this process tree.
    pub(crate) fn new(owner: u64) -> Self {
        Self { owner, closures: 0, alive: Vec::new(), by_digest: HashMap::new() }
    }

    /// Registers a function of this program that the fork carries into the children. `plain` says that it captures nothing;
    /// everything else gets an ordinal, so that closures registered in a loop differ (R-1, kind 4).
    pub(crate) fn inherit(
        &mut self,
        name: &str,
        identity: Identity,
        plain: bool,
        body: Body,
    ) -> Result<CallableHandle, Error> {
        let instance = if plain { 0 } else { self.closures + 1 };
        let captured = identity::sha256(&[]);
        let digest = Descriptor::Native { name, version: VERSION, captured, instance }.digest()?;
        let handle = self.enter(name, digest, CallableKind::Native, body, Some(Function::Inherited(identity)))?;
        self.closures = self.closures.max(instance);
        Ok(handle)
    }

    /// Registers a late callable before the forks: its children inherit it.
    pub(crate) fn inherit_late(&mut self, late: Late) -> Result<CallableHandle, Error> {
        let (digest, function) = (late.digest()?, Function::Late(late.identity()));
        let name = late.name.clone();
        self.enter(&name, digest, CallableKind::Native, Body::Late(late), Some(function))
    }

    /// Registers a chip callable blob before the forks; the same blob twice is one entry and two handles.
    pub(crate) fn chip(
        &mut self,
        platform: Platform,
        runtime: RuntimeKind,
        blob: &[u8],
    ) -> Result<CallableHandle, Error> {
        let digest = chip_digest(platform, runtime, blob)?;
        self.enter(
            ChipCallable::parse(blob)?.func_name(),
            digest,
            CallableKind::ChipCallable,
            Body::Chip(blob.into()),
            None,
        )
    }

    /// Registers bytes for children of a user's own kind.
    pub(crate) fn custom(&mut self, name: &str, version: u32, bytes: &[u8]) -> Result<CallableHandle, Error> {
        let captured = identity::sha256(bytes);
        let digest = Descriptor::Native { name, version, captured, instance: 0 }.digest()?;
        let function = Function::Late("bytes for children of a user's own kind".to_owned());
        self.enter(name, digest, CallableKind::Native, Body::Custom(bytes.into()), Some(function))
    }

    fn enter(
        &mut self,
        name: &str,
        digest: Digest,
        kind: CallableKind,
        body: Body,
        function: Option<Function>,
    ) -> Result<CallableHandle, Error> {
        let role = body.role();
        if !self.by_digest.contains_key(&digest) {
            self.check_slots(role)?;
            let (name, standing) = (name.into(), Standing::Ready);
            let entry = Entry { name, role, kind, standing, body: Some(body), function, handles: 0, above: None };
            self.by_digest.insert(digest, entry);
        } else if let (Some(asked), Some(taken)) = (&function, &self.by_digest[&digest].function)
            && asked != taken
        {
            let (taken, asked) = (taken.text(), asked.text());
            return Err(CallableError::CallableNameTaken { name: name.to_owned(), taken, asked }.into());
        }
        Ok(self.handle(digest))
    }

    /// Takes over the chip callables of the worker above, for the chips below.
    pub(crate) fn adopt_chips(&mut self, blobs: Vec<Named>) {
        for (digest, blob) in blobs {
            let id = self.new_id();
            let name = chip_name(&blob).into();
            let entry = self.by_digest.entry(digest).or_insert(Entry {
                name,
                role: Role::Chip,
                kind: CallableKind::ChipCallable,
                standing: Standing::Ready,
                body: Some(Body::Chip(blob)),
                function: None,
                handles: 0,
                above: None,
            });
            entry.above = Some(id);
        }
    }

    /// Begins a registration after the forks.
    pub(crate) fn begin(&mut self, newcomer: &Newcomer<'_>) -> Result<Begun, Error> {
        let digest = newcomer.digest;
        let function = newcomer.function.clone().map(Function::Late);
        let Some(entry) = self.by_digest.get(&digest) else {
            self.check_slots(newcomer.role)?;
            let (role, kind) = (newcomer.role, newcomer.kind);
            let standing = Standing::Installing;
            let name = newcomer.name.into();
            self.by_digest
                .insert(digest, Entry { name, role, kind, standing, body: None, function, handles: 0, above: None });
            return Ok(Begun::New);
        };
        if let (Some(asked), Some(taken)) = (&function, &entry.function)
            && asked != taken
        {
            let (name, taken, asked) = (newcomer.name.to_owned(), taken.text(), asked.text());
            return Err(CallableError::CallableNameTaken { name, taken, asked }.into());
        }
        match &entry.standing {
            Standing::Installing => Ok(Begun::Busy),
            Standing::Ready => Ok(Begun::Known(self.handle(digest))),
            Standing::Leaving => {
                Err(CallableError::RegisterTombstoneActive { callable: entry.callable(digest) }.into())
            }
            Standing::Uncertain(what) => {
                let callable = entry.callable(digest);
                Err(CallableError::RegisterCleanupUncertain { callable, what: what.clone() }.into())
            }
        }
    }

    /// The children have it.
    pub(crate) fn installed(&mut self, digest: Digest) -> CallableHandle {
        if let Some(entry) = self.by_digest.get_mut(&digest) {
            entry.standing = Standing::Ready;
        }
        self.handle(digest)
    }

    /// No child has it.
    pub(crate) fn forget(&mut self, digest: &Digest) {
        self.by_digest.remove(digest);
    }

    /// Nobody knows who has it: it cannot be used as long as this worker lives.
    pub(crate) fn doubt(&mut self, digest: &Digest, what: String) {
        if let Some(entry) = self.by_digest.get_mut(digest) {
            entry.standing = Standing::Uncertain(what);
        }
    }

    /// Ends a handle: submits with it are refused from now on.
    pub(crate) fn leave(&mut self, handle: &CallableHandle) -> Result<Left, CallableError> {
        let digest = handle.digest;
        let entry = self.by_digest.get_mut(&digest);
        if let (true, Some(Entry { standing: Standing::Leaving, .. })) = (handle.owner == self.owner, &entry) {
            return Err(CallableError::UnregisterTombstoneActive { callable: handle.callable() });
        }
        let alive = handle.owner == self.owner && self.alive.get(handle.id as usize) == Some(&true);
        let Some(entry) = entry.filter(|_| alive) else { return Err(self.dead(handle)) };
        if entry.above == Some(handle.id) {
            let why = "the worker above registered it, and it alone can unregister it";
            return Err(CallableError::CallableHandleMutated { callable: handle.callable(), why });
        }
        self.alive[handle.id as usize] = false;
        entry.handles -= 1;
        Ok(entry.leave_if_unused())
    }

    /// The worker above registered it, and the children have it.
    pub(crate) fn installed_from_above(&mut self, digest: Digest) {
        if let Some(entry) = self.by_digest.get_mut(&digest).filter(|entry| entry.above.is_none()) {
            self.alive.push(true);
            entry.above = Some((self.alive.len() - 1) as u32);
        }
    }

    /// The worker above unregistered it. An unknown one is no error.
    pub(crate) fn leave_from_above(&mut self, digest: &Digest) -> Left {
        let Some(entry) = self.by_digest.get_mut(digest) else { return Left::Lowered };
        match entry.above.take() {
            Some(id) => {
                self.alive[id as usize] = false;
                entry.leave_if_unused()
            }
            None => Left::Lowered,
        }
    }

    /// The handle of what the worker above registered.
    pub(crate) fn handle_from_above(&self, digest: &Digest) -> Option<CallableHandle> {
        let entry = self.by_digest.get(digest).filter(|entry| entry.standing == Standing::Ready)?;
        let (kind, role, name) = (entry.kind, entry.role, entry.name.clone());
        Some(CallableHandle { digest: *digest, kind, role, owner: self.owner, id: entry.above?, name })
    }

    ///
    fn check_slots(&self, role: Role) -> Result<(), CallableError> {
        let slots = CallableSlot::COUNT;
        let taken = self.by_digest.values().filter(|entry| entry.role == Role::Chip).count();
        if role != Role::Chip || taken < slots { Ok(()) } else { Err(CallableError::LocalSlotExhausted { slots }) }
    }

    fn new_id(&mut self) -> u32 {
        self.alive.push(true);
        (self.alive.len() - 1) as u32
    }

    /// A new handle of a digest that has an entry.
    fn handle(&mut self, digest: Digest) -> CallableHandle {
        let (id, owner) = (self.new_id(), self.owner);
        let (mut kind, mut role, mut name) = (CallableKind::Native, Role::Function, "".into());
        if let Some(entry) = self.by_digest.get_mut(&digest) {
            entry.handles += 1;
            (kind, role, name) = (entry.kind, entry.role, entry.name.clone());
        }
        CallableHandle { digest, kind, role, owner, id, name }
    }

    fn dead(&self, handle: &CallableHandle) -> CallableError {
        let foreign = handle.owner != self.owner;
        let why = if foreign { "another worker registered it" } else { "it was unregistered" };
        CallableError::CallableHandleMutated { callable: handle.callable(), why }
    }

    /// Refuses a handle of another worker, a dead one, or one that the target's kind of child cannot run.
    pub(crate) fn check(&self, handle: &CallableHandle, wanted: Role) -> Result<(), Error> {
        if handle.owner != self.owner || self.alive.get(handle.id as usize) != Some(&true) {
            return Err(self.dead(handle).into());
        }
        if handle.namespace() != wanted.namespace() {
            let (found, wanted) = (handle.namespace(), wanted.namespace());
            return Err(Error::CallableNamespace { callable: handle.callable(), found, wanted });
        }
        if handle.role != wanted {
            return Err(Error::CallableRole { callable: handle.callable(), found: handle.role, wanted });
        }
        Ok(())
    }

    /// What each callable is called that has a name.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&Digest, &str)> {
        self.by_digest.iter().map(|(digest, entry)| (digest, &*entry.name)).filter(|(_, name)| !name.is_empty())
    }

    /// What a callable is called, if it has a name.
    pub(crate) fn name_of(&self, digest: &Digest) -> Option<&str> {
        self.by_digest.get(digest).map(|entry| &*entry.name).filter(|name| !name.is_empty())
    }

    /// One callable that only such children run as `served` accepts none of.
    pub(crate) fn unresolvable(&self, served: impl Fn(Role) -> bool) -> Option<(CallableName, Role)> {
        let orphans = self.by_digest.iter().filter(|(_, entry)| !served(entry.role));
        let first = orphans.min_by_key(|(digest, _)| *digest);
        first.map(|(digest, entry)| (entry.callable(*digest), entry.role))
    }

    /// What messages call a callable.
    pub(crate) fn callable(&self, digest: Digest) -> CallableName {
        self.by_digest.get(&digest).map_or_else(|| CallableName::unnamed(digest), |entry| entry.callable(digest))
    }

    /// What the children are going to have.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let entry = |(digest, entry): (&Digest, &Entry)| Some((*digest, entry.role, entry.body.clone()?));
        Snapshot::new(self.by_digest.iter().filter_map(entry))
    }
}

impl Entry {
    fn callable(&self, digest: Digest) -> CallableName {
        CallableName { name: self.name.clone(), digest }
    }

    fn leave_if_unused(&mut self) -> Left {
        if self.handles > 0 || self.above.is_some() {
            return Left::Lowered;
        }
        self.standing = Standing::Leaving;
        Left::Last
    }
}

/// What a chip callable calls itself; nothing if the blob is none.
pub(crate) fn chip_name(blob: &[u8]) -> &str {
    ChipCallable::parse(blob).map_or("", |callable| callable.func_name())
}

/// What names a chip callable blob that was built for `platform` and `runtime`.
pub(crate) fn chip_digest(platform: Platform, runtime: RuntimeKind, blob: &[u8]) -> Result<Digest, Error> {
    let callable = ChipCallable::parse(blob)?;
    let descriptor = Descriptor::ChipCallable {
        platform: platform.name(),
        runtime: runtime.name(),
        blob: identity::sha256(blob),
        signature: identity::signature_digest(callable.signature()),
    };
    Ok(descriptor.digest()?)
}

/// Refuses a blob that is not the chip callable called `digest`, whatever it was built for.
pub(crate) fn check_chip_blob(digest: &Digest, blob: &[u8]) -> Result<(), Error> {
    for platform in Platform::ALL {
        for runtime in RuntimeKind::ALL {
            if chip_digest(platform, runtime, blob)? == *digest {
                return Ok(());
            }
        }
    }
    Err(CallableError::HashidDescriptorMismatch { digest: *digest }.into())
}
