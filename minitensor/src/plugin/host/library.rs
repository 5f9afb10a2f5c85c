//! A shared library that is a plugin.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::file::{Metadata, check_abi};
use super::services::{HOST, collect};
use crate::error::{Error, Result};
use crate::fork::lock::try_lock;
use crate::op::OpRef;
use crate::plugin::abi::{self, Plugin};
use crate::plugin::ffi::checked;

/// A plugin that is loaded into the process. It is never unmapped, because tensors, graphs and callers may hold its ops.
#[derive(Clone)]
pub struct Library {
    metadata: Metadata,
    plugin: &'static Plugin,
}

/// The mapped files, with the hashes of their content. The lock ensures that one library is opened at a time.
static MAPPED: Mutex<BTreeMap<PathBuf, u64>> = Mutex::new(BTreeMap::new());

/// Takes the lock of the libraries before a fork. `None` if another thread holds it.
pub(super) fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&MAPPED)
}

impl Library {
    /// Reads the metadata of a library, and loads the library if it is a plugin that supports this minitensor. Only the
    /// code that the system runs when it maps a library is run.
    ///
    /// # Errors
    /// Those of [`Metadata::read`], an unsupported version of minitensor, and errors of the system loader.
    pub fn open(path: &Path) -> Result<Library> {
        let metadata = Metadata::read(path)?;
        metadata.check()?;
        let wrong = |why: String| Error::value(format!("'{}' {why}", path.display()));
        let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let absolute = path.canonicalize().map_err(|e| wrong(format!("cannot be read: {e}")))?;
        if mapped.get(&absolute).is_some_and(|before| *before != metadata.fingerprint) {
            let why = "has changed since it was loaded, but a process loads a file only once; rename the new file, or \
                       restart the process";
            return Err(wrong(why.into()));
        }
        // SAFETY: the constructors of the library run. The library declares that it is a plugin, and loading it trusts it.
        let library = unsafe { libloading::Library::new(&absolute) }
            .map_err(|e| wrong(format!("cannot be loaded: {}", innermost(&e))))?;
        // SAFETY: the magic number in the file shows that the symbol is a constant of this type.
        let plugin = unsafe { library.get::<*const Plugin>(abi::SYMBOL) }
            .map_err(|e| wrong(format!("has no symbol '{}': {}", abi::SYMBOL, innermost(&e))))
            .map(|symbol| *symbol)?;
        std::mem::forget(library);
        // SAFETY: the symbol is in the library, which is never unmapped.
        let plugin = unsafe { &*plugin };
        check_abi(plugin.magic, plugin.abi_major, plugin.abi_minor, plugin.struct_size).map_err(wrong)?;
        mapped.insert(absolute, metadata.fingerprint);
        Ok(Library { metadata, plugin })
    }

    /// The metadata of the plugin.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Calls the `init` of the plugin, and returns the ops that it registers. They are not yet in the registry.
    ///
    /// # Errors
    /// Errors of `init`, and faults of the tables.
    pub fn init(&self) -> Result<Vec<OpRef>> {
        let who = || format!("plugin '{}'", self.metadata.info.name);
        let init =
            self.plugin.init.ok_or_else(|| Error::value(format!("{} has no init: the pointer is null", who())))?;
        // SAFETY: the function of the plugin is called as the ABI requires.
        let init = || checked(|sink| unsafe { init(&raw const HOST, sink) });
        collect(init).map_err(|error| error.context(who()))
    }

    /// Calls the `fini` of the plugin.
    ///
    /// # Errors
    /// Errors of `fini`.
    pub fn fini(&self) -> Result<()> {
        let Some(fini) = self.plugin.fini else { return Ok(()) };
        // SAFETY: the function of the plugin is called as the ABI requires.
        checked(|sink| unsafe { fini(sink) })
    }
}

/// The message of the innermost source, which is that of the system.
fn innermost(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}
