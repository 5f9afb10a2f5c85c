//! A shared library that is a plugin.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::file::{Metadata, check_abi};
use super::services::{HOST, collect};
use crate::error::{Error, Result};
use crate::fork::try_lock;
use crate::op::OpRef;
use crate::plugin::abi::{self, Plugin};
use crate::plugin::border::ask;

/// A plugin that was loaded into the process. It stays mapped for good: its ops may be held by tensors, graphs and callers.
#[derive(Clone)]
pub struct Library {
    metadata: Metadata,
    plugin: &'static Plugin,
}

/// What was mapped from which file. One library is opened at a time.
static MAPPED: Mutex<BTreeMap<PathBuf, u64>> = Mutex::new(BTreeMap::new());

/// Holds the lock of the libraries for a fork, unless another thread holds it.
pub(super) fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&MAPPED)
}

impl Library {
    /// Reads what the library says of itself, and loads it if it is a plugin that this minitensor can have. Of its own code runs what
    /// the system runs as it maps a library, and no more.
    ///
    /// # Errors
    /// Those of [`Metadata::read`], a plugin that doesn't support this minitensor, and those of the system's loader.
    pub fn open(path: &Path) -> Result<Library> {
        let metadata = Metadata::read(path)?;
        metadata.check()?;
        let wrong = |why: String| Error::value(format!("'{}' {why}", path.display()));
        let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let absolute = path.canonicalize().map_err(|e| wrong(format!("can't be read: {e}")))?;
        if mapped.get(&absolute).is_some_and(|before| *before != metadata.fingerprint) {
            let why = "has changed since it was loaded, and a library is mapped once; give the new one another file name, or start anew";
            return Err(wrong(why.into()));
        }
        // SAFETY: what the library does as it is mapped is its affair; it says of itself that it is a plugin.
        let library = unsafe { libloading::Library::new(&absolute) }
            .map_err(|e| wrong(format!("can't be loaded: {}", innermost(&e))))?;
        // SAFETY: by its magic number, which was read from the file, the symbol is such a constant.
        let plugin = unsafe { library.get::<*const Plugin>(abi::SYMBOL) }
            .map_err(|e| wrong(format!("has no symbol '{}': {}", abi::SYMBOL, innermost(&e))))
            .map(|symbol| *symbol)?;
        std::mem::forget(library);
        // SAFETY: the library stays mapped.
        let plugin = unsafe { &*plugin };
        check_abi(plugin.magic, plugin.abi_major, plugin.abi_minor, plugin.struct_size).map_err(wrong)?;
        mapped.insert(absolute, metadata.fingerprint);
        Ok(Library { metadata, plugin })
    }

    /// What it says of itself.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Calls the plugin's `init`, and gives the ops that it hands over; none is registered yet.
    ///
    /// # Errors
    /// What `init` says, or what is wrong with an op's table.
    pub fn init(&self) -> Result<Vec<OpRef>> {
        let who = || format!("plugin '{}'", self.metadata.info.name);
        let init =
            self.plugin.init.ok_or_else(|| Error::value(format!("{} has no init: the pointer is null", who())))?;
        // SAFETY: the plugin's function, called as the ABI says.
        let init = || ask(|sink| unsafe { init(&raw const HOST, sink) });
        collect(init).map_err(|error| error.context(who()))
    }

    /// Calls the plugin's `fini`.
    ///
    /// # Errors
    /// What `fini` says.
    pub fn fini(&self) -> Result<()> {
        let Some(fini) = self.plugin.fini else { return Ok(()) };
        // SAFETY: the plugin's function, called as the ABI says.
        ask(|sink| unsafe { fini(sink) })
    }
}

/// What the system says.
fn innermost(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}
