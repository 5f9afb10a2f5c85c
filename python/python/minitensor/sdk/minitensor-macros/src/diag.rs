//! [`Diag`]: mistakes are collected, then reported all at once.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Error;

pub mod messages;
pub use messages::Message;

/// The mistakes found so far. Dropped without [`finish`](Diag::finish) it panics, so that none is lost.
#[derive(Default)]
pub struct Diag {
    errors: Vec<Error>,
    finished: bool,
}

impl Diag {
    /// A mistake under the caret, its message's `{}` filled in one after the other.
    pub fn error(&mut self, at: impl ToTokens, message: &Message, args: &[&dyn Display]) {
        self.errors.push(error(at, message, args));
    }

    /// A mistake found while parsing.
    pub fn push(&mut self, error: Error) {
        self.errors.push(error);
    }

    /// Keeps the value, or the mistake.
    pub fn ok<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|e| self.push(e)).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.errors.len()
    }

    /// All mistakes as `compile_error!`s; empty if there were none.
    pub fn finish(mut self) -> TokenStream {
        self.finished = true;
        self.errors.iter().map(Error::to_compile_error).collect()
    }
}

impl Drop for Diag {
    fn drop(&mut self) {
        if cfg!(debug_assertions) && !self.finished && !std::thread::panicking() {
            panic!("{} mistakes were found and not reported", self.errors.len());
        }
    }
}

/// One mistake, for parsers, which return it.
pub fn error(at: impl ToTokens, message: &Message, args: &[&dyn Display]) -> Error {
    Error::new_spanned(at, message.filled(args))
}

/// «did you mean `shape`?», or else what there is to choose from.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there is none to choose from".to_owned(),
        None => format!("known are {}", list(known)),
    }
}

/// `a`, `b` and `c`
pub fn list<T: Display>(names: &[T]) -> String {
    let quoted: Vec<_> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let scored = known.iter().map(|k| (distance(name, k), *k));
    scored.filter(|(d, _)| *d <= limit).min().map(|(_, k)| k)
}

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let substituted = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let edit = substituted.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { edit.min(rows[i - 2][j - 2] + 1) } else { edit }
            };
        }
    }
    rows[a.len()][b.len()]
}
