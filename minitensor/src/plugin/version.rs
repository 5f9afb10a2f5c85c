//! Versions, and metadata of a plugin.

use std::fmt;

use crate::error::{Error, Result};

/// A version: the three numbers of semantic versioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionInfo {
    /// Increases with a breaking change.
    pub major: u32,
    /// Increases with an addition, and before 1.0.0 with a breaking change.
    pub minor: u32,
    /// Increases with a fix.
    pub patch: u32,
}

impl VersionInfo {
    /// Creates a version.
    pub const fn new(major: u32, minor: u32, patch: u32) -> VersionInfo {
        VersionInfo { major, minor, patch }
    }

    /// Parses a version such as `1.2.3`. A suffix after the numbers, as in `1.2.3-rc.1`, is ignored.
    ///
    /// ```
    /// use minitensor::plugin::VersionInfo;
    /// assert_eq!(VersionInfo::parse("1.2.3")?, VersionInfo::new(1, 2, 3));
    /// # Ok::<(), minitensor::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<VersionInfo> {
        let numbers = text.split(['-', '+']).next().unwrap_or_default().split('.').map(|n| n.parse().ok());
        match numbers.collect::<Option<Vec<u32>>>().as_deref() {
            Some([major, minor, patch]) => Ok(VersionInfo::new(*major, *minor, *patch)),
            _ => Err(Error::value(format!("'{text}' is not a version; write three numbers, such as '1.2.3'"))),
        }
    }

    /// The version of this minitensor.
    pub fn current() -> VersionInfo {
        VersionInfo::parse(env!("CARGO_PKG_VERSION")).expect("a crate has a version")
    }

    /// Whether this version provides everything that `min_required` provides: it is not older, and the major version is equal.
    /// Before 1.0.0 the minor version must be equal too, since any minor version may break compatibility.
    pub fn is_compatible_with(self, min_required: VersionInfo) -> bool {
        let same_line = self.major == min_required.major && (self.major > 0 || self.minor == min_required.minor);
        same_line && self >= min_required
    }
}

impl fmt::Display for VersionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Metadata of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginInfo {
    /// Its unique name. Only one plugin of a name is loaded at a time.
    pub name: String,
    /// Its version.
    pub version: VersionInfo,
    /// Its purpose.
    pub description: String,
    /// Its author.
    pub author: String,
    /// The oldest supported version of minitensor.
    pub min_minitensor_version: VersionInfo,
    /// The newest supported version of minitensor. If `None`, all versions compatible with the oldest are supported.
    pub max_minitensor_version: Option<VersionInfo>,
}
