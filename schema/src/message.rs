//! Error messages: what is wrong, and what to do. Every message that the macro and the engine share is in one table.

use std::fmt::{self, Display};

/// A message with blanks: each `{}` is filled in from left to right, in the text first.
pub struct Message {
    /// What is wrong.
    pub text: &'static str,
    /// What to do about it.
    pub help: &'static str,
}

/// A message with its blanks filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    text: String,
    help: String,
}

impl Message {
    /// The sentence for these arguments.
    pub fn filled(&self, args: &[&dyn Display]) -> Sentence {
        let mut args = args.iter().map(|arg| arg.to_string());
        let mut fill = |template: &str| {
            let parts = template.split("{}").enumerate().map(|(i, part)| match i {
                0 => part.to_owned(),
                _ => args.next().unwrap_or_default() + part,
            });
            parts.collect()
        };
        Sentence { text: fill(self.text), help: fill(self.help) }
    }
}

impl Sentence {
    /// As the Rust compiler shows it: the help on a line of its own.
    pub fn for_rust(&self) -> String {
        format!("{}\nhelp: {}", self.text, self.help)
    }
}

impl Display for Sentence {
    /// As an error of Python shows it: one line, and names in single quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{}; {}", self.text, self.help).replace('`', "'"))
    }
}

impl std::error::Error for Sentence {}

macro_rules! messages {
    ($(#[$doc:meta])* $all:ident: $($name:ident: $text:literal, $help:literal;)*) => {
        $(#[doc = $text] pub const $name: Message = Message { text: $text, help: $help };)*
        $(#[$doc])*
        pub const $all: &[(&str, Message)] = &[$((stringify!($name), $name)),*];
    };
}

messages! {
    /// Every message that the macro can report, for the test that the UI tests show each.
    OF_MACRO:

    // Names.
    LONG_NAME: "the name of {} has {} bytes", "{} is the limit";
    NOT_A_WORD: "`{}` can't be the name of {}", "use ASCII letters, digits and `_`, and don't begin with a digit";
    NOT_A_NAME: "`{}` can't be the name of an op", "use ASCII letters, digits and `_`, and `::` after a namespace";
    KEYWORD: "`{}` can't be the name of {}: `{}` is a Python keyword", "choose another name, such as `{}_`";
    RESERVED: "`{}` can't be the name of an op: names that begin with `__` are reserved", "choose another name";
}

messages! {
    /// Every message that is reported at run time alone.
    AT_RUN_TIME:

    UNKNOWN_DTYPE: "unknown dtype `{}`", "the dtypes are {}";
}
