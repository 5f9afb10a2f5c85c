//! Lays out the files for authors of plugins: `include`, the C header, and `sdk`, the crates that a plugin in Rust depends on.
//! `pyproject.toml` adds both to the wheel.
//!
//! Also passes the linker its arguments.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The crates that a plugin and its tests depend on.
const CRATES: &[&str] = &["kernels", "minitensor", "minitensor-macros", "ops", "plugin-sdk", "schema"];

/// The files and folders of a crate.
const PARTS: &[&str] = &["Cargo.toml", "build.rs", "src"];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = here.parent().ok_or("the package must be in the repository")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    wrap_personality();
    for folder in ["include", "sdk"] {
        if out.join(folder).exists() {
            fs::remove_dir_all(out.join(folder))?;
        }
    }
    copy(&root.join("plugin-sdk/include"), &out.join("include"))?;
    for name in ["Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root.join(name), &out.join("sdk").join(name))?;
    }
    for (name, part) in CRATES.iter().flat_map(|name| PARTS.iter().map(move |part| (name, part))) {
        let from = root.join(name).join(part);
        if from.exists() {
            copy(&from, &out.join("sdk").join(name).join(part))?;
        }
    }
    workspace(&root.join("Cargo.toml"), &out.join("sdk/Cargo.toml"))
}

/// Replaces the function that unwinders call for each Rust function, where `pthread_exit` unwinds (`src/runtime/unwind.rs`). On other
/// CPUs, such as 32-bit Arm, it has other arguments.
fn wrap_personality() {
    println!("cargo::rustc-check-cfg=cfg(wraps_personality)");
    let target = ["OS", "ENV", "ARCH"].map(|part| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default());
    if let ["linux", "gnu", "x86_64" | "aarch64"] = target.each_ref().map(String::as_str) {
        println!("cargo::rustc-cfg=wraps_personality");
        println!("cargo::rustc-cdylib-link-arg=-Wl,--wrap=rust_eh_personality");
    }
}

/// Copies a file, or a folder with its contents.
fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", from.display());
    if !from.is_dir() {
        fs::create_dir_all(to.parent().ok_or("the file must be in a folder")?)?;
        fs::copy(from, to)?;
        return Ok(());
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Writes the manifest of a workspace of these crates only.
fn workspace(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", from.display());
    let lines = fs::read_to_string(from)?;
    let lines = lines
        .lines()
        .filter(|line| !line.starts_with("default-members"))
        .map(|line| if line.starts_with("members") { format!("members = {CRATES:?}\n") } else { format!("{line}\n") });
    Ok(fs::write(to, lines.collect::<String>())?)
}
