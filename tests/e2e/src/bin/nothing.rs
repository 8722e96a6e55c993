//! Does nothing: the yardstick for what the loader and the language cost before a plugin's own first instruction.

fn main() {}
