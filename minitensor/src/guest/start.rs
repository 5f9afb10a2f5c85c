//! The `init` and `fini` of a plugin.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use super::{export, host};
use crate::error::{Error, Result};
use crate::op::{CustomOp, OpDef, OpRef};
use crate::plugin::abi::{self, ErrorSink, Host};
use crate::plugin::ffi::catch;
use crate::plugin::{CustomOpRegistry, Package, Plugin};

/// Created when the plugin is first loaded, and kept for ever.
struct Made {
    plugin: Option<Box<dyn Plugin>>,
    /// The tables of all definitions and objects. Ops registered during initialization have their own list.
    tables: Vec<&'static abi::Op>,
}

// SAFETY: the tables are immutable and live for ever, and a `Plugin` is `Send` and `Sync`.
unsafe impl Send for Made {}
// SAFETY: as above.
unsafe impl Sync for Made {}

static MADE: OnceLock<Made> = OnceLock::new();
/// Tables of ops that are registered during each initialization. An object of the same name reuses its table.
static REGISTERED: Mutex<Vec<(String, usize)>> = Mutex::new(Vec::new());

thread_local! {
    /// The host whose `init` runs on this thread.
    static HOST: RefCell<Option<*const Host>> = const { RefCell::new(None) };
    /// The names registered so far during this `init`.
    static NAMES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Registers all ops, and initializes the plugin.
///
/// # Safety
/// The host calls this function as the ABI requires.
pub unsafe fn init(package: &Package, host: *const Host, error: *mut ErrorSink) -> i32 {
    // SAFETY: by the contract of this function.
    unsafe {
        catch(error, || {
            host::set(host);
            QUIET.call_once(print_fewer_panics);
            let made = MADE.get_or_init(|| make(package));
            made.tables.iter().try_for_each(|table| export::register(host, table))?;
            let Some(plugin) = &made.plugin else { return Ok(()) };
            package.check(plugin.info())?;
            HOST.set(Some(host));
            NAMES.set(Vec::new());
            let done = catch_unwind(AssertUnwindSafe(|| plugin.initialize(&CustomOpRegistry { register })));
            HOST.set(None);
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

static QUIET: Once = Once::new();

/// While this variable of the environment is set, a panic is reported as an error only, and not printed as well.
const QUIET_PANICS: &str = "MINITENSOR_QUIET_PANICS";

fn print_fewer_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::env::var_os(QUIET_PANICS).is_none() {
            print(panic);
        }
    }));
}

fn make(package: &Package) -> Made {
    let plugin = package.plugin.map(|make| make());
    let objects = plugin.as_ref().map_or_else(Vec::new, |plugin| plugin.custom_operations());
    // The linker may reorder definitions. Readers expect the order of the source.
    let mut defined: Vec<&OpDef> = export::definitions().collect();
    defined.sort_by(|a, b| {
        (&a.location.file, a.location.line, &a.name).cmp(&(&b.location.file, b.location.line, &b.name))
    });
    let defined = defined.into_iter().map(export::table);
    let tables = defined.chain(objects.into_iter().map(|object| export::table(stay(object.definition()))));
    Made { tables: tables.collect(), plugin }
}

/// Makes a definition live for ever.
fn stay(op: OpRef) -> &'static OpDef {
    match op {
        OpRef::Static(op) => op,
        OpRef::Shared(op) => {
            // SAFETY: the `Arc` is leaked, so the definition is never freed.
            unsafe { &*Arc::into_raw(op) }
        }
    }
}

fn register(object: Arc<dyn CustomOp>) -> Result<()> {
    let host = HOST.with_borrow(|host| *host);
    let host = host.ok_or_else(|| {
        Error::runtime("ops can only be registered while the plugin is initialized, on the same thread")
    })?;
    let mut known = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let name = object.name().to_owned();
    NAMES.with_borrow_mut(|names| {
        let is_new = !names.contains(&name);
        names.push(name.clone());
        if is_new { Ok(()) } else { Err(Error::value(format!("op '{name}' is registered twice"))) }
    })?;
    let table = match known.iter().find(|(other, _)| *other == name) {
        // SAFETY: the number is the address of a leaked table.
        Some((_, table)) => unsafe { &*(*table as *const abi::Op) },
        None => {
            let table = export::table(stay(object.definition()));
            known.push((name, std::ptr::from_ref(table) as usize));
            table
        }
    };
    // SAFETY: `HOST` is set only while the `init` of the host runs on this thread.
    unsafe { export::register(host, table) }
}

/// Runs the cleanup of the plugin.
///
/// # Safety
/// The host calls this function as the ABI requires.
pub unsafe fn fini(error: *mut ErrorSink) -> i32 {
    let plugin = MADE.get().and_then(|made| made.plugin.as_ref());
    // SAFETY: by the contract of this function.
    unsafe { catch(error, || plugin.map_or(Ok(()), |plugin| plugin.cleanup(&CustomOpRegistry { register }))) }
}
