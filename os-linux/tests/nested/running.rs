//! Tasks that go down several levels.

use laneway_linux::{
    BoxError, CallConfig, CallableError, Error, Role, SubArgs, TaskArgs, Worker, WorkerId, unallocated,
};

use crate::support::{Tower, add, worker};

/// P-8: the worked example of a level 4 over a level 3.
pub(crate) fn a_level_4_sends_a_task_to_a_level_3_whose_sub_child_verifies() {
    let l3 = worker(3, 1);
    let verify = l3.register("verify", |args| match args.tensor::<f32>(0)?.iter().all(|x| x == 7.5) {
        true => Ok(()),
        false => Err("the result is wrong".into()),
    });
    let verify = verify.unwrap();
    let l4 = worker(4, 0);
    let l3_orch = l4.register_orchestration("l3 orch", move |orch, args, _| {
        orch.submit_sub(&verify, TaskArgs::new().input(args.tensors()[0]))?;
        Ok(())
    });
    let l3_orch = l3_orch.unwrap();
    let l3_id = l4.add_worker(&l3).unwrap();
    l4.init().unwrap();
    let x = l4.tensor::<f32>(&[100]).unwrap();
    let run = || {
        l4.run(|orch| {
            orch.submit_next_level_with(&l3_orch, l3_id, TaskArgs::new().input(&x), &CallConfig::default())?;
            Ok(())
        })
    };
    x.fill_with(|_| 7.5).unwrap();
    for _ in 0..20 {
        run().unwrap();
    }
    x.fill_with(|_| 7.0).unwrap();
    assert!(run().unwrap_err().to_string().contains("the result is wrong"));
    l4.close().unwrap();
}

/// P-8, P-11
pub(crate) fn three_levels_above_a_sub_child_compute() {
    let tower = Tower::new(3..=6, add);
    let x = tower.top.tensor::<i32>(&[1000]).unwrap();
    x.fill_with(|i| i as i32).unwrap();
    for _ in 0..5 {
        tower.run(TaskArgs::new().inout(&x).scalar(2)).unwrap();
    }
    assert_eq!(x.to_vec().unwrap(), (0..1000).map(|i| i + 10).collect::<Vec<_>>());
    tower.top.close().unwrap();
}

/// E-24: a group over nested workers, each with its own arguments.
pub(crate) fn several_nested_workers_run_a_group() {
    let l4 = worker(4, 1);
    let double = l4.register("sum", |args| {
        let (a, b, sum) = (args.tensor::<i32>(0)?, args.tensor::<i32>(1)?, args.tensor::<i32>(2)?);
        sum.fill_with(|i| a.get(i).unwrap() + b.get(i).unwrap());
        Ok(())
    });
    let (sum, mut ids) = (double.unwrap(), Vec::new());
    let l3s: Vec<Worker> = (0..2).map(|_| worker(3, 2)).collect();
    // One orchestration for all: which function it calls depends on the worker that it runs on.
    let adds: Vec<_> = l3s.iter().map(|l3| l3.register("add", add).unwrap()).collect();
    let orch = l4.register_orchestration("orch", move |orch, args, _| {
        let add = &adds[args.scalars()[0] as usize];
        orch.submit_sub(add, TaskArgs::new().inout(args.tensors()[0]).scalar(args.scalars()[1]))?;
        Ok(())
    });
    let orch_handle = orch.unwrap();
    for l3 in &l3s {
        ids.push(l4.add_worker(l3).unwrap());
    }
    l4.init().unwrap();
    let [a, b, c] = [(); 3].map(|()| l4.tensor::<i32>(&[16]).unwrap());
    l4.run(|orch| {
        let (mut one, mut two) = (TaskArgs::new(), TaskArgs::new());
        one.inout(&a).scalar(0).scalar(3);
        two.inout(&b).scalar(1).scalar(4);
        orch.submit_next_level_group(&orch_handle, &ids, &[&one, &two], None)?;
        orch.submit_sub(&sum, TaskArgs::new().input(&a).input(&b).output(&c))?;
        Ok(())
    })
    .unwrap();
    assert_eq!(c.to_vec().unwrap(), [7; 16]);
    l4.close().unwrap();
}

/// P-10, W-9
pub(crate) fn an_error_names_every_level_that_it_came_through() {
    let tower = Tower::new(3..=5, |_| Err(format!("the original text{}", ".".repeat(300)).into()));
    let text = tower.run(&TaskArgs::new()).unwrap_err().to_string();
    let mut at = 0;
    for part in
        ["level 5, run ", "worker 0: ", "level 4, run ", "worker 0: ", "level 3, run ", "sub 0: ", "original text"]
    {
        at += text[at..].find(part).unwrap_or_else(|| panic!("{part:?} is not where it belongs in {text:?}"));
    }
    assert!(text[at..].contains(&".".repeat(300)), "nothing is cut off: {text}");
    assert_eq!(text.matches("; in ").count(), 3, "each level names what it called: {text}");
    tower.top.close().unwrap();
}

/// P-8
pub(crate) fn a_panic_below_fails_its_task_and_the_tree_lives_on() {
    let l3 = worker(3, 1);
    let l4 = worker(4, 0);
    let orch = l4.register_orchestration("orch", |_, args, _| match args.scalars() {
        [] => panic!("no scalar at all"),
        _ => Ok(()),
    });
    let (orch, id) = (orch.unwrap(), l4.add_worker(&l3).unwrap());
    l4.init().unwrap();
    let text = l4.run(|o| Ok(o.submit_next_level(&orch, id, TaskArgs::new()).map(drop)?)).unwrap_err().to_string();
    assert!(text.contains("level 3, run 1: the callback panicked: no scalar at all"), "{text}");
    l4.run(|o| Ok(o.submit_next_level(&orch, id, TaskArgs::new().scalar(1)).map(drop)?)).unwrap();
    l4.close().unwrap();
}

/// P-11, E-38: buffers, scratch of a run and outputs allocated at submit, two levels further down.
pub(crate) fn memory_of_every_level_above_is_valid_below() {
    let tower = Tower::new(3..=5, add);
    let x = tower.top.tensor::<i32>(&[64]).unwrap();
    tower
        .top
        .run(|orch| {
            let scratch = orch.alloc::<i32>(&[64])?;
            orch.submit_next_level(&tower.call, tower.below, TaskArgs::new().inout(scratch).scalar(1))?;
            orch.submit_next_level(&tower.call, tower.below, TaskArgs::new().inout(&x).scalar(2))?;
            let out = orch.submit_next_level(
                &tower.call,
                tower.below,
                TaskArgs::new().output(unallocated::<i32>(&[8])?).scalar(3),
            )?;
            assert_eq!(out.len(), 1);
            orch.submit_next_level(&tower.call, tower.below, TaskArgs::new().inout(out[0]).inout(scratch).scalar(4))?;
            Ok(())
        })
        .unwrap();
    assert_eq!(x.to_vec().unwrap(), [2; 64]);
    // Memory of nobody above is refused by the level that is asked to use it.
    tower.top.close().unwrap();
}

/// P-8, E-40
pub(crate) fn a_nested_run_has_its_own_orchestrator_arguments_and_config() {
    let l3 = worker(3, 1);
    let store = l3.register("store", |args| Ok(args.tensor::<i64>(0)?.set(0, args.scalar(0)? as i64)?)).unwrap();
    let l4 = worker(4, 0);
    let orch = l4.register_orchestration("orch", move |orch, args, config| {
        // Runs of this worker are its own: they are counted from 1.
        let seen = config.aicpu_thread_num as u64 * 1000 + orch.run().get() * 100 + args.scalars()[0];
        orch.submit_sub(&store, TaskArgs::new().output(args.tensors()[0]).scalar(seen))?;
        Ok(())
    });
    let (orch, id) = (orch.unwrap(), l4.add_worker(&l3).unwrap());
    l4.init().unwrap();
    let x = l4.tensor::<i64>(&[1]).unwrap();
    let config = CallConfig { aicpu_thread_num: 3, ..CallConfig::default() };
    for (run, expected) in [(1, 3105), (2, 3205)] {
        let args = TaskArgs::new().output(&x).scalar(5).clone();
        l4.run(|o| Ok(o.submit_next_level_with(&orch, id, &args, &config).map(drop)?)).unwrap();
        assert_eq!(x.to_vec().unwrap(), [expected], "run {run}");
    }
    l4.close().unwrap();
}

/// P-9
pub(crate) fn a_nested_worker_belongs_to_its_parent() {
    let (l3, l4, other) = (worker(3, 1), worker(4, 0), worker(4, 0));
    assert!(matches!(l4.add_worker(&l4), Err(Error::WrongState { .. })), "to itself");
    l4.add_worker(&l3).unwrap();
    let attached = |error: Error| matches!(error, Error::WrongState { state: "ATTACHED", .. });
    assert!(attached(other.add_worker(&l3).unwrap_err()), "twice");
    assert!(attached(l3.init().unwrap_err()));
    assert!(attached(l3.close().unwrap_err()));
    assert!(attached(l3.add_worker(&other).unwrap_err()), "what is attached gets no more children");
    assert!(attached(l3.tensor::<i32>(&[1]).unwrap_err()));
    l4.init().unwrap();
    for error in [l3.init().unwrap_err(), l3.close_now().unwrap_err(), l3.run(|_| Ok(())).unwrap_err()] {
        assert!(attached(error));
    }
    assert!(matches!(l3.register("late", |_| Ok(())), Err(Error::RegisteredTooLate { .. })));
    l4.close().unwrap();
    assert!(attached(l3.close().unwrap_err()));
}

///
pub(crate) fn a_callable_for_another_kind_of_child_is_refused() {
    let (l3, l4) = (worker(3, 1), worker(4, 1));
    let function = l4.register("function", add).unwrap();
    let orchestration = l4.register_orchestration("orchestration", |_, _, _| Ok(())).unwrap();
    assert_eq!((function.role(), orchestration.role()), (Role::Function, Role::Orchestration));
    let id = l4.add_worker(&l3).unwrap();
    l4.init().unwrap();
    let to_sub = l4.run(|orch| Ok(orch.submit_sub(&orchestration, TaskArgs::new()).map(drop)?)).unwrap_err();
    assert!(matches!(to_sub, Error::CallableRole { wanted: Role::Function, .. }), "{to_sub}");
    let to_worker = l4.run(|orch| Ok(orch.submit_next_level(&function, id, TaskArgs::new()).map(drop)?)).unwrap_err();
    assert!(matches!(to_worker, Error::CallableRole { wanted: Role::Orchestration, .. }), "{to_worker}");
    l4.close().unwrap();
}

///
pub(crate) fn a_callable_that_no_child_runs_fails_init() {
    let no_subs = worker(4, 0);
    no_subs.add_worker(&worker(3, 1)).unwrap();
    let function = no_subs.register("function", add).unwrap();
    let error = no_subs.init().unwrap_err();
    let Error::Callable(CallableError::CallableKindUnsupported { callable, role }) = error else { panic!("{error}") };
    assert_eq!((callable.digest, role), (*function.digest(), Role::Function));
    let no_nested = worker(3, 1);
    no_nested.register_orchestration("orchestration", |_, _, _| Ok(())).unwrap();
    let error = no_nested.init().unwrap_err().to_string();
    assert!(error.contains("an orchestration, for nested workers"), "{error}");
}

/// R-5, P-9: a clone that the orchestration captured is the worker of its process there, and its parent's handle in the parent.
pub(crate) fn an_orchestration_registers_functions_on_its_own_worker_while_that_runs() {
    fn add_captured(args: &SubArgs<'_>, by: &[u8]) -> Result<(), BoxError> {
        let x = args.tensor::<i32>(0)?;
        x.fill_with(|i| x.get(i).unwrap_or(0) + i32::from(by[0]));
        Ok(())
    }
    let (l3, l4) = (worker(3, 2), worker(4, 0));
    let inner = l3.clone();
    let call = l4.register_orchestration("add what was captured late", move |orch, args, _| {
        let add = inner.register_fn("add captured", 1, add_captured, &[5])?;
        orch.submit_sub(&add, TaskArgs::new().inout(args.tensors()[0]))?;
        // Waits for the task.
        Ok(inner.unregister(&add)?)
    });
    let (call, below) = (call.unwrap(), l4.add_worker(&l3).unwrap());
    l4.init().unwrap();
    let x = l4.tensor::<i32>(&[4]).unwrap();
    for _ in 0..3 {
        l4.run(|orch| Ok(orch.submit_next_level(&call, below, TaskArgs::new().inout(&x)).map(drop)?)).unwrap();
    }
    assert_eq!(x.to_vec().unwrap(), [15; 4]);
    let error = l3.register_fn("add captured", 1, add_captured, &[5]).unwrap_err();
    assert!(error.to_string().contains("ATTACHED: it belongs to the worker that it was added to"), "{error}");
    l4.close().unwrap();
}

///
pub(crate) fn one_name_is_given_to_one_function() {
    let worker = worker(3, 1);
    worker.register("one", |_| Ok(())).unwrap();
    let error = worker.register("one", |_| Err("another".into())).unwrap_err();
    let Error::Callable(CallableError::CallableNameTaken { name, taken, asked }) = &error else { panic!("{error}") };
    assert!(name == "one" && taken != asked, "{error}");
    type Function = fn(&laneway_linux::SubArgs<'_>) -> Result<(), laneway_linux::BoxError>;
    let (f, g): (Function, Function) = (|_| Ok(()), |_| Err("something else".into()));
    worker.register("pointer", f).unwrap();
    worker.register("pointer", f).unwrap();
    let error = worker.register("pointer", g).unwrap_err();
    assert!(matches!(error, Error::Callable(CallableError::CallableNameTaken { .. })), "by address: {error}");
}

///
pub(crate) fn closures_of_a_loop_differ_and_one_function_registered_twice_does_not() {
    let worker = worker(3, 1);
    let by: Vec<_> =
        (0..3).map(|i| worker.register("by", move |args| Ok(args.tensor::<i32>(0)?.set(0, i)?)).unwrap()).collect();
    assert!(by[0].digest() != by[1].digest() && by[1].digest() != by[2].digest());
    let (one, two) = (worker.register("add", add).unwrap(), worker.register("add", add).unwrap());
    assert_eq!(one.digest(), two.digest());
    assert_ne!(one, two, "two registrations are two handles");
    worker.init().unwrap();
    let x = worker.tensor::<i32>(&[1]).unwrap();
    for (i, handle) in by.iter().enumerate() {
        worker.run(|orch| Ok(orch.submit_sub(handle, TaskArgs::new().output(&x)).map(drop)?)).unwrap();
        assert_eq!(x.to_vec().unwrap(), [i as i32]);
    }
    worker.close().unwrap();
}

/// T-43: a handle that another process made is foreign, although both counted alike since the fork.
pub(crate) fn children_of_two_processes_have_different_identities() {
    let channel = crate::harness::Channel::new();
    let owner = |worker: &Worker| format!("{:?}", worker.register("f", |_| Ok(())).unwrap());
    // SAFETY: this process has one thread; the child only registers and leaves.
    let pid = unsafe { libc::fork() };
    let mine = owner(&worker(3, 1));
    if pid == 0 {
        channel.send(mine.as_bytes());
        // SAFETY: nothing of the parent's is to be run down here.
        unsafe { libc::_exit(0) };
    }
    let theirs = channel.receive_text();
    assert_ne!(mine, theirs, "owner, digest and id of the two would be alike");
    // SAFETY: reaps the child that was forked above.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    assert!(WorkerId::new(0).is_some());
}
