//! The values of tuned attributes.
//!
//! A definition lists candidates for an attribute that only changes the speed, such as the size of a tile. If a caller does not
//! pass the attribute, the first call of each class is run with every candidate, and the fastest is kept for the class: in memory,
//! and in a file for later processes. A class consists of the op, dtypes, attributes other than floats, layouts, and shapes whose sizes
//! have the same next power of two.
//!
//! | environment variable | meaning |
//! |---|---|
//! | `MINITENSOR_TUNE=off`, or `0`, `false`, `no` | nothing is measured: the first candidate is used |
//! | `MINITENSOR_CACHE_DIR` | the folder of the file; by default `minitensor` in the user's cache folder |

mod file;
mod measure;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, PoisonError, RwLock};

use smallvec::SmallVec;

pub(crate) use measure::{Candidates, fastest};

use crate::error::Result;
use crate::fork::lock::{try_lock, try_write};

/// A value for each measured attribute, in their order.
pub type Values = SmallVec<[i64; 2]>;

/// The maximum number of classes that are kept.
const MOST_CLASSES: usize = 1 << 16;

/// The maximum length of a class. Longer ones are not measured.
const LONGEST: usize = 4096;

/// The values by class. `None` until the first use, which reads the file.
static TABLE: RwLock<Option<BTreeMap<String, Values>>> = RwLock::new(None);

/// Calls a function with the table.
fn with_table<R>(f: impl Fn(&BTreeMap<String, Values>) -> R) -> R {
    if let Some(table) = &*TABLE.read().unwrap_or_else(PoisonError::into_inner) {
        return f(table);
    }
    // No lock is held while the file is read: another thread may fork.
    let read = file::read(MOST_CLASSES);
    f(TABLE.write().unwrap_or_else(PoisonError::into_inner).get_or_insert(read))
}

/// All classes of calls, each with the values that are used for it.
pub fn choices() -> Vec<(String, Values)> {
    with_table(|table| table.iter().map(|(class, values)| (class.clone(), values.clone())).collect())
}

/// Forgets all values, and deletes the file.
pub fn clear() -> Result<()> {
    *TABLE.write().unwrap_or_else(PoisonError::into_inner) = Some(BTreeMap::new());
    file::remove()
}

/// Whether anything is measured.
pub(crate) fn is_enabled() -> bool {
    static ENABLED: LazyLock<bool> = LazyLock::new(|| {
        let value = std::env::var("MINITENSOR_TUNE").unwrap_or_default().trim().to_ascii_lowercase();
        !["off", "0", "false", "no"].contains(&value.as_str())
    });
    *ENABLED
}

/// The values of a class, if they are known.
pub(crate) fn find(class: &str) -> Option<Values> {
    with_table(|table| table.get(class).cloned())
}

/// Whether the values of a class would be kept.
pub(crate) fn has_room(class: &str) -> bool {
    class.len() <= LONGEST && with_table(|table| table.len() < MOST_CLASSES || table.contains_key(class))
}

/// Keeps the values of a class. A file that cannot be written is no error: later processes measure again.
pub(crate) fn keep(class: String, values: Values) {
    file::append(&class, &values);
    if let Some(table) = &mut *TABLE.write().unwrap_or_else(PoisonError::into_inner) {
        table.insert(class, values);
    }
}

/// The candidates of ops that are not compiled into this program. They live for ever, so equal lists share one allocation.
static CANDIDATES: Mutex<BTreeSet<&'static [i64]>> = Mutex::new(BTreeSet::new());

/// A list of candidates that lives for ever.
pub fn candidates(list: &[i64]) -> &'static [i64] {
    let mut known = CANDIDATES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = known.get(list) {
        return same;
    }
    let list: &'static [i64] = list.to_vec().leak();
    known.insert(list);
    list
}

/// Acquires the locks for a fork. `None` if another thread holds one.
pub(crate) fn try_hold() -> Option<[Box<dyn Any>; 2]> {
    Some([try_write(&TABLE)?, try_lock(&CANDIDATES)?])
}
