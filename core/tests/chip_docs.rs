//! The transitions in the book are those of the machine.

use std::fs;

use laneway_core::chip::TRANSITIONS;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/protocol/chips.md");
const BEGIN: &str = "<!-- transitions -->\n";
const END: &str = "<!-- /transitions -->";

/// C-6. `LANEWAY_BLESS=1` writes the page anew.
#[test]
fn the_book_lists_the_transitions_that_the_machine_obeys() {
    let page = fs::read_to_string(PAGE).expect("the page of the book");
    let (before, rest) = page.split_once(BEGIN).expect("the mark before the transitions");
    let (listed, after) = rest.split_once(END).expect("the mark after the transitions");
    let mut expected = String::from("```text\n");
    for edge in TRANSITIONS {
        expected += &format!("{:<10} --{}: {}--> {}\n", edge.from.name(), edge.call, edge.outcome, edge.to);
    }
    expected += "```\n";
    if std::env::var_os("LANEWAY_BLESS").is_some() {
        fs::write(PAGE, format!("{before}{BEGIN}{expected}{END}{after}")).expect("the page can be written");
    } else {
        assert_eq!(listed, expected, "run this test with LANEWAY_BLESS=1");
    }
}
