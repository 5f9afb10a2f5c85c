//! Reads the metadata of a plugin from its file. No code of the library runs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use object::{Architecture, BinaryFormat, Object, ObjectKind, ObjectSegment, ObjectSymbol};

use crate::error::{Error, Result};
use crate::plugin::abi::{self, Plugin};
use crate::plugin::{PluginInfo, VersionInfo};

/// The data of the constant that a plugin exports.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The metadata of the plugin.
    pub info: PluginInfo,
    /// Whether it names an oldest supported minitensor.
    pub has_minimum: bool,
    /// The version of the plugin ABI that it uses.
    pub abi: (u32, u32),
    /// The compiler that it was built with.
    pub built_with: String,
    /// The path of the file.
    pub path: PathBuf,
    /// A hash of the content of the file.
    pub(super) fingerprint: u64,
}

impl Metadata {
    /// Reads a file.
    ///
    /// # Errors
    /// The file is not a library, is for another system or processor, is truncated, is not a plugin, or uses another ABI.
    pub fn read(path: &Path) -> Result<Metadata> {
        let wrong = |why: String| Error::value(format!("'{}' {why}", path.display()));
        if path.is_dir() {
            return Err(wrong("is a directory, not a shared library".into()));
        }
        let bytes = std::fs::read(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        let constant = constant(&bytes).map_err(wrong)?;
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Metadata::of(&constant, path, hasher.finish()).map_err(|e| wrong(e.message().to_owned()))
    }

    /// Reads the metadata from a constant whose ABI has been checked.
    fn of(constant: &Plugin, path: &Path, fingerprint: u64) -> Result<Metadata> {
        let say = |field: &str, bytes: &[u8]| {
            text(bytes).map_err(|why| Error::value(format!("is a plugin whose {field} {why}")))
        };
        let name = say("name", &constant.name)?;
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        if !is_name {
            return Err(Error::value(format!(
                "is a plugin named {name:?}; a name must consist of letters, digits, '_', '-' and '.', and start with \
                 a letter or '_'"
            )));
        }
        let version = |field: &str, bytes: &[u8]| {
            let given = say(field, bytes)?;
            let parsed = if given.is_empty() { Ok(None) } else { VersionInfo::parse(&given).map(Some) };
            parsed.map_err(|e| Error::value(format!("is plugin '{name}', whose {field} is invalid: {e}")))
        };
        let minimum = version("min_minitensor", &constant.min_minitensor)?;
        let info = PluginInfo {
            version: version("version", &constant.version)?
                .ok_or_else(|| Error::value(format!("is plugin '{name}', which has no version")))?,
            description: say("description", &constant.description)?,
            author: say("author", &constant.author)?,
            min_minitensor_version: minimum.unwrap_or(VersionInfo::new(0, 0, 0)),
            max_minitensor_version: version("max_minitensor", &constant.max_minitensor)?,
            name: name.clone(),
        };
        Ok(Metadata {
            info,
            has_minimum: minimum.is_some(),
            abi: (constant.abi_major, constant.abi_minor),
            built_with: say("built_with", &constant.built_with)?,
            path: path.to_owned(),
            fingerprint,
        })
    }

    /// Returns an error unless the plugin supports this minitensor.
    pub fn check(&self) -> Result<()> {
        let (info, current) = (&self.info, VersionInfo::current());
        let who = format!("plugin '{}' {}", info.name, info.version);
        let low = self.has_minimum.then_some(info.min_minitensor_version);
        match (low, info.max_minitensor_version) {
            (Some(low), _) if current < low => Err(Error::runtime(format!(
                "{who} needs minitensor {low} or later, but this is minitensor {current}; upgrade minitensor, or use \
                 an older version of the plugin"
            ))),
            (_, Some(high)) if current > high => Err(Error::runtime(format!(
                "{who} supports minitensor up to {high}, but this is minitensor {current}; use a newer version of the \
                 plugin, or minitensor {high}"
            ))),
            (Some(low), None) if !current.is_compatible_with(low) => Err(Error::runtime(format!(
                "{who} supports minitensor {low} and compatible versions, but this is minitensor {current}; use \
                 a newer version of the plugin"
            ))),
            _ => Ok(()),
        }
    }
}

/// The exported constant in the file of a library. Its pointers have no meaning.
fn constant(bytes: &[u8]) -> Result<Plugin, String> {
    if bytes.is_empty() {
        return Err("is empty".into());
    }
    let file = object::File::parse(bytes).map_err(|e| match object::FileKind::parse(bytes) {
        Ok(_) => format!("is truncated or damaged: {e}"),
        Err(_) => "is not a shared library".to_owned(),
    })?;
    check_system(&file)?;
    for segment in file.segments() {
        let (offset, size) = segment.file_range();
        if offset.checked_add(size).is_none_or(|end| end > bytes.len() as u64) {
            return Err(format!(
                "is truncated: a segment ends at byte {}, but the file ends at byte {}",
                offset.saturating_add(size),
                bytes.len()
            ));
        }
    }
    let (address, size) = symbol(&file)?;
    let room = file.segments().find_map(|segment| {
        let within = address.checked_sub(segment.address())?;
        let data = segment.data().ok()?;
        data.get(usize::try_from(within).ok()?..)
    });
    let room = room.ok_or_else(|| format!("is damaged: its symbol '{}' is outside the file", abi::SYMBOL))?;
    let header =
        |at: usize, bytes: usize| room.get(at..at + bytes).ok_or("is damaged: its constant is truncated".to_owned());
    let number = |at: usize| header(at, 4).map(|b| u32::from_ne_bytes(b.try_into().expect("four bytes")));
    let long = |at: usize| header(at, 8).map(|b| u64::from_ne_bytes(b.try_into().expect("eight bytes")));
    let stated = check_abi(long(0)?, number(8)?, number(12)?, long(16)?)?;
    if size != 0 && stated > size {
        return Err(format!("is a plugin whose constant declares a size of {stated} bytes, but has {size} bytes"));
    }
    let bytes = header(0, size_of::<Plugin>())?;
    // SAFETY: `bytes` has the size of the struct. Any bit pattern is valid: a function pointer that is not null may be any
    // address, and none is called.
    Ok(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

/// Checks the fields that determine the meaning of all others. Returns the size of the struct.
pub fn check_abi(magic: u64, major: u32, minor: u32, size: u64) -> Result<u64, String> {
    let ours = (abi::MAJOR, abi::MINOR);
    if magic != abi::MAGIC {
        return Err(format!(
            "has a symbol '{}' that is not the constant of a plugin: it does not start with MT_MAGIC",
            abi::SYMBOL
        ));
    }
    if major != ours.0 {
        let other =
            if major > ours.0 { "upgrade minitensor" } else { "rebuild the plugin with the SDK of this minitensor" };
        return Err(format!(
            "is a plugin for the plugin ABI {major}.{minor}, but this minitensor supports {}.{}; {other}",
            ours.0, ours.1
        ));
    }
    if minor > ours.1 {
        return Err(format!(
            "is a plugin for the plugin ABI {major}.{minor}, but this minitensor supports {}.{}; upgrade minitensor",
            ours.0, ours.1
        ));
    }
    let least = size_of::<Plugin>() as u64;
    if !(least..=1 << 16).contains(&size) {
        return Err(format!(
            "is a plugin whose constant declares a size of {size} bytes; the plugin ABI {major}.{minor} expects at \
             least {least}"
        ));
    }
    Ok(size)
}

fn check_system(file: &object::File<'_>) -> Result<(), String> {
    let (format, system) = match std::env::consts::OS {
        "windows" => (BinaryFormat::Pe, "Windows"),
        "macos" => (BinaryFormat::MachO, "macOS"),
        _ => (BinaryFormat::Elf, "Linux"),
    };
    if file.format() != format {
        return Err(format!("is a library for another system ({:?}), but this is {system}", file.format()));
    }
    let ours = match std::env::consts::ARCH {
        "x86_64" => Some(Architecture::X86_64),
        "aarch64" => Some(Architecture::Aarch64),
        _ => None,
    };
    if ours.is_some_and(|ours| ours != file.architecture()) {
        let theirs = format!("{:?}", file.architecture()).to_lowercase();
        return Err(format!("is a library for another processor ({theirs}), but this is {}", std::env::consts::ARCH));
    }
    match file.kind() {
        ObjectKind::Dynamic => Ok(()),
        ObjectKind::Relocatable => Err("is an object file; link it to a shared library first".into()),
        _ => Err("is an executable, not a shared library".into()),
    }
}

/// Address and size of the symbol of the plugin. The size is 0 if the format does not record it.
fn symbol(file: &object::File<'_>) -> Result<(u64, u64), String> {
    let found = file.dynamic_symbols().find(|s| s.name() == Ok(abi::SYMBOL) && !s.is_undefined());
    if let Some(symbol) = found {
        return Ok((symbol.address(), symbol.size()));
    }
    let exports = file.exports().map_err(|e| format!("is truncated or damaged: {e}"))?;
    let named = |name: &[u8]| name == abi::SYMBOL.as_bytes() || name.strip_prefix(b"_") == Some(abi::SYMBOL.as_bytes());
    exports.iter().find(|export| named(export.name())).map(|export| (export.address(), 0)).ok_or_else(|| {
        format!(
            "is not a minitensor plugin: it has no symbol '{}'; define this constant in C, or use `plugin! {{}}` in \
             Rust; a Rust plugin does not export it if another crate of the same build enables the feature `engine` of \
             minitensor: build the plugin alone, with `cargo build -p NAME`",
            abi::SYMBOL
        )
    })
}

/// A NUL-terminated text of the constant.
fn text(bytes: &[u8]) -> Result<String, String> {
    let end = bytes.iter().position(|b| *b == 0).ok_or("does not end with a NUL")?;
    if bytes[end..].iter().any(|b| *b != 0) {
        return Err("has data after its NUL".into());
    }
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| "is not valid UTF-8")?;
    // The text is shown in messages and tables.
    match text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        true => Err("contains a control character".into()),
        false => Ok(text.to_owned()),
    }
}
