//! Every point in which Velero's own CSI actions are known to fail (I) and every case from the field (C) has a test that names it.

use std::collections::BTreeSet;
use std::path::Path;

/// How many points there are.
const POINTS: u32 = 59;
/// A point of data movers alone: their own cancellation.
const OF_DATA_MOVERS: [u32; 1] = [28];
/// The cases that are about CSI.
const CASES: [u32; 21] = [1, 5, 6, 8, 13, 14, 17, 20, 22, 23, 24, 25, 26, 28, 32, 34, 36, 40, 41, 44, 46];

/// The numbers in the names of the functions in the Rust files below `folder`: those at their start, as in `i01_c05_what_is_tested`.
fn named(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            named(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let is_number = |part: &&str| {
                let mut letters = part.chars();
                matches!(letters.next(), Some('i' | 'c'))
                    && part.len() == 3
                    && letters.all(|letter| letter.is_ascii_digit())
            };
            for name in text.split("fn ").skip(1) {
                found.extend(name.split('_').take_while(is_number).map(str::to_owned));
            }
        }
    }
}

#[test]
fn every_point_and_every_case_has_a_test() {
    let mut found = BTreeSet::new();
    for folder in ["src", "tests"] {
        named(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut found);
    }
    let points = (1..=POINTS).filter(|point| !OF_DATA_MOVERS.contains(point));
    let wanted = points.map(|point| format!("i{point:02}")).chain(CASES.map(|case| format!("c{case:02}")));
    let missing: Vec<String> = wanted.filter(|number| !found.contains(number)).collect();
    assert!(missing.is_empty(), "no test of {missing:?}");
}
