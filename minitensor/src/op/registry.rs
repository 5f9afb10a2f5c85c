//! The registry: every op by name, with its owner. Filled from `inventory` at first use, then by whoever registers more.
//!
//! Its lock is held for look-ups and changes alone: nothing that a caller gave is run under it, nor dropped for the last time.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::custom_op::CustomOp;
use super::def::{Body, OpDef, OpRef};
use super::entry::OpEntry;
use super::kernel::Kernels;
use crate::error::{Error, Result};
use crate::fork::try_write;
use minitensor_schema::name::check_registered;
use minitensor_schema::suggestion::nearest;

/// Every name, aliases too, with what it names.
type Names = BTreeMap<String, Entry>;

#[derive(Clone)]
struct Entry {
    op: OpRef,
    /// Who brought it, such as a plugin; nobody for built-ins.
    owner: Option<Arc<str>>,
}

#[derive(Default)]
struct Table {
    names: Names,
    /// Names that are gone for a reason, the latest last.
    gone: VecDeque<Gone>,
}

/// A name that is gone.
struct Gone {
    name: String,
    why: Arc<str>,
    /// The op of a library, which stays mapped: gradients of graphs that are still there may call it.
    op: Option<OpRef>,
}

/// So many are kept.
const MOST_GONE: usize = 1024;

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut table = Table::default();
    let mut entries: Vec<_> = inventory::iter::<OpEntry>.into_iter().map(|e| e.0).collect();
    entries.sort_by(|a, b| (&a.name, &a.location.file).cmp(&(&b.name, &b.location.file)));
    for op in entries {
        if let Err(error) = insert(&mut table.names, OpRef::Static(op), None) {
            CONFLICTS.write().unwrap_or_else(PoisonError::into_inner).push(error);
        }
    }
    RwLock::new(table)
});

/// Ops of one name from different crates, found when the registry was built.
static CONFLICTS: RwLock<Vec<Error>> = RwLock::new(Vec::new());

fn read() -> RwLockReadGuard<'static, Table> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Table> {
    TABLE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Holds the registry's locks for a fork, unless another thread holds one of them.
pub(crate) fn try_hold() -> Option<[Box<dyn Any>; 2]> {
    Some([try_write(&TABLE)?, try_write(&CONFLICTS)?])
}

impl Table {
    /// Whether it is this very op that has its name.
    fn has(&self, op: &OpRef) -> bool {
        self.names.get(op.name.as_ref()).is_some_and(|entry| entry.op.is(op))
    }

    /// Forgets why names were gone that are there again.
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

/// An error if the name is taken, or if an op would stand where another one has its namespace.
fn check_place(names: &Names, name: &str, op: &OpDef) -> Result<()> {
    if let Some(Entry { op: other, owner }) = names.get(name) {
        let (of, way_out) = match owner {
            Some(plugin) => (format!(" of plugin '{plugin}'"), "unload that plugin"),
            None => (String::new(), "unregister the first"),
        };
        return Err(Error::value(format!(
            "op '{name}' is registered already: by {}{of}, and again by {}; give one of them another name, or {way_out}",
            other.location, op.location
        )));
    }
    let inner = format!("{name}::");
    let outer = name.match_indices("::").find_map(|(end, _)| names.get_key_value(&name[..end]));
    let inside = names.range(inner.clone()..).next().filter(|(other, _)| other.starts_with(&inner));
    outer.or(inside).map_or(Ok(()), |(other, Entry { op: its, .. })| {
        Err(Error::value(format!(
            "op '{name}', by {}, and op '{other}', by {}, can't both be: one is named as the other's namespace; give one of \
             them another name",
            op.location, its.location
        )))
    })
}

/// An error if two crates define an op of one name.
pub fn check() -> Result<()> {
    drop(read());
    CONFLICTS.read().unwrap_or_else(PoisonError::into_inner).first().cloned().map_or(Ok(()), Err)
}

/// The op of that name.
pub fn get(name: &str) -> Result<OpRef> {
    let table = read();
    if let Some(entry) = table.names.get(name) {
        return Ok(entry.op.clone());
    }
    Err(Error::value(table.reason(name).unwrap_or_else(|| {
        let hint = nearest(name, table.names.keys().map(String::as_str)).map(|n| format!("; did you mean '{n}'?"));
        format!("there is no op '{name}'{}", hint.unwrap_or_default())
    })))
}

/// The op of that name, or the one that a library had when it was unloaded: what a gradient calls.
pub fn get_or_gone(name: &str) -> Result<OpRef> {
    let gone = read().gone(name).and_then(|gone| gone.op.clone());
    gone.map_or_else(|| get(name), Ok)
}

/// Whether there is an op of that name.
pub fn contains(name: &str) -> bool {
    read().names.contains_key(name)
}

/// Whether it is this very op that has its name.
pub fn has(op: &OpRef) -> bool {
    read().has(op)
}

/// Who brought the op that has this name.
pub fn owner(name: &str) -> Option<Arc<str>> {
    read().names.get(name)?.owner.clone()
}

/// Why there is no op of that name any more, if that was said when it was unregistered.
pub fn reason(name: &str) -> Option<String> {
    read().reason(name)
}

/// Whether there is a reason for any op of that namespace, which is empty for ops without one.
pub fn has_reasons(namespace: &str) -> bool {
    let outer = |name: &str| name.rsplit_once("::").map_or("", |(outer, _)| outer).to_owned();
    read().gone.iter().any(|gone| outer(&gone.name) == namespace)
}

/// All ops, by name; aliases and gradient ops are left out.
pub fn list() -> Vec<OpRef> {
    list_all().into_iter().filter(|op| !op.is_gradient()).collect()
}

/// All ops, with those that compute gradients.
pub fn list_all() -> Vec<OpRef> {
    read().names.iter().filter(|(name, e)| **name == e.op.name).map(|(_, e)| e.op.clone()).collect()
}

/// Adds an op under its name and aliases, all or none.
pub fn register(op: Arc<dyn CustomOp>) -> Result<OpRef> {
    let op = op.definition();
    let mut table = write();
    insert(&mut table.names, op.clone(), None)?;
    let forgotten = table.forget();
    drop(table);
    drop(forgotten);
    Ok(op)
}

/// Adds several ops for their owner, all or none, and gives those that are new. What is there already stays, and gets
/// the owner; if it has one, that is an error.
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

/// Takes an op away, with its aliases and gradient ops. Tensors and graphs that use it stay valid.
pub fn unregister(name: &str) -> Result<OpRef> {
    let op = get(name)?;
    unregister_all(std::slice::from_ref(&op), None);
    Ok(op)
}

/// Takes several ops away at once, with their aliases and gradient ops, and gives all that have gone. Names that belong to
/// other ops by now are left alone.
///
/// Who looks for one of them from now on is told the reason, until there is an op of that name again: `op '…' `, and then
/// what is given here, such as `came with plugin 'noise', which was unloaded`.
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

/// Registers built-in ops of these names anew, with their gradients, where they were unregistered.
pub fn restore(wanted: &[&str]) -> Result<Vec<OpRef>> {
    let is_wanted =
        |op: &OpDef| wanted.contains(&op.name.split_once(".vjp").map_or(op.name.as_ref(), |(base, _)| base));
    let absent = |op: &&'static OpDef| is_wanted(op) && !contains(&op.name);
    let ops: Vec<OpRef> =
        inventory::iter::<OpEntry>.into_iter().map(|e| e.0).filter(absent).map(OpRef::Static).collect();
    register_all(&ops, None)
}

impl OpRef {
    /// Whether it is the very same op.
    pub fn is(&self, other: &OpRef) -> bool {
        std::ptr::eq::<OpDef>(&**self, &**other)
    }
}

impl OpDef {
    /// Its name, then its aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_ref()).chain(self.aliases.iter().map(AsRef::as_ref))
    }

    /// Whether code computes it that isn't minitensor's, nor Python's: a shared library's, or an object's.
    #[inline]
    pub fn is_of_library(&self) -> bool {
        match &self.body {
            Body::Element(body) => matches!(body.kernels, Kernels::Loaded(_)),
            Body::Cell(body) => matches!(body.kernels, Kernels::Loaded(_)),
            Body::Arrays(_) => true,
            Body::Dynamic(body) => !body.is_interpreted,
            _ => false,
        }
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
