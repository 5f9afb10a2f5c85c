//! A stamp is a file with a digest of the sources of an artifact. It avoids rebuilding the artifact from the same sources.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::Result;

/// A digest of files and folders.
#[derive(Default)]
pub struct Stamp(DefaultHasher);

/// Folders of tools, which are not sources.
const IGNORED: &[&str] = &["target", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"];

impl Stamp {
    /// Adds the names and contents of a file or a folder.
    pub fn path(mut self, path: &Path) -> Result<Stamp> {
        self.add(path)?;
        Ok(self)
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let unreadable = |e| format!("cannot read {}: {e}", path.display());
        let name = path.file_name().unwrap_or_default();
        let compiled = path.extension().is_some_and(|e| e == "so" || e == "pyd");
        if compiled || IGNORED.iter().any(|ignored| name == *ignored) {
            return Ok(());
        }
        name.hash(&mut self.0);
        if !path.is_dir() {
            std::fs::read(path).map_err(unreadable)?.hash(&mut self.0);
            return Ok(());
        }
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(path).map_err(unreadable)?.filter_map(|e| e.ok().map(|e| e.path())).collect();
        entries.sort();
        entries.iter().try_for_each(|entry| self.add(entry))
    }

    /// Runs `make` unless the file `at` contains this stamp, then writes the stamp to `at`.
    pub fn unless_at(self, at: &Path, make: impl FnOnce() -> Result<()>) -> Result<()> {
        let digest = format!("{:016x}\n", self.0.finish());
        if std::fs::read_to_string(at).is_ok_and(|there| there == digest) {
            return Ok(());
        }
        let _ = std::fs::remove_file(at);
        make()?;
        std::fs::write(at, digest).map_err(|e| format!("cannot write {}: {e}", at.display()))
    }
}
