//! The README's map of pitfalls and cases: every test that it names exists, and no pitfall is left out. The tests of csi-actions carry
//! the numbers of theirs in their names: none of these is left out either.

use std::collections::BTreeSet;
use std::path::Path;

/// How many points there are in which Velero's own CSI actions are known to fail.
const POINTS: u32 = 59;
/// A point of data movers alone: their own cancellation.
const OF_DATA_MOVERS: [u32; 1] = [28];
/// The cases from the field that are about CSI.
const CASES: [u32; 21] = [1, 5, 6, 8, 13, 14, 17, 20, 22, 23, 24, 25, 26, 28, 32, 34, 36, 40, 41, 44, 46];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names of the functions in the Rust files below `folder`.
fn functions(folder: &Path, found: &mut BTreeSet<String>) -> anyhow::Result<()> {
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.is_dir() {
            functions(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)?;
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
    Ok(())
}

#[test]
fn every_test_that_the_map_names_exists() -> anyhow::Result<()> {
    let mut tests = BTreeSet::new();
    functions(&folder().join("tests"), &mut tests)?;
    functions(&folder().join("../../shared/src"), &mut tests)?;
    let readme = std::fs::read_to_string(folder().join("README.md"))?;
    let mut named = 0;
    for word in readme.split('`').skip(1).step_by(2) {
        // Sentences joined by underscores are tests; a name may be cut where it stands in full before.
        let start = word.trim_end_matches('…');
        let is_test = start.matches('_').count() >= 2
            && start.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        if !is_test {
            continue;
        }
        named += 1;
        let exists = if start == word {
            tests.contains(word)
        } else {
            tests.iter().any(|test| test.starts_with(start))
        };
        assert!(exists, "{word} is no test");
    }
    assert!(named > 60, "only {named} names were looked up");
    Ok(())
}

#[test]
fn every_pitfall_has_its_row() -> anyhow::Result<()> {
    let readme = std::fs::read_to_string(folder().join("README.md"))?;
    for pitfall in 1..=44 {
        let rows = readme.lines().filter(|line| line.starts_with(&format!("| {pitfall} |"))).count();
        assert_eq!(rows, 1, "pitfall {pitfall}");
    }
    Ok(())
}

/// Whether this part of a test's name is the number of a point (I) or of a case (C), as the first two of `i01_c05_what_is_tested`.
fn is_number(part: &&str) -> bool {
    let digits = part.strip_prefix(['i', 'c']);
    digits.is_some_and(|digits| digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[test]
fn every_point_and_every_csi_case_has_a_test_of_csi_actions() -> anyhow::Result<()> {
    let mut tests = BTreeSet::new();
    for part in ["src", "tests"] {
        functions(&folder().join("../../csi-actions").join(part), &mut tests)?;
    }
    let found: BTreeSet<&str> = tests.iter().flat_map(|name| name.split('_').take_while(is_number)).collect();
    let points = (1..=POINTS).filter(|point| !OF_DATA_MOVERS.contains(point));
    let wanted = points.map(|point| format!("i{point:02}")).chain(CASES.map(|case| format!("c{case:02}")));
    let missing: Vec<String> = wanted.filter(|number| !found.contains(number.as_str())).collect();
    assert!(missing.is_empty(), "no test of {missing:?}");
    Ok(())
}
