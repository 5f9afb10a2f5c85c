//! Names of ops, parameters and outputs. They must be valid Python identifiers.

use crate::message::{self, Sentence};

/// The keywords of Python.
pub const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The longest name, in bytes: names appear in messages, modules and stubs.
pub const MOST_BYTES: usize = 255;

/// Whether the name consists of ASCII letters, digits and `_`, and does not begin with a digit.
pub fn is_word(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Checks the name of a parameter, an output or similar. `what` names its role for the error, as in `an input`.
///
/// # Errors
/// A name that is too long, that is not an identifier, or that is a Python keyword.
pub fn check_word(name: &str, what: &str) -> Result<(), Sentence> {
    check_length(name, what)?;
    if !is_word(name) {
        return Err(message::NOT_A_WORD.filled(&[&name.escape_debug(), &what]));
    }
    if KEYWORDS.contains(&name) {
        return Err(message::KEYWORD.filled(&[&name, &what, &name, &name]));
    }
    Ok(())
}

/// Checks the name of an op, such as `swish` or `ns::swish`.
///
/// # Errors
/// As for [`check_word`], for each part of the name; and a part that begins with `__`.
pub fn check_op(name: &str) -> Result<(), Sentence> {
    check_parts(name, name)
}

/// Checks the name of an op or of its gradient, such as `swish.vjp`, which only a derived gradient has.
///
/// # Errors
/// As for [`check_op`].
pub fn check_registered(name: &str) -> Result<(), Sentence> {
    check_parts(name, name.trim_end_matches(".vjp"))
}

fn check_parts(name: &str, parts: &str) -> Result<(), Sentence> {
    check_length(name, "an op")?;
    let mut words = parts.split("::");
    if !words.clone().all(is_word) {
        return Err(message::NOT_A_NAME.filled(&[&name.escape_debug()]));
    }
    match words.find(|word| KEYWORDS.contains(word) || word.starts_with("__")) {
        Some(word) if word.starts_with("__") => Err(message::RESERVED.filled(&[&name])),
        Some(word) => Err(message::KEYWORD.filled(&[&name, &"an op", &word, &word])),
        None => Ok(()),
    }
}

fn check_length(name: &str, what: &str) -> Result<(), Sentence> {
    match name.len() {
        n if n > MOST_BYTES => Err(message::LONG_NAME.filled(&[&what, &n, &MOST_BYTES])),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_that_python_can_spell() {
        let op = |name: &str| check_op(name).map_err(|e| e.to_string());
        assert_eq!(op("ns::swish"), Ok(()));
        assert_eq!(op("a::b::swish"), Ok(()));
        assert_eq!(check_registered("ns::swish.vjp.vjp"), Ok(()));
        for name in ["", "a b", "2x", "ns::", "::x", "größe", "a:b", "ns:::x", "swish.vjp"] {
            assert!(
                op(name).is_err_and(|e| e.starts_with(&format!("'{name}' is not a valid name of an op; use"))),
                "{name}"
            );
        }
        assert!(
            op("ns::class")
                .is_err_and(|e| e.contains("'class' is a Python keyword; choose another name, such as 'class_'"))
        );
        assert!(op("__init__").is_err_and(|e| e.contains("names that begin with '__' are reserved")));
        assert!(op(&"x".repeat(256)).is_err_and(|e| e == "the name of an op has 256 bytes; the limit is 255 bytes"));
        let input = |name: &str| check_word(name, "an input").map_err(|e| e.to_string());
        assert_eq!(input("_x1"), Ok(()));
        assert!(
            input("x\ny").is_err_and(|e| e.starts_with("'x\\ny' is not a valid name of an input; use ASCII letters"))
        );
        assert!(
            input("lambda")
                .is_err_and(|e| e.starts_with("'lambda' is not a valid name of an input: 'lambda' is a Python"))
        );
    }
}
