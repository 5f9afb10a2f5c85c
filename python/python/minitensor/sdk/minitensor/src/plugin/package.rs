//! What a plugin written in Rust says of itself, and does besides having ops: the line `plugin! {}`.

use std::sync::Arc;

use super::abi;
use super::{PluginInfo, VersionInfo};
use crate::error::Result;
use crate::op::CustomOp;

/// A plugin that does something of its own as it comes and goes, or has ops written as objects. A library whose ops are all defined by
/// `#[custom_op]` needs none.
///
/// ```
/// use std::sync::Arc;
/// use minitensor::{CustomOp, CustomOpRegistry, Plugin, PluginInfo, Result, VersionInfo};
///
/// struct Example(PluginInfo);
///
/// impl Plugin for Example {
///     fn info(&self) -> &PluginInfo {
///         &self.0
///     }
///     fn initialize(&self, _registry: &CustomOpRegistry) -> Result<()> {
///         println!("here it is");
///         Ok(())
///     }
/// }
/// ```
pub trait Plugin: Send + Sync {
    /// What is known of it: the name and the version are those of `plugin! {}`.
    fn info(&self) -> &PluginInfo;

    /// Called when the plugin is loaded. If it fails, no op of the plugin stays.
    ///
    /// # Errors
    /// Whatever keeps the plugin from working.
    fn initialize(&self, registry: &CustomOpRegistry) -> Result<()> {
        let _ = registry;
        Ok(())
    }

    /// Called when the plugin is unloaded. Its ops may still be called by graphs.
    ///
    /// # Errors
    /// What went wrong, of which the user is warned: the plugin is gone all the same.
    fn cleanup(&self, registry: &CustomOpRegistry) -> Result<()> {
        let _ = registry;
        Ok(())
    }

    /// Ops written as objects. Those defined by `#[custom_op]` are there by themselves.
    fn custom_operations(&self) -> Vec<Arc<dyn CustomOp>> {
        Vec::new()
    }
}

/// Where a plugin puts ops while it is initialized.
pub struct CustomOpRegistry {
    pub(crate) register: fn(Arc<dyn CustomOp>) -> Result<()>,
}

impl CustomOpRegistry {
    /// The registry of this program: for tests, in which a plugin isn't loaded.
    #[cfg(feature = "engine")]
    pub fn global() -> CustomOpRegistry {
        CustomOpRegistry { register: |op| crate::registry::register(op).map(|_| ()) }
    }

    /// Adds an op.
    ///
    /// # Errors
    /// It is no op, or it isn't the time.
    pub fn register(&self, op: Arc<dyn CustomOp>) -> Result<()> {
        (self.register)(op)
    }
}

/// What `plugin! {}` may say; what it doesn't is taken from `Cargo.toml`.
#[derive(Clone, Copy)]
pub struct Package {
    /// The plugin's name.
    pub name: &'static str,
    /// Its version, `1.2.3`.
    pub version: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Who made it.
    pub author: &'static str,
    /// The oldest minitensor that it supports; that of the SDK if it isn't given.
    pub min_minitensor: &'static str,
    /// The newest minitensor that it supports; without one, those that are compatible with the oldest.
    pub max_minitensor: &'static str,
    /// Makes the plugin, if it does something of its own.
    pub plugin: Option<fn() -> Box<dyn Plugin>>,
}

impl Package {
    /// The constant that a library exports.
    #[doc(hidden)]
    pub const fn constant(&self, init: Init, fini: Fini) -> abi::Plugin {
        abi::Plugin {
            magic: abi::MAGIC,
            abi_major: abi::MAJOR,
            abi_minor: 0,
            struct_size: size_of::<abi::Plugin>() as u64,
            name: padded(self.name),
            version: padded(self.version),
            description: padded(self.description),
            author: padded(self.author),
            min_minitensor: padded(self.min_minitensor),
            max_minitensor: padded(self.max_minitensor),
            built_with: padded(env!("MINITENSOR_BUILT_WITH")),
            init: Some(init),
            fini: Some(fini),
        }
    }

    /// An error if the plugin says something else of itself than the constant.
    #[doc(hidden)]
    pub fn check(&self, info: &PluginInfo) -> Result<()> {
        if info.name == self.name && info.version == VersionInfo::parse(self.version)? {
            return Ok(());
        }
        Err(crate::Error::value(format!(
            "its info says '{}' {}, its line `plugin! {{}}` says '{}' {}: they must agree",
            info.name, info.version, self.name, self.version
        )))
    }
}

type Init = unsafe extern "C" fn(*const abi::Host, *mut abi::ErrorSink) -> i32;
type Fini = unsafe extern "C" fn(*mut abi::ErrorSink) -> i32;

/// A text with zeros behind it. Called while the plugin is compiled.
const fn padded<const N: usize>(text: &str) -> [u8; N] {
    let (bytes, mut padded) = (text.as_bytes(), [0; N]);
    assert!(
        bytes.len() < N,
        "a text of plugin! {{}} is too long: a name has 63 bytes, a description 255, an author 127"
    );
    let mut i = 0;
    while i < bytes.len() {
        assert!(bytes[i] != 0, "a text of plugin! {{}} holds a NUL");
        padded[i] = bytes[i];
        i += 1;
    }
    padded
}

/// Makes a plugin of a library: with this line it can be loaded by minitensor. Once in a crate, whose `crate-type` is `cdylib`.
///
/// All that may be said is said like the fields of [`Package`](crate::plugin::Package); what isn't is taken from `Cargo.toml`.
///
/// ```
/// use minitensor::prelude::*;
///
/// /// `x³`.
/// #[custom_op]
/// pub fn cubed<T: Num>(x: T) -> T {
///     x * x * x
/// }
///
/// minitensor::plugin! { name: "math_extensions", description: "Additional mathematical operations" }
/// # fn main() {}
/// ```
///
/// A crate that has the feature `engine`, as in its own tests, exports nothing: its ops are there without being loaded.
#[macro_export]
macro_rules! plugin {
    ($($field:ident: $value:expr),* $(,)?) => {
        const _: () = {
            // Every field may be given.
            #[allow(clippy::needless_update)]
            static PACKAGE: $crate::plugin::Package = $crate::plugin::Package {
                $($field: $crate::plugin_field!($field $value),)*
                ..$crate::plugin::Package {
                    name: env!("CARGO_PKG_NAME"),
                    version: env!("CARGO_PKG_VERSION"),
                    description: env!("CARGO_PKG_DESCRIPTION"),
                    author: env!("CARGO_PKG_AUTHORS"),
                    min_minitensor: $crate::plugin::MINITENSOR,
                    max_minitensor: "",
                    plugin: None,
                }
            };
            $crate::plugin_export!(PACKAGE);
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! plugin_field {
    (plugin $make:expr) => {
        Some(|| -> ::std::boxed::Box<dyn $crate::Plugin> { ::std::boxed::Box::new($make) })
    };
    ($field:ident $value:expr) => {
        $value
    };
}

/// A library that has the engine in it brings its ops without being loaded.
#[cfg(feature = "engine")]
#[doc(hidden)]
#[macro_export]
macro_rules! plugin_export {
    ($package:ident) => {
        const _: &$crate::plugin::Package = &$package;
    };
}

#[cfg(not(feature = "engine"))]
#[doc(hidden)]
#[macro_export]
macro_rules! plugin_export {
    ($package:ident) => {
        use $crate::plugin::{abi, start};

        #[allow(non_upper_case_globals)]
        #[unsafe(no_mangle)]
        pub static minitensor_plugin: abi::Plugin = $package.constant(init, fini);

        unsafe extern "C" fn init(host: *const abi::Host, error: *mut abi::ErrorSink) -> i32 {
            // SAFETY: the host calls it as the ABI says.
            unsafe { start::init(&$package, host, error) }
        }

        unsafe extern "C" fn fini(error: *mut abi::ErrorSink) -> i32 {
            // SAFETY: the host calls it as the ABI says.
            unsafe { start::fini(error) }
        }
    };
}
