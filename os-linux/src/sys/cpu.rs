//! Which CPUs this process may use, and how much of them.
#![allow(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Error;

/// What the affinity mask (which holds the cpuset of the control group) and the quotas of the control groups allow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuBudget {
    /// CPUs that a thread of this process may run on, lowest first.
    pub cpus: Vec<usize>,
    /// Thousandths of a CPU that all processes of the control group share; `None` without a quota.
    pub quota_millis: Option<u64>,
}

impl CpuBudget {
    /// Reads both now; affinity and quotas can change at any time.
    #[must_use]
    pub fn read() -> Self {
        Self { cpus: affinity(), quota_millis: quota() }
    }

    /// How many threads can run at the same time for long: at least 1.
    #[must_use]
    pub fn usable(&self) -> usize {
        let quota = self
            .quota_millis
            .map_or(usize::MAX, |millis| usize::try_from(millis.div_ceil(1_000)).unwrap_or(usize::MAX));
        self.cpus.len().min(quota).max(1)
    }
}

/// The CPU that the calling thread is on, as a hint: it may be wrong by the time it is read. No system call.
#[inline]
#[must_use]
pub fn current() -> Option<u16> {
    // SAFETY: takes nothing and writes nothing.
    u16::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Moves the calling thread to another CPU that it may use, if there is one. Where it may run stays as it was.
pub fn leave(cpu: u16) {
    let Ok(all) = sched_getaffinity(None) else { return };
    let mut others = all;
    others.unset(usize::from(cpu));
    if others.count() > 0 && sched_setaffinity(None, &others).is_ok() {
        // Refused only if the control group's CPUs changed in between, and then it is where it belongs.
        let _ = sched_setaffinity(None, &all);
    }
}

/// Refuses CPUs that this process may not use, and an empty set (P-21).
///
/// # Errors
/// [`Error::Cpus`] with what was asked for and what is allowed.
pub fn check(asked: &[usize]) -> Result<(), Error> {
    let allowed = affinity();
    if asked.is_empty() || asked.iter().any(|cpu| !allowed.contains(cpu)) {
        return Err(Error::Cpus { asked: asked.to_vec(), allowed });
    }
    Ok(())
}

/// Keeps the calling thread, and what it starts from here on, on these CPUs (P-21).
///
/// # Errors
/// [`Error::Cpus`] if they cannot be used.
pub fn pin(asked: &[usize]) -> Result<(), Error> {
    check(asked)?;
    let mut set = CpuSet::new();
    asked.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
    sched_setaffinity(None, &set).map_err(|_| Error::Cpus { asked: asked.to_vec(), allowed: affinity() })
}

fn affinity() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        // A machine with more CPUs than the set has bits: count them at least.
        Err(_) => (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

/// The smallest quota of this process's control group and of those above it.
fn quota() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    [(Version::One, own_group(&groups, Version::One)), (Version::Two, own_group(&groups, Version::Two))]
        .into_iter()
        .filter_map(|(version, group)| {
            let (root, mount) = mounted(&mounts, version)?;
            smallest_up_to(&mount, &leaf(&mount, &root, &group?), version)
        })
        .min()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    One,
    Two,
}

impl Version {
    /// Thousandths of a CPU that this one group allows.
    fn quota_of(self, group: &Path) -> Option<u64> {
        match self {
            Self::One => {
                let quota = fs::read_to_string(group.join("cpu.cfs_quota_us")).ok()?;
                let period = fs::read_to_string(group.join("cpu.cfs_period_us")).ok()?;
                ratio(quota.trim(), period.trim())
            }
            Self::Two => {
                let both = fs::read_to_string(group.join("cpu.max")).ok()?;
                let (quota, period) = both.trim().split_once(' ')?;
                ratio(quota, period)
            }
        }
    }
}

/// "max" and "-1" are no quota, as is anything else that is no number.
fn ratio(quota: &str, period: &str) -> Option<u64> {
    let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?);
    quota.checked_mul(1_000)?.checked_div(period)
}

/// The path of this process in the hierarchy, from lines `id:controllers:path`.
fn own_group(groups: &str, version: Version) -> Option<PathBuf> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let found = match version {
            Version::One => controllers.split(',').any(|controller| controller == "cpu"),
            Version::Two => id == "0" && controllers.is_empty(),
        };
        found.then(|| PathBuf::from(path))
    })
}

/// Which part of the hierarchy is mounted, and where, from lines `… root mount-point … - type source options`.
fn mounted(mounts: &str, version: Version) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        let mut head = head.split(' ').skip(3);
        let (root, mount) = (head.next()?, head.next()?);
        let mut tail = tail.split(' ');
        let (kind, options) = (tail.next()?, tail.nth(1)?);
        let found = match version {
            Version::One => kind == "cgroup" && options.split(',').any(|option| option == "cpu"),
            Version::Two => kind == "cgroup2",
        };
        found.then(|| (PathBuf::from(root), PathBuf::from(mount)))
    })
}

/// Where the group is found below the mount point; the mount point itself if the two do not fit, as in a container that
/// sees its own group alone.
fn leaf(mount: &Path, root: &Path, group: &Path) -> PathBuf {
    group.strip_prefix(root).map_or_else(|_| mount.to_owned(), |rest| mount.join(rest))
}

fn smallest_up_to(mount: &Path, leaf: &Path, version: Version) -> Option<u64> {
    leaf.ancestors().take_while(|group| group.starts_with(mount)).filter_map(|group| version.quota_of(group)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_of_this_process_is_at_least_one_cpu_and_holds_the_current_one() {
        let budget = CpuBudget::read();
        assert!(budget.usable() >= 1 && budget.usable() <= budget.cpus.len());
        assert!(budget.cpus.contains(&usize::from(current().unwrap())));
    }

    #[test]
    fn a_quota_rounds_up_to_whole_cpus_and_never_to_none() {
        let budget = |cpus, quota_millis| CpuBudget { cpus: (0..cpus).collect(), quota_millis }.usable();
        assert_eq!(budget(8, None), 8);
        assert_eq!(budget(8, Some(1_500)), 2);
        assert_eq!(budget(8, Some(100)), 1);
        assert_eq!(budget(1, Some(64_000)), 1);
        assert_eq!(budget(0, Some(0)), 1);
    }

    #[test]
    fn the_smallest_quota_on_the_way_up_counts() {
        let mount = std::env::temp_dir().join(format!("laneway-cgroup-{}", std::process::id()));
        let leaf = mount.join("outer/inner");
        fs::create_dir_all(&leaf).unwrap();
        fs::write(mount.join("cpu.max"), "max 100000\n").unwrap();
        fs::write(mount.join("outer/cpu.max"), "150000 100000\n").unwrap();
        fs::write(leaf.join("cpu.max"), "400000 100000\n").unwrap();
        let found = smallest_up_to(&mount, &leaf, Version::Two);
        fs::write(leaf.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(leaf.join("cpu.cfs_period_us"), "100000\n").unwrap();
        let unlimited = smallest_up_to(&mount, &leaf, Version::One);
        fs::write(mount.join("cpu.cfs_quota_us"), "50000\n").unwrap();
        fs::write(mount.join("cpu.cfs_period_us"), "100000\n").unwrap();
        let limited = smallest_up_to(&mount, &leaf, Version::One);
        fs::remove_dir_all(&mount).unwrap();
        assert_eq!((found, unlimited, limited), (Some(1_500), None, Some(500)));
    }

    #[test]
    fn group_and_mount_are_found_in_what_the_kernel_prints() {
        let groups = "4:memory:/a\n1:cpu,cpuacct:/docker/x\n0::/user.slice/s:1\n";
        assert_eq!(own_group(groups, Version::One), Some(PathBuf::from("/docker/x")));
        assert_eq!(own_group(groups, Version::Two), Some(PathBuf::from("/user.slice/s:1")));
        let mounts = "30 24 0:26 / /proc rw - proc proc rw\n\
                      31 24 0:27 /docker/x /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                      32 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let (root, mount) = mounted(mounts, Version::One).unwrap();
        assert_eq!(leaf(&mount, &root, Path::new("/docker/x/y")), Path::new("/sys/fs/cgroup/cpu/y"));
        assert_eq!(leaf(&mount, &root, Path::new("/elsewhere")), Path::new("/sys/fs/cgroup/cpu"));
        assert_eq!(mounted(mounts, Version::Two).unwrap().1, Path::new("/sys/fs/cgroup/unified"));
    }

    /// P-21
    #[test]
    fn a_cpu_that_does_not_exist_is_refused_with_both_sets() {
        let error = pin(&[1_000_000]).unwrap_err().to_string();
        let allowed = format!("{:?}", affinity());
        assert!(error.contains("[1000000]") && error.contains(&allowed), "{error}");
        assert!(check(&[]).is_err());
    }
}
