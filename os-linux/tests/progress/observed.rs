//! Workers as another process sees them.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use laneway_linux::{Doing, Error, Health, TaskArgs, observe};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Bench, Gate, until};
use crate::tower::{Tower, add};

fn one(pid: i32) -> Health {
    let mut found = observe(pid).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// P-20: what is seen from outside is what `health` says inside, level by level; a death with its cause.
pub(crate) fn a_tree_is_observed_from_outside() {
    let own = std::process::id() as i32;
    assert_eq!(observe(own).unwrap(), []);
    let tower = Tower::new(3..=4, add);
    let x = tower.top.tensor::<i32>(&[1]).unwrap();
    for _ in 0..3 {
        tower.run(TaskArgs::new().inout(&x).scalar(1)).unwrap();
    }
    let top = one(own);
    assert!(top.ready && top.level == 4 && top.state == "READY" && top.pid == own, "{top}");
    let nested = &top.children[0];
    until("its last task is counted", || one(own).children[0].tasks == 3);
    assert!(nested.kind == "nested worker" && nested.doing == Doing::Idle, "{nested}");
    assert!(one(own).children[0].utilisation() > 0.0);
    let below = one(nested.pid);
    assert!(below.ready && below.level == 3 && below.pid == nested.pid, "{below}");
    let sub = &below.children[0];
    assert!(sub.kind == "SUB child" && sub.tasks == 3, "{sub:?}");
    assert_eq!(observe(sub.pid).unwrap(), [], "a SUB child has no worker");
    tower.top.close().unwrap();
    assert_eq!(observe(own).unwrap(), []);
    assert!(matches!(observe(sub.pid), Err(Error::Observe { .. })));

    let bench = Bench::new(2);
    let gate = Gate::new(&bench);
    let run =
        bench.worker.submit(|orch| Ok(orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg())).map(drop)?));
    let run = run.unwrap();
    let busy = one(own).children.into_iter().find(|child| matches!(child.doing, Doing::Busy { .. })).unwrap();
    let Doing::Busy { run: found, callable, .. } = busy.doing else { panic!("{busy}") };
    assert_eq!((found, callable), (run.id(), Some(*bench.hold.digest())));
    gate.open();
    run.wait().unwrap();
    let victim = one(own).children[1].pid;
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    until("the death is seen", || !one(own).ready);

    // So many descriptors that the list of them is read in parts, and so shows what the look itself opens.
    let crowd: Vec<_> = (0..500).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    let committed = one(own).committed_bytes;
    drop(crowd);
    assert_eq!(committed, one(own).committed_bytes);
    let dead = one(own).children.remove(1);
    assert!(dead.to_string().contains("SIGKILL") && dead.pid == victim, "{dead}");
    bench.worker.close().unwrap();
}

/// The process that is looked at may end at any moment.
pub(crate) fn a_process_that_dies_while_it_is_observed_harms_nobody() {
    for _ in 0..5 {
        let tower = Tower::new(3..=4, add);
        let nested = tower.top.health().children[0].pid;
        let stop = AtomicBool::new(false);
        let looks = std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let mut looks = 0_u32;
                while !stop.load(Ordering::Relaxed) {
                    match observe(nested) {
                        Ok(found) => assert!(found.len() <= 1),
                        Err(Error::Observe { pid, .. }) => assert_eq!(pid, nested),
                        Err(error) => panic!("{error}"),
                    }
                    looks += 1;
                }
                looks
            });
            std::thread::sleep(Duration::from_millis(5));
            kill_process(Pid::from_raw(nested).unwrap(), Signal::KILL).unwrap();
            until("it is gone", || observe(nested).is_err());
            stop.store(true, Ordering::Relaxed);
            looking.join().unwrap()
        });
        assert!(looks > 0);
        let _ = tower.top.close_now();
    }
}

/// A board that somebody else wrote: whatever its words say, a look ends, and says something.
pub(crate) fn a_hostile_board_harms_nobody() {
    let own = std::process::id() as i32;
    let mut dice = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..200_usize {
        // With seals, as one of ours; of any size.
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("laneway-status", flags).unwrap();
        let mut bytes = Vec::new();
        for _ in 0..(round * 13) % 700 {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            // Small numbers too: they are descriptors and counts.
            bytes.extend(if dice.is_multiple_of(3) { dice % 64 } else { dice }.to_le_bytes());
        }
        let head = [u64::from_le_bytes(*b"lanewayS"), 1, own as u64, 3, u64::MAX];
        let head: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        let kept = head.len().min(bytes.len());
        bytes[..kept].copy_from_slice(&head[..kept]);
        assert_eq!(rustix::io::pwrite(&fd, &bytes, 0).unwrap(), bytes.len());
        // A mailbox number may name the board itself, a stream, or nothing.
        if bytes.len() > 160 {
            rustix::io::pwrite(&fd, &(fd.as_raw_fd() as u64).to_le_bytes(), 144).unwrap();
        }
        for health in observe(own).unwrap() {
            assert!(health.children.len() <= bytes.len() / 512);
            let _ = (health.to_string(), health.stalled(Duration::ZERO).count());
            let _: f64 = health.children.iter().map(|child| child.utilisation() + child.spin_share()).sum();
        }
    }
}
