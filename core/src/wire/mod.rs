//! The byte layouts of the contract: plain values with a parser and a builder, no behaviour beyond validity.
