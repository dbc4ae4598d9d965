//! Reports as JUnit XML, which build servers read.

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use crate::report::{Outcome, Report};

/// One suite per report.
///
/// # Errors
/// A text that cannot stand in XML.
pub fn junit(reports: &[Report]) -> Result<String, quick_junit::SerializeError> {
    let mut document = quick_junit::Report::new("laneway-conformance");
    for report in reports {
        let mut suite = TestSuite::new(report.backend.as_str());
        for entry in &report.entries {
            let mut status = match &entry.outcome {
                Outcome::Passed => TestCaseStatus::success(),
                Outcome::Failed(_) => TestCaseStatus::non_success(NonSuccessKind::Failure),
                Outcome::NotOpened(_) => TestCaseStatus::non_success(NonSuccessKind::Error),
                Outcome::NotApplicable(_) => TestCaseStatus::skipped(),
            };
            match &entry.outcome {
                Outcome::Passed => {}
                Outcome::Failed(violation) => {
                    status.set_message(violation.to_string()).set_description(entry.says.as_str());
                }
                Outcome::NotApplicable(reason) | Outcome::NotOpened(reason) => {
                    status.set_message(reason.as_str());
                }
            }
            let mut case = TestCase::new(entry.case.as_str(), status);
            case.set_classname(entry.rules.join(" ")).set_time(entry.took);
            suite.add_test_case(case);
        }
        document.add_test_suite(suite);
    }
    document.to_string()
}
