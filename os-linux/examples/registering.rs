//! Registration while the children are running: a function of this program with bytes that travel to them.

// ANCHOR: function
use laneway_linux::{BoxError, CallableError, Error, SubArgs, TaskArgs, Worker};

/// A plain function: the children are forks of this program, so they have it at the same address. `captured` is sent.
fn scale(args: &SubArgs<'_>, captured: &[u8]) -> Result<(), BoxError> {
    let factor = f32::from_le_bytes(captured.try_into()?);
    let x = args.tensor::<f32>(0)?;
    x.fill_with(|i| x.get(i).unwrap_or(0.0) * factor);
    Ok(())
}
// ANCHOR_END: function

// ANCHOR: late
fn main() -> Result<(), Error> {
    let worker = Worker::builder().subs(2).build()?;
    worker.init()?;
    let x = worker.tensor::<f32>(&[3])?;
    x.copy_from(&[1.0, 2.0, 3.0])?;

    // Returns when both children have it. A closure would be refused here: it can only be inherited.
    let double = worker.register_fn("scale", 1, scale, &2_f32.to_le_bytes())?;
    let triple = worker.register_fn("scale", 1, scale, &3_f32.to_le_bytes())?;
    worker.run(|orch| {
        orch.submit_sub(&double, TaskArgs::new().inout(&x))?;
        orch.submit_sub(&triple, TaskArgs::new().inout(&x))?;
        Ok(())
    })?;
    println!("{:?}", x.to_vec()?);

    let closure = worker.register("too late", |_| Ok(()));
    println!("closure      {}", closure.unwrap_err());
    // ANCHOR_END: late

    // ANCHOR: unregister
    // Waits for the tasks that call it, then takes it out of the children. The handle is dead.
    worker.unregister(&double)?;
    let dead = worker.run(|orch| Ok(orch.submit_sub(&double, TaskArgs::new().inout(&x)).map(drop)?));
    assert!(matches!(dead, Err(Error::Callable(CallableError::CallableHandleMutated { .. }))));
    println!("unregistered {}", dead.unwrap_err());
    worker.close()
}
// ANCHOR_END: unregister
