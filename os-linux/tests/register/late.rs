//! What can reach a child that exists already.

use std::path::{Path, PathBuf};
use std::process::Command;

use laneway_linux::{
    BoxError, CallConfig, CallableError, CallableHandle, Error, LateFn, Orchestrator, SubArgs, TaskArgs, TaskArgsView,
    Worker,
};

/// Adds the captured number to every element.
pub(crate) fn add(args: &SubArgs<'_>, captured: &[u8]) -> Result<(), BoxError> {
    let by = i32::from_le_bytes(captured.try_into()?);
    let x = args.tensor::<i32>(0)?;
    x.fill_with(|i| x.get(i).unwrap() + by);
    Ok(())
}

pub(crate) fn worker(subs: u32) -> Worker {
    crate::harness::builder!().subs(subs).heap_ring_bytes(1 << 20).buffer_bytes(1 << 20).build().unwrap()
}

/// Runs `handle` on all of `children` SUB children at once; each adds to an element of its own.
pub(crate) fn on_all(worker: &Worker, handle: &CallableHandle, children: usize) -> Result<Vec<i32>, Error> {
    let tensors: Vec<_> = (0..children).map(|_| worker.tensor::<i32>(&[1]).unwrap()).collect();
    let lists: Vec<_> = tensors.iter().map(|x| TaskArgs::new().inout(x).clone()).collect();
    worker.run(|orch| Ok(orch.submit_sub_group(handle, &lists.iter().collect::<Vec<_>>()).map(drop)?))?;
    Ok(tensors.iter().map(|x| x.to_vec().unwrap()[0]).collect())
}

/// R-5, R-11
pub(crate) fn a_function_with_captured_bytes_reaches_children_that_run() {
    let worker = worker(3);
    worker.init().unwrap();
    let seven = worker.register_fn("add", 1, add, &7_i32.to_le_bytes()).unwrap();
    assert_eq!(on_all(&worker, &seven, 3), Ok(vec![7; 3]), "in every child");
    let (nine, other) =
        (worker.register_fn("add", 1, add, &9_i32.to_le_bytes()), worker.register_fn("add", 2, add, &[]));
    assert_eq!(on_all(&worker, &nine.unwrap(), 3), Ok(vec![9; 3]));
    let error = on_all(&worker, &other.unwrap(), 1).unwrap_err().to_string();
    assert!(error.contains("could not convert slice"), "its own error: {error}");
    worker.close().unwrap();
}

/// R-1, R-4: one digest, whether registered before or after.
pub(crate) fn the_same_before_the_forks() {
    let (early, late) = (worker(2), worker(2));
    let before = early.register_fn("add", 1, add, &7_i32.to_le_bytes()).unwrap();
    early.init().unwrap();
    late.init().unwrap();
    let after = late.register_fn("add", 1, add, &7_i32.to_le_bytes()).unwrap();
    assert_eq!(before.digest(), after.digest());
    assert_eq!(on_all(&early, &before, 2), Ok(vec![7; 2]));
    // Known in the children by inheritance: nothing is sent.
    let again = early.register_fn("add", 1, add, &7_i32.to_le_bytes()).unwrap();
    assert_eq!(on_all(&early, &again, 2), Ok(vec![7; 2]));
    early.close().unwrap();
    late.close().unwrap();
}

fn level_3(
    orch: &mut Orchestrator<'_>,
    args: TaskArgsView<'_>,
    _: &CallConfig,
    captured: &[u8],
) -> Result<(), BoxError> {
    orch.alloc::<i32>(&[1])?;
    match args.scalars()[0] == u64::from(captured[0]) {
        true => Ok(()),
        false => Err(format!("captured {captured:?}").into()),
    }
}

/// R-11, P-8
pub(crate) fn an_orchestration_reaches_nested_workers_that_run() {
    let l4 = worker(0);
    let ids = [worker(1), worker(1)].map(|l3| l4.add_worker(&l3).unwrap());
    l4.init().unwrap();
    let orch = l4.register_orchestration_fn("level 3", 1, level_3, &[5]).unwrap();
    for id in ids {
        l4.run(|o| Ok(o.submit_next_level(&orch, id, TaskArgs::new().scalar(5)).map(drop)?)).unwrap();
        let error = l4.run(|o| Ok(o.submit_next_level(&orch, id, TaskArgs::new().scalar(6)).map(drop)?)).unwrap_err();
        assert!(error.to_string().contains("captured [5]"), "{error}");
    }
    l4.unregister(&orch).unwrap();
    assert!(l4.run(|o| Ok(o.submit_next_level(&orch, ids[0], TaskArgs::new()).map(drop)?)).is_err());
    l4.close().unwrap();
}

/// A library with one function, compiled here.
fn library() -> PathBuf {
    let dir = std::env::temp_dir().join(format!("laneway-symbol-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (source, library) = (dir.join("f.c"), dir.join("libf.so"));
    std::fs::write(
        &source,
        r#"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
struct native_call {
    const void *tensors; size_t tensor_count;
    const uint64_t *scalars; size_t scalar_count;
    const uint8_t *captured; size_t captured_len;
    char *message; size_t message_len;
};
int add_scalar(const struct native_call *call) {
    if (call->tensor_count != 1 || call->scalar_count != 1 || call->captured_len != 1) {
        snprintf(call->message, call->message_len, "%zu tensors", call->tensor_count);
        return 7;
    }
    /* The address is the first word of a tensor. */
    int32_t *x = (int32_t *)(uintptr_t)*(const uint64_t *)call->tensors;
    *x += (int32_t)call->scalars[0] * call->captured[0];
    return 0;
}
"#,
    )
    .unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let built = Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.expect("a C compiler").success());
    library
}

#[allow(unsafe_code)]
fn symbol(worker: &Worker, path: &Path, symbol: &str) -> Result<CallableHandle, Error> {
    // SAFETY: the library was compiled above, from a function of that signature.
    unsafe { worker.register_symbol("add scalar", 1, path, symbol, &[3]) }
}

/// R-11, P-26
pub(crate) fn a_library_symbol_is_called_with_arguments_and_its_captured_bytes() {
    let path = library();
    for early in [true, false] {
        let worker = worker(2);
        let before = early.then(|| symbol(&worker, &path, "add_scalar").unwrap());
        worker.init().unwrap();
        let handle = before.unwrap_or_else(|| symbol(&worker, &path, "add_scalar").unwrap());
        let x = worker.tensor::<i32>(&[1]).unwrap();
        let run = |args: &TaskArgs| worker.run(|orch| Ok(orch.submit_sub(&handle, args).map(drop)?));
        run(TaskArgs::new().inout(&x).scalar(5)).unwrap();
        assert_eq!(x.to_vec().unwrap(), [15]);
        let error = run(&TaskArgs::new()).unwrap_err().to_string();
        assert!(error.contains("code 7: 0 tensors"), "{error}");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(!maps.contains("libf.so"), "the parent does not load it");
        worker.close().unwrap();
    }
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// R-6
pub(crate) fn a_symbol_that_is_not_there_fails_with_the_loaders_words() {
    let path = library();
    let worker = worker(2);
    worker.init().unwrap();
    for (path, name, words) in [(path.as_path(), "no_such", "no_such"), (Path::new("/no/such.so"), "f", "/no/such.so")]
    {
        let error = symbol(&worker, path, name).unwrap_err();
        let Error::Callable(CallableError::RegisterPartialFailure { failures, .. }) = &error else { panic!("{error}") };
        assert!(failures.len() == 2 && failures.iter().all(|(_, text)| text.contains(words)), "{error}");
    }
    symbol(&worker, &path, "add_scalar").expect("the failures left nothing");
    worker.close().unwrap();
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// R-13: code that was made or loaded after the forks.
pub(crate) fn a_function_outside_every_image_is_refused() {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let worker = worker(1);
    worker.init().unwrap();
    // SAFETY: a fresh page that nothing uses.
    let page =
        unsafe { mmap_anonymous(std::ptr::null_mut(), 4096, ProtFlags::READ | ProtFlags::EXEC, MapFlags::PRIVATE) };
    // SAFETY: never called: it is refused.
    let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, LateFn>(page.unwrap()) };
    let error = worker.register_fn("jit", 1, function, &[]).unwrap_err();
    assert!(matches!(error, Error::Callable(CallableError::NotInImage { .. })), "{error}");
    worker.close().unwrap();
}

/// R-11
pub(crate) fn a_closure_is_for_before_the_forks_alone() {
    let worker = worker(1);
    worker.init().unwrap();
    let error = worker.register("late", |_| Ok(())).unwrap_err();
    assert!(matches!(error, Error::RegisteredTooLate { .. }), "{error}");
    worker.close().unwrap();
}
