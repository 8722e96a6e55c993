//! Writes an archive.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;

/// The format that is written into `metadata/version`.
pub(crate) const FORMAT: &str = "1.1.0";

/// An archive in the making. The first entry of a new one is its format.
pub struct ArchiveWriter {
    tar: tar::Builder<GzEncoder<Vec<u8>>>,
}

impl ArchiveWriter {
    /// A new archive.
    ///
    /// # Errors
    ///
    /// When it can't be written, which memory can.
    pub fn new(now: Timestamp) -> io::Result<Self> {
        let mut writer = Self::without_format();
        writer.add("metadata/version", format!("{FORMAT}\n").as_bytes(), now)?;
        Ok(writer)
    }

    /// An archive whose entries, the format among them, are copied from another one.
    pub(crate) fn without_format() -> Self {
        Self { tar: tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default())) }
    }

    /// Adds a file.
    ///
    /// # Errors
    ///
    /// When `path` can't be in an archive.
    pub fn add(&mut self, path: &str, content: &[u8], modified: Timestamp) -> io::Result<()> {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        header.set_mtime(u64::try_from(modified.as_second()).unwrap_or_default());
        self.tar.append_data(&mut header, path, content)
    }

    /// The whole archive.
    ///
    /// # Errors
    ///
    /// When it can't be written, which memory can.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        let mut gzip = self.tar.into_inner()?;
        gzip.flush()?;
        gzip.finish()
    }
}
