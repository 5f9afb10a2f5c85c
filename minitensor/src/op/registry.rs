//! The registry: every op by name. Filled from `inventory` at first use, then by whoever registers more.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::custom_op::CustomOp;
use super::def::{OpDef, OpRef};
use super::entry::OpEntry;
use crate::error::{Error, Result, nearest};

/// Every name, aliases too, with its op.
type Names = BTreeMap<String, OpRef>;

static NAMES: LazyLock<RwLock<Names>> = LazyLock::new(|| {
    let mut names = Names::new();
    let mut entries: Vec<_> = inventory::iter::<OpEntry>.into_iter().map(|e| e.0).collect();
    entries.sort_by(|a, b| (&a.name, &a.location.file).cmp(&(&b.name, &b.location.file)));
    for op in entries {
        if let Err(error) = insert(&mut names, OpRef::Static(op)) {
            CONFLICTS.write().unwrap_or_else(PoisonError::into_inner).push(error);
        }
    }
    RwLock::new(names)
});

/// Ops of one name from different crates, found when the registry was built.
static CONFLICTS: RwLock<Vec<Error>> = RwLock::new(Vec::new());

fn read() -> RwLockReadGuard<'static, Names> {
    NAMES.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Names> {
    NAMES.write().unwrap_or_else(PoisonError::into_inner)
}

fn insert(names: &mut Names, op: OpRef) -> Result<()> {
    for name in op.names() {
        check_name(name)?;
        check_place(names, name, &op)?;
    }
    for name in op.names() {
        names.insert(name.to_string(), op.clone());
    }
    Ok(())
}

/// An error if the name is taken, or if an op would stand where another one has its namespace.
fn check_place(names: &Names, name: &str, op: &OpDef) -> Result<()> {
    if let Some(other) = names.get(name) {
        return Err(Error::value(format!(
            "op '{name}' is registered already: by {}, and again by {}; give one of them another name, or unregister the first",
            other.location, op.location
        )));
    }
    let inner = format!("{name}::");
    let outer = name.match_indices("::").find_map(|(end, _)| names.get_key_value(&name[..end]));
    let inside = names.range(inner.clone()..).next().filter(|(other, _)| other.starts_with(&inner));
    outer.or(inside).map_or(Ok(()), |(other, its)| {
        Err(Error::value(format!(
            "op '{name}', by {}, and op '{other}', by {}, can't both be: one is named as the other's namespace; give one of \
             them another name",
            op.location, its.location
        )))
    })
}

fn check_name(name: &str) -> Result<()> {
    let word = |w: &str| {
        let mut chars = w.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if name.split("::").flat_map(|n| n.split('.')).all(word) {
        return Ok(());
    }
    Err(Error::value(format!("'{name}' is no name for an op: use letters, digits and '_', and '::' after a namespace")))
}

/// An error if two crates define an op of one name.
pub fn check() -> Result<()> {
    drop(read());
    CONFLICTS.read().unwrap_or_else(PoisonError::into_inner).first().cloned().map_or(Ok(()), Err)
}

/// The op of that name.
pub fn get(name: &str) -> Result<OpRef> {
    let names = read();
    names.get(name).cloned().ok_or_else(|| {
        let hint = nearest(name, names.keys().map(String::as_str)).map(|n| format!("; did you mean '{n}'?"));
        Error::value(format!("there is no op '{name}'{}", hint.unwrap_or_default()))
    })
}

/// Whether there is an op of that name.
pub fn contains(name: &str) -> bool {
    read().contains_key(name)
}

/// All ops, by name; aliases and gradient ops are left out.
pub fn list() -> Vec<OpRef> {
    read().iter().filter(|(name, op)| **name == op.name && !op.is_gradient()).map(|(_, op)| op.clone()).collect()
}

/// All ops, with those that compute gradients.
pub fn list_all() -> Vec<OpRef> {
    read().iter().filter(|(name, op)| **name == op.name).map(|(_, op)| op.clone()).collect()
}

/// Adds an op under its name and aliases, all or none.
pub fn register(op: Arc<dyn CustomOp>) -> Result<OpRef> {
    let op = op.definition();
    insert(&mut write(), op.clone())?;
    Ok(op)
}

/// Adds several, all or none.
pub fn register_all(ops: impl IntoIterator<Item = OpRef>) -> Result<()> {
    let mut names = write();
    let mut grown = names.clone();
    for op in ops {
        insert(&mut grown, op)?;
    }
    *names = grown;
    Ok(())
}

/// Takes an op away, with its aliases and gradient ops. Tensors and graphs that use it stay valid.
pub fn unregister(name: &str) -> Result<OpRef> {
    let op = get(name)?;
    let vjp = format!("{}.vjp", op.name);
    let mut names = write();
    names.retain(|key, other| other.name != op.name && key != &vjp && !key.starts_with(&format!("{vjp}.")));
    Ok(op)
}

/// Registers built-in ops of these names anew, with their gradients, where they were unregistered.
pub fn restore(wanted: &[&str]) -> Result<Vec<OpRef>> {
    let is_wanted =
        |op: &OpDef| wanted.contains(&op.name.split_once(".vjp").map_or(op.name.as_ref(), |(base, _)| base));
    let mut names = write();
    let mut restored = Vec::new();
    for entry in inventory::iter::<OpEntry>.into_iter().filter(|e| is_wanted(e.0)) {
        if !names.contains_key(entry.0.name.as_ref()) {
            insert(&mut names, OpRef::Static(entry.0))?;
            restored.push(OpRef::Static(entry.0));
        }
    }
    Ok(restored)
}

impl OpDef {
    /// Its name, then its aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_ref()).chain(self.aliases.iter().map(AsRef::as_ref))
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
