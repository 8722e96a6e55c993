//! The README's map of pitfalls and cases: every test that it names exists, and no pitfall is left out.

use std::collections::BTreeSet;
use std::path::Path;

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
