//! The file of measured values, one for each model of CPU. A line has the values, a tab, and the class.
//!
//! Lines are only appended, each by one write, so processes can share the file. Its text is not trusted: wrong lines are ignored,
//! and a value is only used if it is a candidate.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::Values;
use crate::error::{Error, Result};

/// The maximum size of a file that is read, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// The values in the file by class, of at most `most` classes. Without a file, there are none.
pub fn read(most: usize) -> BTreeMap<String, Values> {
    let mut bytes = Vec::new();
    let file = path().filter(|path| is_small(path)).and_then(|path| File::open(path).ok());
    let _ = file.map(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).lines().filter_map(parse).take(most).collect()
}

/// Whether it is a file that is read. A pipe or a device would not end.
fn is_small(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MOST_BYTES)
}

/// Adds a line.
pub fn append(class: &str, values: &[i64]) {
    let values: Vec<String> = values.iter().map(i64::to_string).collect();
    let line = format!("{}\t{class}\n", values.join(","));
    if let Some(path) = path().filter(|path| !path.exists() || is_small(path)) {
        let _ = path.parent().map(fs::create_dir_all);
        let file = OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// Deletes the file, if there is one.
pub fn remove() -> Result<()> {
    let Some(path) = path() else { return Ok(()) };
    match fs::remove_file(path) {
        Err(e) if path.exists() => Err(Error::runtime(format!("the file {} cannot be deleted: {e}", path.display()))),
        _ => Ok(()),
    }
}

fn parse(line: &str) -> Option<(String, Values)> {
    let (values, class) = line.split_once('\t')?;
    let values = values.split(',').map(|value| value.parse().ok()).collect::<Option<_>>()?;
    Some((class.to_owned(), values))
}

/// The path of the file. It does not change while the process runs.
fn path() -> Option<&'static Path> {
    static PATH: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let path = folder()?.join(format!("tuned-{}.txt", cpu()));
        Some(std::path::absolute(&path).unwrap_or(path))
    });
    PATH.as_deref()
}

fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || match cfg!(windows) {
        true => variable("LOCALAPPDATA"),
        false => variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache"))),
    };
    variable("MINITENSOR_CACHE_DIR").or_else(|| cache().map(|cache| cache.join("minitensor")))
}

/// The model of the CPU, as far as the system tells.
fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let first = info.split("\n\n").next().unwrap_or_default();
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let names = ["cpu family", "model", "stepping", "CPU implementer", "CPU part"];
        names.contains(&name.trim()).then(|| format!("-{}", value.trim()))
    };
    let model: String = first.lines().filter_map(field).collect();
    format!("{}{}", std::env::consts::ARCH, model.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', ""))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_line_has_values_and_a_class_and_other_lines_are_ignored() {
        let line = parse("16,-2\tblur(float32[4])").expect("a correct line");
        assert_eq!((line.0.as_str(), line.1.as_slice()), ("blur(float32[4])", &[16, -2][..]));
        for wrong in ["", "16", "16,x\tblur", "\tblur", "16 blur", "99999999999999999999\tblur"] {
            assert!(parse(wrong).is_none(), "{wrong:?}");
        }
    }
}
