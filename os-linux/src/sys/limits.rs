//! What the machine must offer before anything is started: a kernel that is new enough, and descriptors (P-32).

use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::Error;

/// The oldest kernel that everything here works on.
pub const OLDEST_KERNEL: &str = "5.10";
const OLDEST: (u32, u32) = (5, 10);

/// Refuses a kernel that is too old.
///
/// # Errors
/// [`Error::Kernel`], with the release found.
pub fn check_kernel() -> Result<(), Error> {
    judge_release(&rustix::system::uname().release().to_string_lossy())
}

fn judge_release(release: &str) -> Result<(), Error> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().ok());
    let found = (numbers.next().flatten(), numbers.next().flatten());
    match found {
        (Some(major), Some(minor)) if (major, minor) >= OLDEST => Ok(()),
        _ => Err(Error::Kernel { found: release.to_owned() }),
    }
}

/// Refuses to start what needs `needed` more descriptors than can be opened.
///
/// # Errors
/// [`Error::Descriptors`] with all three numbers.
pub fn check_descriptors(needed: u64) -> Result<(), Error> {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    let open = open_descriptors();
    if needed > limit.saturating_sub(open) {
        return Err(Error::Descriptors { needed, open, limit });
    }
    Ok(())
}

/// Descriptors that this process has open; 0 where /proc cannot tell, which leaves the error to the call that fails.
fn open_descriptors() -> u64 {
    // The listing itself has one open, and shows it.
    fs::read_dir("/proc/self/fd").map_or(0, |entries| (entries.count() as u64).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P-32
    #[test]
    fn kernels_are_compared_by_number_not_by_text() {
        for good in ["5.10", "5.10.0-28-amd64", "5.100.1", "6.1.0", "10.0-rc1"] {
            assert_eq!(judge_release(good), Ok(()), "{good}");
        }
        for bad in ["5.9.16", "4.19.0", "3.10.0-1160.el7", "", "next"] {
            let error = judge_release(bad).unwrap_err().to_string();
            assert!(error.contains(bad) && error.contains("5.10"), "{error}");
        }
    }

    /// P-32
    #[test]
    fn too_few_descriptors_are_refused_with_the_numbers() {
        assert_eq!(check_descriptors(1), Ok(()));
        let Err(Error::Descriptors { needed, open, limit }) = check_descriptors(u64::MAX) else {
            panic!("accepted");
        };
        assert_eq!(needed, u64::MAX);
        assert!(open >= 3 && limit > open, "{open} {limit}");
    }
}
