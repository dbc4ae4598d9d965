//! How much memory this process and its children can use: what a SIGKILL of the kernel's may be about (P-33).

use std::fs;
use std::path::Path;

/// Where the one hierarchy is mounted, and that of memory where each controller has its own.
const UNIFIED: &str = "/sys/fs/cgroup";
const MEMORY: &str = "/sys/fs/cgroup/memory";

/// Bytes: the smallest limit of this process's control group and of those above it, or all memory of the machine if that is
/// less. `None` where /proc cannot tell.
pub(crate) fn memory_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().filter_map(of_group);
    limits.chain(line_of("MemTotal:", &meminfo())).min()
}

/// Bytes that may be swapped out besides: what the machine has, or less where a control group says so.
pub(crate) fn swap() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().filter_map(swap_of_group);
    limits.chain(line_of("SwapTotal:", &meminfo())).min().unwrap_or(0)
}

fn meminfo() -> String {
    fs::read_to_string("/proc/meminfo").unwrap_or_default()
}

/// The group that one line `id:controllers:path` names, if it is one that limits memory: where its hierarchy is mounted as usual, and
/// its path there.
fn group(line: &str) -> Option<(&'static str, &str)> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    match controllers {
        "" => Some((UNIFIED, path)),
        _ => controllers.split(',').any(|name| name == "memory").then_some((MEMORY, path)),
    }
}

fn of_group(line: &str) -> Option<u64> {
    let (mount, path) = group(line)?;
    let file = if mount == UNIFIED { "memory.max" } else { "memory.limit_in_bytes" };
    smallest_up_to(Path::new(mount), path, file)
}

fn swap_of_group(line: &str) -> Option<u64> {
    let (mount, path) = group(line)?;
    let limit = |file| smallest_up_to(Path::new(mount), path, file);
    if mount == UNIFIED {
        return limit("memory.swap.max");
    }
    // The older hierarchy limits memory and swap together.
    Some(limit("memory.memsw.limit_in_bytes")?.saturating_sub(of_group(line)?))
}

/// "max" is no limit. In a container the path may be one of the host's, which is not there: what is mounted is its own then.
fn smallest_up_to(mount: &Path, path: &str, file: &str) -> Option<u64> {
    let leaf = mount.join(path.trim_start_matches('/'));
    let up = leaf.ancestors().take_while(|group| group.starts_with(mount));
    up.filter_map(|group| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()).min()
}

/// The bytes that one line of it tells.
fn line_of(name: &str, meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P-33
    #[test]
    fn the_machine_is_the_limit_where_no_group_is() {
        assert_eq!(line_of("MemTotal:", "MemTotal:       16000 kB\nMemFree: 1 kB\n"), Some(16_384_000));
        assert_eq!((line_of("MemTotal:", ""), of_group("1:cpu:/x"), of_group("nonsense")), (None, None, None));
        assert_eq!((group("0::/a"), group("4:cpu,memory:/b:c")), (Some((UNIFIED, "/a")), Some((MEMORY, "/b:c"))));
        let limit = memory_limit().unwrap();
        assert!(limit > 0 && limit <= line_of("MemTotal:", &meminfo()).unwrap());
    }

    /// P-33
    #[test]
    fn the_smallest_limit_on_the_way_up_counts() {
        let mount = std::env::temp_dir().join(format!("laneway-memory-{}", std::process::id()));
        let leaf = mount.join("outer/inner");
        fs::create_dir_all(&leaf).unwrap();
        for (group, text) in [(&mount, "max"), (&mount.join("outer"), "4096\n"), (&leaf, "8192\n")] {
            fs::write(group.join("memory.max"), text).unwrap();
        }
        let found = smallest_up_to(&mount, "/outer/inner", "memory.max");
        let elsewhere = smallest_up_to(&mount, "/not/here", "memory.max");
        fs::remove_dir_all(&mount).unwrap();
        assert_eq!((found, elsewhere), (Some(4096), None));
    }
}
