//! What a case finds: that things are as they should be, or one violation with what was expected and what was seen.

use std::error::Error;
use std::fmt::{self, Debug, Display};

use serde::{Deserialize, Serialize};

/// A rule that was not kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Violation {
    /// Which observation it was.
    pub what: String,
    /// What the rules ask for.
    pub expected: String,
    /// What was there instead.
    pub seen: String,
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, seen {}", self.what, self.expected, self.seen)
    }
}

impl Error for Violation {}

/// How a case ends.
pub(crate) type Verdict = Result<(), Violation>;

/// Compares what was seen with what was expected.
pub(crate) fn equal<T: PartialEq<U> + Debug, U: Debug>(what: impl Display, seen: T, expected: U) -> Verdict {
    if seen == expected {
        return Ok(());
    }
    Err(Violation { what: what.to_string(), expected: format!("{expected:?}"), seen: format!("{seen:?}") })
}

/// Asks for a condition; `seen` is made only if it does not hold.
pub(crate) fn holds<S: Display>(what: impl Display, condition: bool, seen: impl FnOnce() -> S) -> Verdict {
    if condition {
        return Ok(());
    }
    Err(Violation { what: what.to_string(), expected: "that it holds".to_owned(), seen: seen().to_string() })
}

/// Asks for a text that holds all of these parts.
pub(crate) fn mentions(what: impl Display, text: &str, parts: &[&str]) -> Verdict {
    match parts.iter().find(|part| !text.contains(**part)) {
        None => Ok(()),
        Some(part) => Err(Violation {
            what: what.to_string(),
            expected: format!("a text that mentions {part:?}"),
            seen: format!("{text:?}"),
        }),
    }
}

/// Asks for an error, and for one of a certain kind; returns it.
pub(crate) fn refused<T: Debug, E: Display + Debug>(
    what: impl Display,
    result: Result<T, E>,
    expected: &str,
    is_it: impl FnOnce(&E) -> bool,
) -> Result<E, Violation> {
    let violation = |seen| Violation { what: what.to_string(), expected: expected.to_owned(), seen };
    match result {
        Ok(value) => Err(violation(format!("success: {value:?}"))),
        Err(error) if is_it(&error) => Ok(error),
        Err(error) => Err(violation(error.to_string())),
    }
}

/// For what must succeed.
pub(crate) trait Must<T> {
    /// The value, or a violation that names the step.
    fn must(self, what: impl Display) -> Result<T, Violation>;
}

impl<T, E: Display> Must<T> for Result<T, E> {
    fn must(self, what: impl Display) -> Result<T, Violation> {
        self.map_err(|error| Violation {
            what: what.to_string(),
            expected: "success".to_owned(),
            seen: error.to_string(),
        })
    }
}

impl<T> Must<T> for Option<T> {
    fn must(self, what: impl Display) -> Result<T, Violation> {
        self.ok_or_else(|| Violation {
            what: what.to_string(),
            expected: "a value".to_owned(),
            seen: "none".to_owned(),
        })
    }
}
