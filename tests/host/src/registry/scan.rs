//! Finds the plugin binaries of a folder.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The files of `folder`, recursively and in name order, that the server would start: all that anyone may execute,
/// and every link. A missing folder holds none.
///
/// # Errors
///
/// When a folder can't be read.
pub fn scan(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<_> = match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect::<io::Result<_>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut found = Vec::new();
    for entry in entries {
        // Of the entry itself: a link's own mode says executable, even where it leads to a folder.
        let metadata = entry.metadata()?;
        let is_exe = entry.path().extension().is_some_and(|extension| extension.eq_ignore_ascii_case("exe"));
        if metadata.is_dir() {
            found.extend(scan(&entry.path())?);
        } else if metadata.permissions().mode() & 0o111 != 0 || is_exe {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_executed_is_found_in_name_order() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, mode| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        file("b", 0o755);
        file("a/inner", 0o100);
        file("notes.txt", 0o644);
        file("tool.EXE", 0o644);
        std::os::unix::fs::symlink("notes.txt", folder.path().join("link")).unwrap();
        let names: Vec<_> = scan(folder.path())
            .unwrap()
            .iter()
            .map(|path| path.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["a/inner", "b", "link", "tool.EXE"]);
        assert!(scan(&folder.path().join("absent")).unwrap().is_empty());
    }
}
