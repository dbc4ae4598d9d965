//! Panics of user code become text.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};

/// What a panic of a thread comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Catching {
    /// It is not inside [`catch`].
    No,
    Yes,
    /// It is, and the hook has noted one.
    Noted,
}

thread_local! {
    static CATCHING: Cell<Catching> = const { Cell::new(Catching::No) };
    /// What the hook noted of the panic on its way.
    static NOTED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// In a child, for its whole life: panics that [`catch`] is going to report are noted, not printed; others are printed in
/// one line. The host's own hook, which might write into its logs, does not run here; the parent keeps it (P-18).
pub(crate) fn install_quiet_hook() {
    // The host's hook is the parent's: its destructor must not run here either.
    std::mem::forget(panic::take_hook());
    panic::set_hook(Box::new(|info| {
        let text = describe(info);
        if CATCHING.get() == Catching::No {
            complain(&format!("panic: {text}"));
        } else {
            NOTED.set(Some(text));
            CATCHING.set(Catching::Noted);
        }
    }));
}

/// Prints one line of a child to standard error. Unlike `eprintln!` it cannot panic where that is closed.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "laneway child {}: {text}", std::process::id());
}

/// Runs `call`; a panic comes back as its text, with the place if this process is a child.
///
/// # Errors
/// The text of the panic.
pub fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    let outer = CATCHING.replace(Catching::Yes);
    let result = catch_unwind(AssertUnwindSafe(call));
    let noted = if CATCHING.replace(outer) == Catching::Noted { NOTED.take() } else { None };
    result.map_err(|payload| {
        let text = noted.unwrap_or_else(|| payload_text(payload.as_ref()).to_owned());
        // What was thrown may panic again when it is dropped; then it is left where it is.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(again);
        }
        text
    })
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let text = payload_text(info.payload());
    match info.location() {
        Some(place) => format!("{text} (at {}:{})", place.file(), place.line()),
        None => text.to_owned(),
    }
}

fn payload_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "a value that is no text"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_text_and_a_value_passes_through() {
        assert_eq!(catch(|| 3), Ok(3));
        let width = 7;
        assert_eq!(catch(|| panic!("plain")), Err::<(), _>("plain".to_owned()));
        assert_eq!(catch(|| panic!("width {width}")), Err::<(), _>("width 7".to_owned()));
        assert_eq!(catch(|| panic::panic_any(3_u8)), Err::<(), _>("a value that is no text".to_owned()));
    }

    #[test]
    fn what_was_thrown_may_panic_when_dropped() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        assert_eq!(catch(|| panic::panic_any(Bomb)), Err::<(), _>("a value that is no text".to_owned()));
    }
}
