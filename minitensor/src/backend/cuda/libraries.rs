//! Finds NVIDIA's libraries: where the system finds them, or in the packages of a Python environment.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The folders that contain packages.
static PACKAGES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Adds folders that may contain NVIDIA's packages, such as the `site-packages` of a Python environment.
pub fn add_packages(folders: impl IntoIterator<Item = PathBuf>) {
    PACKAGES.lock().unwrap_or_else(PoisonError::into_inner).extend(folders);
}

/// Whether a library, such as `nvrtc`, is found. One of a package is loaded, so that it is found by its name.
pub fn find(name: &str, is_found: impl Fn() -> bool) -> bool {
    if is_found() {
        return true;
    }
    let packages = PACKAGES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let folders = ["cu13", &format!("cuda_{name}"), name].map(|package| format!("nvidia/{package}/lib"));
    let files = packages.iter().flat_map(|folder| folders.iter().map(|own| folder.join(own)));
    let files = files.flat_map(|folder| [13, 12].map(|major| folder.join(format!("lib{name}.so.{major}"))));
    for file in files.filter(|file| file.is_file()) {
        // SAFETY: it is one of NVIDIA's libraries, which may be loaded at any time.
        if let Ok(library) = unsafe { libloading::Library::new(&file) } {
            // It stays loaded.
            std::mem::forget(library);
            return is_found();
        }
    }
    false
}
