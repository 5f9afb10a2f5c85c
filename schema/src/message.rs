//! Error messages: the fault and its solution. One table has every message that the macro and the engine share.

use std::fmt::{self, Display};

/// A message template. The arguments fill each `{}` from left to right, in the text first.
pub struct Message {
    /// The fault.
    pub text: &'static str,
    /// The solution.
    pub help: &'static str,
}

/// A message with its arguments filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    text: String,
    help: String,
}

impl Message {
    /// The sentence for the given arguments.
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
    /// The form for the Rust compiler: the help is on a line of its own.
    pub fn for_rust(&self) -> String {
        format!("{}\nhelp: {}", self.text, self.help)
    }
}

impl Display for Sentence {
    /// The form for a Python error: one line, with names in single quotes.
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
    /// Every message that the macro can report, for the test that the UI tests show each of them.
    OF_MACRO:

    // Names.
    LONG_NAME: "the name of {} has {} bytes", "{} is the limit";
    NOT_A_WORD: "`{}` can't be the name of {}", "use ASCII letters, digits and `_`, and don't begin with a digit";
    NOT_A_NAME: "`{}` can't be the name of an op", "use ASCII letters, digits and `_`, and `::` after a namespace";
    KEYWORD: "`{}` can't be the name of {}: `{}` is a Python keyword", "choose another name, such as `{}_`";
    RESERVED: "`{}` can't be the name of an op: names that begin with `__` are reserved", "choose another name";

    // Signatures.
    DOUBLED_NAME: "the name `{}` is used twice", "rename one: the tensors, attributes, outputs and dimensions of an op have different names";
    VARIADIC_NOT_LAST: "the tensor list `{}` is not the last tensor", "move `{}` after the other tensors; an op has one list at most";
    AXIS_DIMENSION: "`{}` doesn't fit an op whose caller chooses the axis", "write `[.., n]` or `[..]` for every tensor; where several axes may be chosen, use one name";

    // The grammar.
    EXPECTED: "expected {}, found {}", "write the clause like `{}`";
    TOO_DEEP: "the parts of the clause are nested more than {} levels deep", "simplify the clause";

    // Shapes and conditions.
    NOT_A_DIMENSION: "`{}` is not a dimension", "a dimension is a name, a number, or `+ - * /` of those";
    DIVIDES_BY_ZERO: "`{}` divides by 0", "divide by another number";
    NOT_A_PREDICATE: "`{}` is not a condition", "write a comparison such as `k <= n` or `eps >= 0.0`";
    NOT_SAVE: "unknown marker `[{}]`", "`[save]` marks an output that only the gradient needs";
    SAVED_INPUT: "the input `{}` can't be marked `[save]`", "remove the marker: a formula saves the inputs that it mentions";
    UNKNOWN_INPUT: "there is no input `{}`", "{}";
    UNKNOWN_OUTPUT: "there is no output `{}`", "{}";
    NAME_OUTPUTS: "dimensions for one output, but the op has {} outputs", "name them: `-> ({}: {}, …)`";
    INPUT_NOT_IN_SHAPE: "the `shape` clause doesn't mention the input `{}`", "add `{}: [..]` to its inputs";
    OUTPUT_NOT_IN_SHAPE: "the `shape` clause doesn't mention the output `{}`", "add `{}: [..]` to its outputs";
    SHAPE_TWICE: "the `shape` clause has `{}` twice", "remove one of them";
    UNBOUND: "the size of the dimension `{}` is unknown", "an input must have the dimension, or an attribute of that name must be a whole number; {}";
    DIM_IS_ATTR: "the dimension `{}` has the name of an attribute that is not a whole number", "rename one of them, or make the attribute a whole number";
    UNKNOWN_IN_PREDICATE: "`{}` is neither a dimension nor an attribute", "{}";
    PREDICATE_ATTR: "the attribute `{}` is not a number, and can't be compared here", "compare dimensions, and attributes that are numbers";
    ELEMENT_SHAPE: "an element op has no `shape` clause", "remove it: the inputs broadcast to one shape, which every output has; conditions are written `where …`";

    // Formulas.
    COTANGENTS: "the formula takes {}, but the op returns {}", "take one for each output, `_` where it isn't used";
    GRADIENT_OF_UNKNOWN: "`{}` is not an input of the op", "{}";
    GRADIENT_OF_ATTR: "`{}` is an attribute, and has no gradient", "remove the entry: only tensors have gradients";
    GRADIENT_OF_INTEGER: "`{}` is never a floating-point tensor, and has no gradient", "remove the entry, or write `{}: none`";
    GRADIENT_TWICE: "the gradient of `{}` is given twice", "remove one of them";
    GRADIENT_MISSING: "the gradient of `{}` is missing", "write a formula for it, or `{}: none`";
    FORMULA_VARIADIC: "a formula can't compute the gradients of the list `{}`", "use a function instead";
    NOT_AN_ENTRY: "expected the gradient of an input", "write `x: d_out * 2.0` or `x: none` for every input";
    BARE_LET: "expected `let name = value;`", "a formula has `let`s first, then one entry for each input";
    LATE_LET: "a `let` can't follow an entry", "a formula has `let`s first, then one entry for each input";
    ENTRY_NOT_TENSOR: "`{}` is not a tensor", "compute the gradient from the cotangents, or write `none` if there is none";
    UNKNOWN_NAME: "unknown name `{}` in the formula", "{}";
    FORMULA_EXPR: "a formula can't have `{}`", "use calls, methods and operators on tensors, or a function instead of a formula";
    FORMULA_IF: "an `if` in a formula needs an `else`", "write `else { … }`";
    PROPERTY: "a tensor in a formula has no property `{}`", "it has `shape`, `dtype` and `ndim`";
    BRANCHES: "one branch of `{}` is a tensor, and the other is not", "let both be tensors, or neither";
    NOT_SEVERAL: "`{}` is not the call of an op", "only the call of an op returns several tensors";
}

messages! {
    /// Every message that is only reported at run time.
    AT_RUN_TIME:

    UNKNOWN_DTYPE: "unknown dtype `{}`", "the dtypes are {}";
    LONG_CLAUSE: "the clause has {} bytes", "{} is the limit";
    OPEN_TEXT: "a text is not closed", "add `\"` at its end";
    ESCAPE: "a text can't have `\\`", "write the character itself";
    UNKNOWN_SIGN: "a clause can't have `{}`", "remove it";
    NOT_A_NUMBER: "`{}` is not a number", "write a number such as `12`, `0.5` or `1e-6`";
    LIST_SHAPE: "`{}` is any number of tensors, which have no dimensions in common", "remove the `shape` clause";
    PROPERTY_OF: "in `{}`, `{}` is not a tensor", "only tensors have the property `{}`";
}
