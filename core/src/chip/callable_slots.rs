//! Which callable sits in which slot of a device (C-8).

use super::{CallableSlot, ChipError};

/// The callable slots of one device. `T` is what the backend keeps of a callable while it is registered.
///
/// ```
/// use laneway_core::chip::{CallableSlot, CallableSlots, ChipError};
///
/// # fn main() -> Result<(), ChipError> {
/// let mut callables = CallableSlots::new();
/// let slot = CallableSlot::new(5).expect("below 64");
/// callables.insert(slot, "add")?;
/// assert_eq!(callables.insert(slot, "mul"), Err(ChipError::CallableTaken { slot }));
/// assert_eq!(callables.get(slot), Ok(&"add"));
/// assert_eq!(callables.remove(slot), Ok("add"));
/// assert_eq!(callables.get(slot), Err(ChipError::CallableUnknown { slot }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CallableSlots<T> {
    slots: [Option<T>; CallableSlot::COUNT],
}

impl<T> Default for CallableSlots<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> CallableSlots<T> {
    /// A device without callables.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: [const { None }; CallableSlot::COUNT] }
    }

    /// What sits in a slot.
    ///
    /// # Errors
    /// [`ChipError::CallableUnknown`].
    pub fn get(&self, slot: CallableSlot) -> Result<&T, ChipError> {
        self.slots[slot.index()].as_ref().ok_or(ChipError::CallableUnknown { slot })
    }

    /// Refuses a slot that is taken; asked before anything is done for a callable.
    ///
    /// # Errors
    /// [`ChipError::CallableTaken`].
    pub const fn check_free(&self, slot: CallableSlot) -> Result<(), ChipError> {
        match self.slots[slot.index()] {
            None => Ok(()),
            Some(_) => Err(ChipError::CallableTaken { slot }),
        }
    }

    /// Fills an empty slot.
    ///
    /// # Errors
    /// [`ChipError::CallableTaken`]; `callable` is dropped.
    pub fn insert(&mut self, slot: CallableSlot, callable: T) -> Result<(), ChipError> {
        self.check_free(slot)?;
        self.slots[slot.index()] = Some(callable);
        Ok(())
    }

    /// Empties a slot.
    ///
    /// # Errors
    /// [`ChipError::CallableUnknown`].
    pub fn remove(&mut self, slot: CallableSlot) -> Result<T, ChipError> {
        self.slots[slot.index()].take().ok_or(ChipError::CallableUnknown { slot })
    }

    /// The slots that are taken, lowest first.
    pub fn taken(&self) -> impl Iterator<Item = CallableSlot> + '_ {
        (0..CallableSlot::COUNT).filter_map(CallableSlot::new).filter(|slot| self.slots[slot.index()].is_some())
    }
}
