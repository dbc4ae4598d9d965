//! Call configs, each stored once: nearly every task uses the all-zero one or that of its predecessor.

use alloc::vec::Vec;

use zerocopy::IntoBytes;

use crate::wire::{CallConfig, WireError};

#[derive(Clone, Debug)]
struct Entry {
    config: CallConfig,
    /// Bytes up to the end of the output prefix; what follows is not looked at.
    len: usize,
    holders: u32,
}

/// The configs that live tasks use. Entry 0 is the all-zero one and is never freed.
#[derive(Clone, Debug)]
pub(super) struct ConfigTable {
    entries: Vec<Entry>,
    /// The entry that was asked for last.
    last: u16,
    used: u32,
}

/// Offset of the output prefix, whose tail need not be read.
const PREFIX_AT: usize = core::mem::offset_of!(CallConfig, output_prefix);

impl ConfigTable {
    pub(super) fn new(capacity: u32) -> Self {
        let zero = Entry { config: CallConfig::ZERO, len: PREFIX_AT + 1, holders: 0 };
        Self { entries: alloc::vec![zero; capacity as usize], last: 0, used: 1 }
    }

    pub(super) fn capacity(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Entries in use, the all-zero one included.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    pub(super) fn get(&self, index: u16) -> &CallConfig {
        &self.entries[index as usize].config
    }

    /// One more holder of `config`; `Ok(None)` if the table is full.
    ///
    /// # Errors
    /// What [`CallConfig::validate`] says; a config that is in the table has passed it before.
    pub(super) fn hold(&mut self, config: &CallConfig) -> Result<Option<u16>, WireError> {
        if self.matches(self.last, config) {
            return Ok(Some(self.add_holder(self.last)));
        }
        if self.matches(0, config) {
            return Ok(Some(0));
        }
        config.validate()?;
        let len = PREFIX_AT + config.output_prefix()?.len() + 1;
        let used = |entry: &Entry| entry.holders > 0;
        let same = |entry: &Entry| entry.len == len && entry.config.as_bytes()[..len] == config.as_bytes()[..len];
        let found = self.entries.iter().skip(1).position(|entry| used(entry) && same(entry));
        let index = match found {
            Some(position) => position + 1,
            None => {
                let Some(free) = self.entries.iter().skip(1).position(|entry| !used(entry)) else { return Ok(None) };
                let entry = &mut self.entries[free + 1];
                entry.config = *config;
                entry.len = len;
                self.used += 1;
                free + 1
            }
        };
        self.last = index as u16;
        Ok(Some(self.add_holder(self.last)))
    }

    /// One holder less.
    pub(super) fn give_back(&mut self, index: u16) {
        if index == 0 {
            return;
        }
        let entry = &mut self.entries[index as usize];
        entry.holders -= 1;
        if entry.holders == 0 {
            self.used -= 1;
        }
    }

    fn add_holder(&mut self, index: u16) -> u16 {
        if index != 0 {
            self.entries[index as usize].holders += 1;
        }
        index
    }

    fn matches(&self, index: u16, config: &CallConfig) -> bool {
        let entry = &self.entries[index as usize];
        (index == 0 || entry.holders > 0) && entry.config.as_bytes()[..entry.len] == config.as_bytes()[..entry.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pmu(event: i32, prefix: &[u8]) -> CallConfig {
        let mut config = CallConfig { enable_pmu: event, ..CallConfig::ZERO };
        config.set_output_prefix(prefix).expect("a short path");
        config
    }

    #[test]
    fn equal_configs_share_an_entry_until_the_last_holder_is_gone() {
        let mut table = ConfigTable::new(3);
        assert_eq!(table.hold(&CallConfig::ZERO), Ok(Some(0)));
        let a = table.hold(&pmu(1, b"/a")).expect("valid").expect("room");
        assert_eq!(table.hold(&pmu(1, b"/a")), Ok(Some(a)));
        let b = table.hold(&pmu(1, b"/ab")).expect("valid").expect("room");
        assert_ne!(a, b);
        assert_eq!(table.hold(&pmu(2, b"/a")), Ok(None), "full");
        assert_eq!(table.hold(&pmu(1, b"/a")), Ok(Some(a)));
        for _ in 0..3 {
            table.give_back(a);
        }
        assert_eq!(table.hold(&pmu(2, b"/a")), Ok(Some(a)), "freed and used again");
        assert_eq!(table.get(a).enable_pmu, 2);
    }

    #[test]
    fn a_malformed_config_is_refused_and_takes_no_entry() {
        let mut table = ConfigTable::new(2);
        assert!(table.hold(&CallConfig { enable_pmu: 1, ..CallConfig::ZERO }).is_err());
        assert_eq!(table.used(), 1);
    }

    #[test]
    fn the_tail_behind_the_prefix_is_not_compared() {
        let mut table = ConfigTable::new(2);
        let mut dirty = CallConfig::ZERO;
        dirty.output_prefix[5] = 7;
        assert_eq!(table.hold(&dirty), Ok(Some(0)));
    }
}
