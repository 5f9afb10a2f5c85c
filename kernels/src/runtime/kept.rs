//! [`Kept`]: values that are made at their first use.

use std::sync::{Arc, OnceLock};

/// Values that take longer to make than a call, by key. It is an append-only list, so that a call finds its value without a lock.
pub struct Kept<K, V>(OnceLock<Box<Entry<K, V>>>);

struct Entry<K, V> {
    key: K,
    value: Arc<V>,
    next: Kept<K, V>,
}

/// The maximum number of values. Further ones are made each time.
const MOST: usize = 256;

impl<K, V> Kept<K, V> {
    /// No values.
    pub const fn new() -> Kept<K, V> {
        Kept(OnceLock::new())
    }

    /// The first value whose key is the wanted one.
    pub fn find(&self, is_wanted: impl Fn(&K) -> bool) -> Option<&Arc<V>> {
        let mut entries = std::iter::successors(self.0.get(), |entry| entry.next.0.get());
        entries.find(|entry| is_wanted(&entry.key)).map(|entry| &entry.value)
    }

    /// Keeps a value, unless there are too many.
    pub fn keep(&self, key: K, value: Arc<V>) {
        let mut entry = Box::new(Entry { key, value, next: Kept::new() });
        let mut slot = self;
        // Another thread may append at the same time.
        for _ in 0..MOST {
            match slot.0.set(entry) {
                Ok(()) => return,
                Err(back) => entry = back,
            }
            let Some(taken) = slot.0.get() else { return };
            slot = &taken.next;
        }
    }
}

impl<K, V> std::fmt::Debug for Kept<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kept")
    }
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Kept::new()
    }
}
