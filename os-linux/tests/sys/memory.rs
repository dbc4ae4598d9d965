//! Shared memory as children see it (P-18, P-24, P-31).
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use laneway_core::mailbox::Words;
use laneway_linux::Error;
use laneway_linux::child_entry::ChildSpec;
use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::exit::Exit;
use laneway_linux::sys::page::ReadOnlyPage;
use laneway_linux::sys::region::{Region, Sharing};
use laneway_linux::sys::words::MappedWords;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::harness::Channel;
use crate::support::{HEAD, child, exit_of, is_mapped, is_open};

/// P-24
pub(crate) fn a_region_cannot_be_resized_by_a_child() {
    let region = Region::new("tensors", 1 << 20, Sharing::Tree).unwrap();
    let channel = Channel::new();
    let mut started = child(&HEAD, |_| {
        // The one way to a descriptor: privileged processes can open what they have mapped.
        let path = format!("/proc/self/map_files/{:x}-{:x}", region.start(), region.start() + region.len());
        let answers: Vec<_> = [0, 1 << 30]
            .into_iter()
            .map(|len| OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(len)))
            .map(|answer| answer.map_err(|error| error.kind() == std::io::ErrorKind::PermissionDenied))
            .collect();
        channel.send(format!("{answers:?}").as_bytes());
        // SAFETY: the region outlives the words.
        let words = unsafe { MappedWords::new(&region) };
        words.write(region.len() - 8, 42);
        0
    });
    assert_eq!(channel.receive_text(), "[Err(true), Err(true)]");
    assert!(exit_of(&mut started).is_success());
    // SAFETY: the region outlives the words.
    assert_eq!(unsafe { MappedWords::new(&region) }.read(region.len() - 8), 42);
}

/// The bell page (design: waiting): children can only read it.
pub(crate) fn a_read_only_page_cannot_be_written_by_a_child() {
    let page = ReadOnlyPage::new("bell").unwrap();
    // SAFETY: the page outlives the words, which stay in this process.
    let writer = unsafe { page.writer() };
    // SAFETY: the page outlives the words, and children are given it.
    let reader = unsafe { page.reader() };
    let own = writer_address();
    let spec = ChildSpec { keep_mappings: &[page.start()], ..HEAD };
    let channel = Channel::new();
    writer.store(0, 1);
    let mut looking = child(&spec, |_| {
        let (start, len) = (page.start(), rustix::param::page_size());
        let at = std::ptr::with_exposed_provenance_mut::<libc::c_void>(start);
        // SAFETY: expected to be refused; nothing changes then.
        let answer = unsafe { libc::mprotect(at, len, libc::PROT_READ | libc::PROT_WRITE) };
        channel.send(format!("{answer} {} {}", reader.load(0), own.iter().any(|&at| is_mapped(at))).as_bytes());
        0
    });
    assert_eq!(channel.receive_text(), "-1 1 false");
    assert!(exit_of(&mut looking).is_success());
    let mut writing = child(&spec, |_| {
        // SAFETY: expected to end the process, which is the point.
        unsafe { std::ptr::with_exposed_provenance_mut::<i32>(page.start()).write_volatile(2) };
        0
    });
    assert_eq!(exit_of(&mut writing).to_string(), "signal 11 (SIGSEGV)");
    assert_eq!(reader.load(0), 1);
}

/// Where this process has a writable mapping of the bell page.
fn writer_address() -> Vec<usize> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let writable = maps.lines().filter(|line| line.contains("/memfd:bell") && line.contains("rw-s"));
    let found: Vec<_> =
        writable.map(|line| usize::from_str_radix(line.split('-').next().unwrap(), 16).unwrap()).collect();
    assert_eq!(found.len(), 1);
    found
}

/// P-32, P-33
pub(crate) fn limits_in_the_way_of_a_region_are_named() {
    let limited = |resource, setting: &str| {
        let mut started = child(&HEAD, |_| {
            setrlimit(resource, Rlimit { current: Some(1 << 30), maximum: None }).unwrap();
            let error = Region::new("heap ring 3", 1 << 40, Sharing::Tree).unwrap_err();
            let Error::MemoryLimit { needed, limit, .. } = &error else { panic!("{error:?}") };
            assert_eq!((*needed, *limit), (1 << 40, 1 << 30));
            assert!(error.to_string().contains(setting) && error.to_string().contains("heap ring 3"), "{error}");
            0
        });
        assert!(exit_of(&mut started).is_success());
    };
    limited(Resource::As, "RLIMIT_AS");
    limited(Resource::Fsize, "RLIMIT_FSIZE");
    let mut started = child(&HEAD, |_| {
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) }).unwrap();
        laneway_linux::sys::limits::check_descriptors(10).unwrap();
        let error = laneway_linux::sys::limits::check_descriptors(61).unwrap_err().to_string();
        assert!(error.starts_with("61 descriptors are needed") && error.contains("RLIMIT_NOFILE is 64"), "{error}");
        0
    });
    assert!(exit_of(&mut started).is_success());
}

/// T-52: the page tables of regions are not copied. 256 MiB of private pages would take several milliseconds.
pub(crate) fn a_fork_is_not_slowed_by_resident_regions() {
    let fastest = || {
        let times = (0..10).map(|_| {
            let start = Instant::now();
            let mut started = child(&HEAD, |_| 0);
            let took = start.elapsed();
            assert!(exit_of(&mut started).is_success());
            took
        });
        times.min().unwrap()
    };
    let before = fastest();
    let region = Region::new("tensors", 256 << 20, Sharing::Tree).unwrap();
    region.populate(0..region.len()).unwrap();
    assert_eq!(region.committed_bytes(), Ok(256 << 20));
    let after = fastest();
    crate::harness::in_time(&format!("a fork that took {before:?} before"), after, before + Duration::from_millis(2));
}

/// P-18
pub(crate) fn no_name_appears_under_dev_shm() {
    let names =
        || fs::read_dir("/dev/shm").map(|entries| entries.flatten().map(|entry| entry.file_name()).collect::<Vec<_>>());
    let before = names().unwrap_or_default();
    let region = Region::new("tensors", 1 << 20, Sharing::Tree).unwrap();
    let page = ReadOnlyPage::new("bell").unwrap();
    let mut started = child(&HEAD, |_| 0);
    region.populate(0..region.len()).unwrap();
    assert_eq!(names().unwrap_or_default(), before);
    assert!(exit_of(&mut started).is_success());
    drop((region, page));
    assert_eq!(names().unwrap_or_default(), before);
}

/// P-31
pub(crate) fn a_child_keeps_its_own_region_and_the_trees_and_no_other() {
    let tree = Region::new("tensors", 4096, Sharing::Tree).unwrap();
    let own = Region::new("mailbox 0", 4096, Sharing::Given).unwrap();
    let other = Region::new("mailbox 1", 4096, Sharing::Given).unwrap();
    let page = ReadOnlyPage::new("bell").unwrap();
    let starts = [tree.start(), own.start(), other.start(), page.start()];
    let (channel, inner) = (Channel::new(), Channel::new());
    let mut started = child(&ChildSpec { keep_mappings: &[own.start()], ..HEAD }, |_| {
        channel.send(format!("{:?}", starts.map(is_mapped)).as_bytes());
        // The address of what it unmapped may be used for something else, which its children do not lose.
        let at = std::ptr::without_provenance_mut(other.start());
        let (access, flags) = (ProtFlags::READ, MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE);
        // SAFETY: the kernel refuses addresses that are in use.
        unsafe { mmap_anonymous(at, 4096, access, flags) }.unwrap();
        // What it was given is its own from now on: its children do not get it unless it gives it on.
        let mut grandchild = child(&HEAD, |_| {
            inner.send(format!("{:?}", starts.map(is_mapped)).as_bytes());
            0
        });
        i32::from(!exit_of(&mut grandchild).is_success())
    });
    assert_eq!(channel.receive_text(), "[true, true, false, false]");
    assert_eq!(inner.receive_text(), "[true, false, true, false]");
    assert!(exit_of(&mut started).is_success());
    assert_eq!(starts.map(is_mapped), [true; 4]);
}

/// P-24
pub(crate) fn a_child_keeps_the_users_descriptors_and_none_made_for_others() {
    let user = File::open("/dev/null").unwrap();
    let (own, other) = (Bell::new().unwrap(), Bell::new().unwrap());
    let sibling = child(&HEAD, |lifeline| {
        while !lifeline.is_cut() {}
        0
    });
    let fds = [user.as_raw_fd(), own.as_raw_fd(), other.as_raw_fd(), sibling.process.pidfd().unwrap().as_raw_fd()];
    let channel = Channel::new();
    let mut started = child(&ChildSpec { keep_descriptors: &[own.as_raw_fd()], ..HEAD }, |_| {
        channel
            .send(format!("{:?} {}", fds.map(is_open), laneway_linux::sys::inventory::open_descriptors()).as_bytes());
        0
    });
    // Listed are its bell and its lifeline; the subtree pipe is for life and for all descendants.
    assert_eq!(channel.receive_text(), "[true, true, false, false] 2");
    assert!(exit_of(&mut started).is_success());
    assert_eq!(fds.map(is_open), [true; 4]);
    assert!(sibling.process.kill());
}

/// P-23
pub(crate) fn ten_thousand_descriptors_slow_no_child_down() {
    let null = File::open("/dev/null").unwrap();
    let user: Vec<_> = (0..10_000).map(|_| null.try_clone().unwrap()).collect();
    let bell = Bell::new().unwrap();
    let start = Instant::now();
    for close_foreign_descriptors in [false, true] {
        let (last, spec) = (user.last().unwrap().as_raw_fd(), ChildSpec { close_foreign_descriptors, ..HEAD });
        let mut started = child(&spec, |_| i32::from(is_open(last)) + 2 * i32::from(is_open(bell.as_raw_fd())));
        assert_eq!(exit_of(&mut started), Exit::Code(i32::from(!close_foreign_descriptors)));
    }
    crate::harness::in_time("both starts", start.elapsed(), Duration::from_secs(1));
}

/// P-24
pub(crate) fn a_child_can_be_asked_to_close_foreign_descriptors() {
    let user = File::open("/dev/null").unwrap();
    let bell = Bell::new().unwrap();
    let fds = [user.as_raw_fd(), bell.as_raw_fd(), 0, 1, 2];
    let region = Region::new("answers", 4096, Sharing::Tree).unwrap();
    let spec = ChildSpec { keep_descriptors: &[bell.as_raw_fd()], close_foreign_descriptors: true, ..HEAD };
    // SAFETY: the region outlives the words.
    let words = unsafe { MappedWords::new(&region) };
    let mut started = child(&spec, |lifeline| {
        for (index, open) in fds.map(is_open).into_iter().enumerate() {
            words.write(8 * index, u64::from(open));
        }
        i32::from(lifeline.is_cut())
    });
    assert!(exit_of(&mut started).is_success());
    assert_eq!([0, 8, 16, 24, 32].map(|at| words.read(at)), [0, 1, 1, 1, 1]);
}
