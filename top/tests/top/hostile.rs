//! What is looked at stops, dies, is nobody's worker, or lies.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, WaitOptions, getuid, kill_process, waitpid};
use serde_json::Value;

use crate::asked::{command, json, refused, shown, text};
use crate::harness::Channel;
use crate::support::until;
use crate::tower::{Tower, add};

/// A tree of two levels in a process of its own.
struct Other {
    root: Pid,
    nested: Pid,
}

impl Other {
    fn new() -> Self {
        let channel = Channel::new();
        // SAFETY: the case is a process of one thread, and the child lives on by itself.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let tower = Tower::new(3..=4, add);
            channel.send(tower.top.health().children[0].pid.to_string().as_bytes());
            loop {
                std::thread::park();
            }
        }
        let nested = channel.receive_text().parse().unwrap();
        Self { root: Pid::from_raw(pid).unwrap(), nested: Pid::from_raw(nested).unwrap() }
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.root, signal).unwrap();
        kill_process(self.nested, signal).unwrap();
    }

    /// The tree below goes by itself.
    fn kill(self) {
        kill_process(self.root, Signal::KILL).unwrap();
        waitpid(Some(self.root), WaitOptions::empty()).unwrap();
    }

    fn pid(&self) -> i32 {
        self.root.as_raw_nonzero().get()
    }
}

pub(crate) fn a_stopped_tree_is_shown_as_stopped() {
    let other = Other::new();
    until("the nested worker sleeps", || json(other.pid())["workers"][0]["children"][0]["activity"] == "parked");
    other.signal(Signal::STOP);
    until("both are stopped", || {
        let tree = json(other.pid());
        let nested = &tree["workers"][0]["children"][0];
        tree["process"] == "stopped" && nested["process"] == "stopped" && nested["workers"][0]["level"] == 3
    });
    let text = text(other.pid());
    assert!(text.contains("stopped\n") && text.contains("idle, asleep, process stopped"), "{text}");
    other.signal(Signal::CONT);
    until("it goes on", || json(other.pid())["process"] == "sleeping");
    other.kill();
}

pub(crate) fn a_tree_that_is_killed_ends_the_watch() {
    for arguments in [&["--json", "--watch", "0.05"][..], &["--watch", "3600"]] {
        let other = Other::new();
        let pid = other.pid().to_string();
        let watch = &mut command(&[arguments, &[&pid]].concat());
        let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        other.kill();
        // Also if the next look is an hour away.
        let status = watch.wait().unwrap();
        let mut errors = String::new();
        watch.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(status.code(), Some(1), "{errors}");
        assert_eq!(errors, format!("laneway-top: process {pid} has ended\n"));
        for line in lines.map(Result::unwrap).filter(|_| arguments[0] == "--json") {
            let tree: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(tree["workers"][0]["level"], 4, "whole looks alone");
        }
    }
}

pub(crate) fn a_process_without_a_worker_is_told_from_none() {
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeper.id().to_string();
    until("it runs", || refused(&mut command(&[&pid])).1.contains("(sleep)"));
    let (status, errors) = refused(&mut command(&["--json", &pid]));
    assert_eq!(status, 1);
    assert!(errors.contains(&format!("process {pid} (sleep) has no laneway worker")), "{errors}");
    sleeper.kill().unwrap();
    let sleeping = Pid::from_child(&sleeper);
    assert!(crate::harness::wait_for_exit(sleeping, crate::harness::LIMIT));
    let (status, errors) = refused(&mut command(&[&pid]));
    assert_eq!((status, errors), (1, format!("laneway-top: process {pid} has ended\n")), "a zombie");
    sleeper.wait().unwrap();
    let (status, errors) = refused(&mut command(&[&pid]));
    assert!(status == 1 && errors.contains(&format!("there is no process {pid}")), "{errors}");
    // A thread is not its process.
    let thread = std::thread::spawn(|| {
        let number = rustix::thread::gettid().as_raw_nonzero().get();
        refused(&mut command(&[&number.to_string()]))
    });
    let (status, errors) = thread.join().unwrap();
    assert!(status == 1 && errors.contains(&format!("ask about {}", std::process::id())), "{errors}");
}

/// Somebody else's process: that of root, looked at by nobody, or by whoever runs this.
pub(crate) fn another_user_is_told_who_may_look() {
    let (status, errors) = if getuid().is_root() {
        refused(command(&[&std::process::id().to_string()]).uid(65_534).gid(65_534))
    } else {
        refused(&mut command(&["1"]))
    };
    assert_eq!(status, 1);
    assert!(errors.contains("run this as its user (uid 0) or as root"), "{errors}");
}

pub(crate) fn a_wrong_command_line_is_told_from_the_rest() {
    let wrong: [&[&str]; 9] = [
        &[],
        &["many"],
        &["0"],
        &["-1"],
        &["1", "2"],
        &["--watch", "0", "1"],
        &["--watch", "NaN", "1"],
        &["--watch"],
        &["--verbose", "1"],
    ];
    for arguments in wrong {
        let (status, errors) = refused(&mut command(arguments));
        assert!(status == 2 && errors.contains("usage: laneway-top"), "{arguments:?}: {errors}");
    }
    assert!(shown(&["--help"]).starts_with("usage: laneway-top"));
    assert_eq!(shown(&["--version"]), concat!("laneway-top ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// As with `| head -1`.
pub(crate) fn a_reader_that_goes_is_no_error() {
    let other = Other::new();
    let watch = &mut command(&["--watch", "0.05", &other.pid().to_string()]);
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(watch.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("process "), "{line}");
    let output = watch.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    other.kill();
}

/// A memfd with the name of a board.
fn board(bytes: u64, words: &[(u64, u64)], texts: &[(u64, &str)]) -> OwnedFd {
    let fd = rustix::fs::memfd_create("laneway-status", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&fd, bytes).unwrap();
    let texts = texts.iter().map(|(at, text)| (*at, text.as_bytes().to_vec()));
    for (at, bytes) in words.iter().map(|(at, word)| (*at, word.to_le_bytes().to_vec())).chain(texts) {
        rustix::io::pwrite(&fd, &bytes, at).unwrap();
    }
    fd
}

fn magic() -> u64 {
    u64::from_le_bytes(*b"lanewayS")
}

pub(crate) fn a_board_of_another_version_is_named() {
    let _board = board(4096, &[(0, magic()), (8, 2)], &[]);
    let (status, errors) = refused(&mut command(&[&std::process::id().to_string()]));
    assert_eq!(status, 1);
    assert!(errors.contains("in form 2, and this build knows form 1"), "{errors}");
}

/// Boards that claim more than is there, other people's processes, loops, and commands for the terminal.
pub(crate) fn a_forged_board_harms_nobody() {
    const CHILDREN: u64 = 1 << 14;
    let own = u64::from(std::process::id());
    let header = [(0, magic()), (8, 1), (16, own), (24, u64::MAX), (32, u64::MAX), (40, u64::MAX), (64, 99)];
    let mut words = header.to_vec();
    let pids = [1, own, u64::from(std::os::unix::process::parent_id()), u64::MAX, 0, 1 << 31];
    let record = |child: usize| 128 + 512 * child as u64;
    for (child, pid) in pids.into_iter().enumerate() {
        let at = record(child);
        words.extend([(at, u64::MAX), (at + 8, pid), (at + 16, pid % 64), (at + 24, u64::MAX), (at + 64, u64::MAX)]);
        words.push((at + 72, child as u64));
    }
    let mut texts: Vec<_> = (0..pids.len()).map(|child| (record(child) + 32, "nested worker")).collect();
    texts.push((record(1) + 128, "\x1b[2J\x1b]0;owned\x07\r\n"));
    texts.push((record(pids.len()) + 32, "\x1b[2Jchip\u{9b}1m"));
    let boards: Vec<_> = (0..40).map(|_| board(128 + 512 * CHILDREN, &words, &texts)).collect();
    // One names itself as the mailbox of its child.
    let mailbox = boards[0].as_raw_fd() as u64;
    rustix::io::pwrite(&boards[0], &mailbox.to_le_bytes(), record(0) + 16).unwrap();
    let tree = json(own as i32);
    let workers = tree["workers"].as_array().unwrap();
    let children: Vec<_> = workers.iter().flat_map(|worker| worker["children"].as_array().unwrap()).collect();
    assert!((1..=CHILDREN as usize).contains(&children.len()), "{} children", children.len());
    assert!(children.iter().all(|child| child["workers"] == Value::Array(Vec::new())), "nobody's children are shown");
    let unseen = children.iter().filter(|child| child["unseen"].as_str().is_some_and(|why| why.contains("no child")));
    assert_eq!(unseen.count(), pids.len() - 1, "all but the one that claims to be a thread");
    let text = text(own as i32);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "the terminal is commanded");
    assert!(text.contains("?[2J"));
    // A board of another process, which this one holds by inheritance, is not about this one.
    drop(boards);
    let _other = board(4096, &[(0, magic()), (8, 1), (16, 1), (32, 1)], &[]);
    assert_eq!(refused(&mut command(&[&own.to_string()])).0, 1);
}
