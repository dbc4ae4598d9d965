//! Executable images that were mapped before the forks: what an address means the same thing in every process of.

use std::fs;
use std::ops::Range;

/// Address ranges that hold code, as they were before the forks.
#[derive(Clone, Debug)]
pub(crate) struct Images(Vec<Range<u64>>);

impl Images {
    /// The present ones of this process; none where /proc cannot tell.
    pub(crate) fn mapped() -> Self {
        Self(parse(&fs::read_to_string("/proc/self/maps").unwrap_or_default()))
    }

    pub(crate) fn hold(&self, address: u64) -> bool {
        self.0.iter().any(|range| range.contains(&address))
    }
}

/// Lines `start-end perms offset dev inode path`; code that no file backs was made at run time and is nobody else's.
fn parse(maps: &str) -> Vec<Range<u64>> {
    let range = |line: &str| {
        let mut fields = line.split_whitespace();
        let (range, access) = (fields.next()?, fields.next()?);
        let inode = fields.nth(2)?;
        let (start, end) = range.split_once('-')?;
        let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        (access.contains('x') && inode != "0").then_some(range)
    };
    maps.lines().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn code_of_files_is_held_and_nothing_else() {
        let images = Images::mapped();
        let here = (code_of_files_is_held_and_nothing_else as *const ()).addr() as u64;
        let data = (&raw const images).addr() as u64;
        assert!(images.hold(here) && !images.hold(data) && !images.hold(0));
        let maps = "1000-2000 r-xp 0 08:01 7 /bin/x\n2000-3000 rw-p 0 08:01 7 /bin/x\n4000-5000 r-xp 0 00:00 0 \nbad\n";
        assert_eq!(parse(maps), [Range { start: 0x1000, end: 0x2000 }]);
    }
}
