//! What devices say of themselves (C-9, W-9).

use laneway_linux::{BlockingDevice, BoxError, ChipCallable, RunArgs, RunError, TaskArgs};

use crate::support::worker;

/// Fails every run with the same text.
struct Wordy(String);

impl BlockingDevice for Wordy {
    type Callable = ();

    fn load(&self, _: &ChipCallable<'_>) -> Result<(), BoxError> {
        Ok(())
    }

    fn run(&self, _: &(), _: &RunArgs<'_>) -> Result<(), RunError> {
        Err(self.0.clone().into())
    }
}

/// C-9: at a character, with an ellipsis.
pub(crate) fn a_long_error_of_a_device_is_cut_where_one_sees_it() {
    for (said, told) in [("ä".repeat(44), "ä".repeat(44)), ("ä".repeat(45), "ä".repeat(42) + "…")] {
        let (worker, chip, callable) = worker(move || Ok(Wordy(said.clone())));
        let x = worker.tensor::<i32>(&[1]).unwrap();
        let run =
            worker.run(|orch| Ok(orch.submit_next_level(&callable, chip, TaskArgs::new().inout(&x)).map(drop)?));
        let error = run.unwrap_err().to_string();
        assert!(error.contains(&format!("the run failed: {told}; in it")), "{error}");
        worker.close().unwrap();
    }
}
