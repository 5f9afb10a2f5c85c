//! The registry: all ops by name, with their owners. It is filled from `inventory` at first use. Further ops can be registered.
//!
//! Its lock is held only for look-ups and changes. No code of a caller runs under the lock, nor does the last drop of a value
//! from a caller.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::build::CustomOp;
use super::call::slots;
use super::def::{Arity, Body, OpDef, OpRef, Role};
use super::entry::{Called, CallsEntry, KernelEntry, OpEntry};
use super::kernel::Kernels;
use super::program::ProgramFn;
use super::variants::Variants;
use crate::error::{Error, Result, counted};
use crate::fork::lock::try_write;
use crate::tensor::DeviceKind;
use minitensor_schema::name::check_registered;
use minitensor_schema::suggestion::nearest;

/// All names, including aliases, with their ops.
type Names = BTreeMap<String, Entry>;

#[derive(Clone)]
struct Entry {
    op: OpRef,
    /// The owner, such as a plugin; `None` for built-ins.
    owner: Option<Arc<str>>,
}

#[derive(Default)]
struct Table {
    names: Names,
    /// The unregistered names for which a reason was recorded, the latest last.
    gone: VecDeque<Gone>,
}

/// An unregistered name.
struct Gone {
    name: String,
    why: Arc<str>,
    /// The op, if it is of a library. The library stays mapped, since gradients of existing graphs may call the op.
    op: Option<OpRef>,
}

/// The maximum number of [`Gone`] names.
const MOST_GONE: usize = 1024;

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut table = Table::default();
    let mut entries: Vec<&OpEntry> = inventory::iter::<OpEntry>.into_iter().collect();
    entries.sort_by(|a, b| (&a.op.name, &a.op.location.file).cmp(&(&b.op.name, &b.op.location.file)));
    for OpEntry { op, kernels } in entries {
        // An op that is not registered, because another has its name, can still be called.
        // The program of a precompiled op computes half floats in memory, and rows that are side by side.
        for kernels in [kernels.clone(), op.loop_of_program()].into_iter().flatten() {
            op.kernels.add(DeviceKind::Cpu, kernels);
        }
        if let Err(error) = op.check_defaults().and_then(|()| insert(&mut table.names, OpRef::Static(op), None)) {
            conflict(error);
        }
    }
    for entry in inventory::iter::<KernelEntry> {
        match (table.names.get(entry.op), DeviceKind::named(entry.device)) {
            (Some(Entry { op, .. }), Ok(kind)) => op.kernels.add(kind, (entry.kernels)()),
            (Some(_), Err(error)) => conflict(error.context(format!("a kernel of op '{}'", entry.op))),
            (None, _) => conflict(Error::value(format!(
                "a kernel is defined for op '{}', but there is no op with this name",
                entry.op
            ))),
        }
    }
    for entry in inventory::iter::<CallsEntry> {
        for called in entry.calls {
            match table.names.get(called.op) {
                None => conflict(unknown_call(&table.names, entry, called.op)),
                Some(Entry { op, .. }) => {
                    if let Err(error) = check_call(op, called) {
                        conflict(error.context(format!("{}, by {}", entry.caller, entry.location)));
                    }
                }
            }
        }
    }
    RwLock::new(table)
});

fn unknown_call(names: &Names, entry: &CallsEntry, name: &str) -> Error {
    let help = match nearest(name, names.keys().map(String::as_str)) {
        Some(near) => format!("did you mean '{near}'?"),
        None => "link the crate that defines it".to_owned(),
    };
    let CallsEntry { caller, location, .. } = entry;
    Error::value(format!("{caller}, by {location}, calls '{name}', but there is no op with this name; {help}"))
}

/// Checks the names of the arguments of a call, and the number of its outputs.
///
/// # Errors
/// If an argument is unknown, missing or given twice, or if the op returns another number of outputs.
fn check_call(op: &OpDef, called: &Called) -> Result<()> {
    let slots = slots(op, called.positional, called.keywords)?;
    let required = op.inputs.iter().map(|input| input.arity != Arity::Optional);
    let required = required.chain(op.attr_order().into_iter().map(|i| op.attrs[i].default.is_none()));
    let missing =
        op.parameters().zip(required).zip(&slots).find(|((_, is_required), slot)| *is_required && slot.is_none());
    if let (Some(((name, _), _)), true) = (missing, called.positional + called.keywords.len() > 0) {
        return Err(op.missing(name));
    }
    let returned = op.outputs.iter().filter(|output| output.role == Role::Returned).count();
    match called.outputs {
        Some(count) if count != returned && !op.gives_list() => {
            Err(Error::type_(format!("op '{}' returns {}, expected {count}", op.name, counted(returned, "tensor"))))
        }
        _ => Ok(()),
    }
}

/// The errors found when the registry was built, such as ops with the same name from different crates.
static CONFLICTS: RwLock<Vec<Error>> = RwLock::new(Vec::new());

fn conflict(error: Error) {
    CONFLICTS.write().unwrap_or_else(PoisonError::into_inner).push(error);
}

fn read() -> RwLockReadGuard<'static, Table> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Table> {
    let table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    GENERATION.fetch_add(1, Ordering::Release);
    table
}

/// The number of changes so far. It grows while the lock is held, so that a look-up after [`generation`] sees at least these
/// changes.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// A number that differs if any op was registered or unregistered in between. The result of a look-up stays valid as long as the
/// number, read before the look-up, stays the same.
#[inline]
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// Holds the registry's locks for a fork, unless another thread holds one of them.
pub(crate) fn try_hold() -> Option<[Box<dyn Any>; 2]> {
    Some([try_write(&TABLE)?, try_write(&CONFLICTS)?])
}

impl Table {
    /// Whether the registered op of its name is this same op.
    fn has(&self, op: &OpRef) -> bool {
        self.names.get(op.name.as_ref()).is_some_and(|entry| entry.op.is(op))
    }

    /// Removes the reasons for names that are registered again.
    #[must_use = "it is to be dropped without the lock"]
    fn forget(&mut self) -> VecDeque<Gone> {
        let (forgotten, kept) = self.gone.drain(..).partition(|gone| self.names.contains_key(&gone.name));
        self.gone = kept;
        forgotten
    }

    fn gone(&self, name: &str) -> Option<&Gone> {
        self.gone.iter().rfind(|gone| gone.name == name)
    }

    fn reason(&self, name: &str) -> Option<String> {
        Some(format!("op '{name}' {}", self.gone(name)?.why))
    }
}

fn insert(names: &mut Names, op: OpRef, owner: Option<&Arc<str>>) -> Result<()> {
    for name in op.names() {
        check_registered(name)?;
        check_place(names, name, &op)?;
    }
    for name in op.names() {
        names.insert(name.to_string(), Entry { op: op.clone(), owner: owner.cloned() });
    }
    Ok(())
}

/// An error if the name is registered already, or if one op's name is the namespace of another op.
fn check_place(names: &Names, name: &str, op: &OpDef) -> Result<()> {
    if let Some(Entry { op: other, owner }) = names.get(name) {
        let (of, way_out) = match owner {
            Some(plugin) => (format!(" of plugin '{plugin}'"), "unload that plugin"),
            None => (String::new(), "unregister the first"),
        };
        return Err(Error::value(format!(
            "op '{name}' is already registered: by {}{of}, and again by {}; rename one of them, or {way_out}",
            other.location, op.location
        )));
    }
    let inner = format!("{name}::");
    let outer = name.match_indices("::").find_map(|(end, _)| names.get_key_value(&name[..end]));
    let inside = names.range(inner.clone()..).next().filter(|(other, _)| other.starts_with(&inner));
    outer.or(inside).map_or(Ok(()), |(other, Entry { op: its, .. })| {
        Err(Error::value(format!(
            "op '{name}', by {}, and op '{other}', by {}, cannot both be registered, because the name of one is the \
             namespace of the other; rename one of them",
            op.location, its.location
        )))
    })
}

/// Checks the definitions and kernels of all linked crates. The error has a line for each fault.
///
/// # Errors
/// If two crates define an op with the same name, if a kernel belongs to no op, or if a gradient formula or a body calls an unknown op,
/// or calls an op with wrong arguments.
pub fn check() -> Result<()> {
    drop(read());
    match &CONFLICTS.read().unwrap_or_else(PoisonError::into_inner)[..] {
        [] => Ok(()),
        [error] => Err(error.clone()),
        errors => Err(Error::value(errors.iter().map(Error::message).collect::<Vec<_>>().join("\n"))),
    }
}

/// The error for an op that does not exist begins with it.
pub(crate) const UNKNOWN: &str = "there is no op";

/// The op with this name.
pub fn get(name: &str) -> Result<OpRef> {
    let table = read();
    if let Some(entry) = table.names.get(name) {
        return Ok(entry.op.clone());
    }
    Err(Error::value(table.reason(name).unwrap_or_else(|| {
        let hint = nearest(name, table.names.keys().map(String::as_str)).map(|n| format!("; did you mean '{n}'?"));
        format!("{UNKNOWN} '{name}'{}", hint.unwrap_or_default())
    })))
}

/// The op with this name for a gradient: if a library with such an op was unloaded, that op.
pub fn get_or_gone(name: &str) -> Result<OpRef> {
    let gone = read().gone(name).and_then(|gone| gone.op.clone());
    gone.map_or_else(|| get(name), Ok)
}

/// Whether an op with this name is registered.
pub fn contains(name: &str) -> bool {
    read().names.contains_key(name)
}

/// Whether the registered op of its name is this same op.
pub fn has(op: &OpRef) -> bool {
    read().has(op)
}

/// The owner of the op with this name.
pub fn owner(name: &str) -> Option<Arc<str>> {
    read().names.get(name)?.owner.clone()
}

/// Why the op with this name is no longer registered, if a reason was recorded.
pub fn reason(name: &str) -> Option<String> {
    read().reason(name)
}

/// Whether a reason was recorded for any op of this namespace. The namespace is empty for ops without one.
pub fn has_reasons(namespace: &str) -> bool {
    let outer = |name: &str| name.rsplit_once("::").map_or("", |(outer, _)| outer).to_owned();
    read().gone.iter().any(|gone| outer(&gone.name) == namespace)
}

/// All ops, sorted by name, without aliases and gradient ops.
pub fn list() -> Vec<OpRef> {
    list_all().into_iter().filter(|op| !op.is_gradient()).collect()
}

/// All ops, including gradient ops, sorted by name.
pub fn list_all() -> Vec<OpRef> {
    read().names.iter().filter(|(name, e)| **name == e.op.name).map(|(_, e)| e.op.clone()).collect()
}

/// Registers an op under its name and all its aliases. After an error, none of them is registered.
pub fn register(op: Arc<dyn CustomOp>) -> Result<OpRef> {
    let op = op.definition();
    let mut table = write();
    insert(&mut table.names, op.clone(), None)?;
    let forgotten = table.forget();
    drop(table);
    drop(forgotten);
    Ok(op)
}

/// Registers several ops for their owner, and returns the new ones. After an error, none of them is registered. An op that
/// is registered already stays and is assigned the owner. It is an error if it already has one.
pub fn register_all(ops: &[OpRef], owner: Option<&str>) -> Result<Vec<OpRef>> {
    let owner = owner.map(Arc::from);
    let mut new = Vec::new();
    let mut table = write();
    let mut names = table.names.clone();
    for op in ops {
        let entry = names.get(op.name.as_ref()).filter(|entry| entry.op.is(op));
        if entry.is_some_and(|entry| entry.owner.is_none()) {
            for name in op.names() {
                names.insert(name.to_string(), Entry { op: op.clone(), owner: owner.clone() });
            }
        } else {
            insert(&mut names, op.clone(), owner.as_ref())?;
            new.push(op.clone());
        }
    }
    let before = std::mem::replace(&mut table.names, names);
    let forgotten = table.forget();
    drop(table);
    drop((before, forgotten));
    Ok(new)
}

/// Adds kernels of an op for a kind of device. They are used for calls that no earlier kernel of the op takes.
///
/// # Errors
/// If there is no such op.
pub fn add_kernels(name: &str, kind: DeviceKind, kernels: Kernels) -> Result<()> {
    get(name)?.kernels.add(kind, kernels);
    Ok(())
}

/// Unregisters an op, with its aliases and gradient ops. Tensors and graphs that use it stay valid.
pub fn unregister(name: &str) -> Result<OpRef> {
    let op = get(name)?;
    unregister_all(std::slice::from_ref(&op), None);
    Ok(op)
}

/// Unregisters several ops at once, with their aliases and gradient ops, and returns all removed ops. Names that now belong
/// to other ops are not changed.
///
/// Later lookups of these names report the reason, until an op with that name is registered again. The message is `op '…' `
/// followed by the reason, such as `came with plugin 'noise', which was unloaded`.
pub fn unregister_all(ops: &[OpRef], reason: Option<&str>) -> Vec<OpRef> {
    let reason: Option<Arc<str>> = reason.map(Arc::from);
    let mut gone = Vec::new();
    let mut table = write();
    for op in ops {
        if !table.has(op) {
            continue;
        }
        let vjp = format!("{}.vjp", op.name);
        let inner = format!("{vjp}.");
        table.names.retain(|name, entry| {
            let goes = entry.op.is(op) || *name == vjp || name.starts_with(&inner);
            if goes && *name == entry.op.name {
                gone.push(entry.op.clone());
            }
            !goes
        });
        if let Some(why) = &reason {
            let kept = op.is_of_library().then(|| op.clone());
            table.gone.extend(op.names().map(|name| Gone { name: name.into(), why: why.clone(), op: kept.clone() }));
        }
    }
    let surplus = table.gone.len().saturating_sub(MOST_GONE);
    let forgotten: Vec<Gone> = table.gone.drain(..surplus).collect();
    drop(table);
    drop(forgotten);
    gone
}

/// Registers built-in ops with these names again, with their gradients, if they were unregistered.
pub fn restore(wanted: &[&str]) -> Result<Vec<OpRef>> {
    let is_wanted =
        |op: &OpDef| wanted.contains(&op.name.split_once(".vjp").map_or(op.name.as_ref(), |(base, _)| base));
    let absent = |op: &&'static OpDef| is_wanted(op) && !contains(&op.name);
    let ops: Vec<OpRef> =
        inventory::iter::<OpEntry>.into_iter().map(|e| e.op).filter(absent).map(OpRef::Static).collect();
    register_all(&ops, None)
}

impl OpRef {
    /// Whether both are the same op.
    pub fn is(&self, other: &OpRef) -> bool {
        std::ptr::eq::<OpDef>(&**self, &**other)
    }
}

impl OpDef {
    /// The name, then the aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_ref()).chain(self.aliases.iter().map(AsRef::as_ref))
    }

    /// Whether its code is that of a shared library or an object, rather than that of minitensor or Python.
    #[inline]
    pub fn is_of_library(&self) -> bool {
        match &self.body {
            Body::Element(program) | Body::Cell(program) => {
                matches!(program, Some(ProgramFn::Loaded(_)))
                    || self.kernels_on(DeviceKind::Cpu).any(|k| matches!(k, Kernels::Loaded(_)))
            }
            Body::Arrays(_) => true,
            Body::Dynamic(body) => !body.is_interpreted,
            Body::Tensor(_) => false,
        }
    }

    /// The loop over elements or rows that its program makes.
    pub(crate) fn loop_of_program(&self) -> Option<Kernels> {
        match self.body {
            Body::Element(Some(_)) => Some(Kernels::Programs(Arc::new(Variants::of_definition()))),
            Body::Cell(Some(_)) => Some(Kernels::Rows(Arc::new(Variants::of_definition()))),
            _ => None,
        }
    }

    /// The kernels on a kind of device.
    #[inline]
    pub(crate) fn kernels_on(&self, kind: DeviceKind) -> impl Iterator<Item = &Kernels> {
        if self.kernels.is_empty() {
            // A linked crate may call its ops before the first look-up fills their tables.
            LazyLock::force(&TABLE);
        }
        self.kernels.on(kind)
    }

    /// Whether it computes the gradient of another op.
    pub fn is_gradient(&self) -> bool {
        self.name.ends_with(".vjp")
    }
}

impl std::fmt::Display for super::def::Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}
