//! What ops and their parameters can be named: what Python can spell.

use crate::error::{Error, Result};

/// Words that Python keeps for itself.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The longest name, in bytes: names stand in messages, modules and stubs.
const MOST: usize = 255;

/// An error if a name is too long to be shown.
fn check_length(name: &str, what: &str) -> Result<()> {
    match name.len() {
        n if n > MOST => Err(Error::value(format!("the name of {what} has {n} bytes; {MOST} is the limit"))),
        _ => Ok(()),
    }
}

/// Whether it is made of letters, digits and '_', and begins with no digit.
fn is_word(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// An error unless it is a name for a parameter or the like; `what` tells which, as in `an input`.
pub fn check_word(name: &str, what: &str) -> Result<()> {
    check_length(name, what)?;
    if !is_word(name) {
        return Err(Error::value(format!("{what} is named {name:?}; use letters, digits and '_'")));
    }
    if KEYWORDS.contains(&name) {
        return Err(Error::value(format!(
            "{what} is named '{name}', a word that Python keeps for itself; choose another name"
        )));
    }
    Ok(())
}

/// An error unless it is a name for an op, such as `swish` or `ns::swish`.
pub fn check_name(name: &str) -> Result<()> {
    check_length(name, "an op")?;
    let mut words = name.split("::").flat_map(|n| n.split('.'));
    if !words.clone().all(is_word) {
        return Err(Error::value(format!(
            "'{name}' is no name for an op: use letters, digits and '_', and '::' after a namespace"
        )));
    }
    match words.find(|word| KEYWORDS.contains(word) || word.starts_with("__")) {
        Some(word) => Err(Error::value(format!(
            "op '{name}': '{word}' is a word that Python keeps for itself; choose another name"
        ))),
        None => Ok(()),
    }
}
