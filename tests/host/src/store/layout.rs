//! The keys of a backup's files.

/// A folder for each kind of thing; another one beside them makes a location invalid.
pub(crate) const FOLDERS: [&str; 6] = ["backups", "restores", "restic", "metadata", "plugins", "kopia"];

/// A file of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum BackupFile {
    /// `velero-backup.json`: the Backup itself. A backup without it is none.
    Metadata,
    /// The tarball of items.
    Contents,
    Log,
    PodVolumeBackups,
    VolumeSnapshots,
    ItemOperations,
    ResourceList,
    Results,
    VolumeInfo,
}

impl BackupFile {
    /// Every one.
    pub const ALL: [Self; 9] = [
        Self::Metadata,
        Self::Contents,
        Self::Log,
        Self::PodVolumeBackups,
        Self::VolumeSnapshots,
        Self::ItemOperations,
        Self::ResourceList,
        Self::Results,
        Self::VolumeInfo,
    ];

    fn suffix(self) -> &'static str {
        match self {
            Self::Metadata => "velero-backup.json",
            Self::Contents => ".tar.gz",
            Self::Log => "-logs.gz",
            Self::PodVolumeBackups => "-podvolumebackups.json.gz",
            Self::VolumeSnapshots => "-volumesnapshots.json.gz",
            Self::ItemOperations => "-itemoperations.json.gz",
            Self::ResourceList => "-resource-list.json.gz",
            Self::Results => "-results.gz",
            Self::VolumeInfo => "-volumeinfo.json.gz",
        }
    }
}

/// Keys below the prefix of a location.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    prefix: String,
}

impl Layout {
    /// Of a location's prefix, with or without slashes around it.
    pub fn new(prefix: &str) -> Self {
        let trimmed = prefix.trim_matches('/');
        Self { prefix: if trimmed.is_empty() { String::new() } else { format!("{trimmed}/") } }
    }

    /// What every key begins with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The folder of all backups.
    pub fn backups(&self) -> String {
        format!("{}backups/", self.prefix)
    }

    /// The folder of one backup.
    pub fn backup(&self, name: &str) -> String {
        format!("{}backups/{name}/", self.prefix)
    }

    /// A file of a backup.
    pub fn key(&self, name: &str, file: BackupFile) -> String {
        let own_name = if file == BackupFile::Metadata { "" } else { name };
        format!("{}{own_name}{}", self.backup(name), file.suffix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let layout = Layout::new("/team/a/");
        assert_eq!(layout.key("b", BackupFile::Metadata), "team/a/backups/b/velero-backup.json");
        assert_eq!(layout.key("b", BackupFile::Contents), "team/a/backups/b/b.tar.gz");
        let rest = [
            (BackupFile::Log, "backups/b/b-logs.gz"),
            (BackupFile::PodVolumeBackups, "backups/b/b-podvolumebackups.json.gz"),
            (BackupFile::VolumeSnapshots, "backups/b/b-volumesnapshots.json.gz"),
            (BackupFile::ItemOperations, "backups/b/b-itemoperations.json.gz"),
            (BackupFile::ResourceList, "backups/b/b-resource-list.json.gz"),
            (BackupFile::Results, "backups/b/b-results.gz"),
            (BackupFile::VolumeInfo, "backups/b/b-volumeinfo.json.gz"),
        ];
        for (file, key) in rest {
            assert_eq!(Layout::new("").key("b", file), key);
        }
    }
}
