//! Error messages: the fault and its solution. One table has every message that the macro and the engine share.

use std::fmt::{self, Display};

/// A count with its noun: `1 tensor`, `2 tensors`.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

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
    LONG_NAME: "the name of {} has {} bytes", "the limit is {} bytes";
    NOT_A_WORD: "`{}` is not a valid name of {}", "use ASCII letters, digits and `_`; the first character must not be a digit";
    NOT_A_NAME: "`{}` is not a valid name of an op", "use ASCII letters, digits and `_`, with `::` after a namespace";
    KEYWORD: "`{}` is not a valid name of {}: `{}` is a Python keyword", "choose another name, such as `{}_`";
    RESERVED: "`{}` is not a valid name of an op: names that begin with `__` are reserved", "choose another name";

    // Signatures.
    DOUBLED_NAME: "the name `{}` is used twice", "rename one of them; the tensors, attributes, outputs and dimensions of an op must have different names";
    VARIADIC_NOT_LAST: "the tensor list `{}` is not the last tensor", "move `{}` after the other tensors; an op can have only one list";
    DTYPE_VARIABLES: "`{}` is dtype variable number {} of the op, but {} are possible", "use one variable for all parameters that are promoted to the same dtype";
    KERNELS: "the dtype variables have {} combinations of dtypes, but at most {} are possible, because each needs a kernel", "restrict one in the clause `dtype`, as in `… where {}: i32 | i64`, or use one variable for several parameters";
    AXIS_DIMENSION: "`{}` is not supported in an op with an `axis` clause", "write `[.., n]` or `[..]` for every tensor; if the caller may choose several axes, use the same name everywhere";

    // Tuning.
    CANDIDATES: "the candidates of `{}` must be 1 to {} different positive integers", "write a list such as `[16, 32, 64]`";
    COMBINATIONS: "the candidates of all tuned attributes have {} combinations", "the limit is {}";

    IS_TUNED: "the clause depends on `{}`, which is tuned", "a tuned attribute only changes the speed; make it an attribute with a default";

    // The grammar.
    EXPECTED: "expected {}, found {}", "write the clause like `{}`";
    TOO_DEEP: "the clause is nested more than {} levels deep", "simplify the clause";

    // Shapes and conditions.
    NOT_A_DIMENSION: "`{}` is not a dimension", "a dimension is a name, a number, or a combination of them with `+`, `-`, `*` and `/`";
    DIVIDES_BY_ZERO: "`{}` divides by 0", "use a divisor other than 0";
    NOT_A_PREDICATE: "`{}` is not a condition", "write a comparison such as `k <= n` or `eps >= 0.0`";
    NOT_SAVE: "unknown marker `[{}]`", "the only marker is `[save]`, for an output that only the gradient needs";
    SAVED_INPUT: "the input `{}` cannot be marked `[save]`", "remove the marker; a formula saves the inputs that it mentions";
    UNKNOWN_INPUT: "there is no input `{}`", "{}";
    SHAPE_OF_ATTR: "`{}` is an attribute, so it has no dimensions", "remove it from the inputs of the clause, or make it a tensor; in a row op, an index for each row has the type `R::Index`";
    MORE_OUTPUTS: "the clause names {}, but the op returns {}", "return a value for each, such as `(x, y)`; a cell may write it to a parameter `&mut [T]`";
    UNBOUND_INPUT: "the size of the dimension `{}` is unknown", "name the dimension of an input: write `{}` instead of `{}`, and compute the others from it";
    UNKNOWN_OUTPUT: "there is no output `{}`", "{}";
    NAME_OUTPUTS: "the `shape` clause describes one output, but the op has {}", "name every output: `-> ({}: {}, …)`";
    NO_OUTPUT: "the `shape` clause declares the output `{}`, but the function has none", "write `-> ()` if the op only modifies its inputs; if `{}` is the output, remove it from the inputs of the clause";
    INPUT_NOT_IN_SHAPE: "the `shape` clause does not mention the input `{}`", "add `{}: [..]` to its inputs";
    OUTPUT_NOT_IN_SHAPE: "the `shape` clause does not mention the output `{}`", "add `{}: [..]` to its outputs";
    SHAPE_TWICE: "the `shape` clause mentions `{}` twice", "remove one of them";
    UNBOUND: "the size of the dimension `{}` is unknown", "use a dimension of an input, or the name of an integer attribute; {}";
    DIM_IS_ATTR: "the dimension `{}` has the name of an attribute that is not an integer", "rename one of them, or make the attribute an integer";
    UNKNOWN_IN_PREDICATE: "`{}` is neither a dimension nor an attribute", "{}";
    PREDICATE_TENSOR: "`{}` is a tensor, but a condition holds for sizes and attributes", "select by the elements in the body, with `if`, or check them in the body of a cell or tensor op, which may return an error";
    PREDICATE_ATTR: "the attribute `{}` is not a number, so it cannot be compared", "compare dimensions and numeric attributes";
    ELEMENT_SHAPE: "an element op cannot have a `shape` clause", "for rows, write `R: Row`, or `R: IntRow` for integers, and parameters `R`; for loops over a row, `&[T]`. Otherwise remove the clause: the inputs broadcast to one shape, which is the shape of every output, and conditions are written as `where …`";

    // Properties.
    NOT_LINEAR: "the op cannot be linear in `{}`", "it needs floating-point results, and the input must be a floating-point tensor that is not modified";
    NOT_SYMMETRIC: "a symmetric op takes at least two tensors of the same dtype and dimensions, which it needs and does not modify", "remove the clause `symmetric`";
    NOT_REPLACED: "the clause `replaces` does not fit here: `{}`", "write a call of another op, such as `log(softmax(x, axis = axis))`; the op returns one tensor, and takes no list and no tensor that it modifies";
    NOT_IN_REPLACED: "the expression of `replaces` does not mention `{}`", "add `{}` to the expression; an attribute may have a default instead";
    REPLACED_EXPR: "`{}` is not supported in the clause `replaces`", "write calls of ops on inputs, attributes and constants";

    // Formulas.
    TANGENTS: "the formula takes {}, but the op takes {}", "take one tangent for each input; write `_` for an input without a gradient";
    TANGENT_OF_INTEGER: "`{}` is never a floating-point tensor, so it has no tangent", "write `_` in place of `{}`";
    TANGENT_UNUSED: "the tangent `{}` is not used", "use it in the formula; or write `_` in its place, if `{}` has no gradient";
    COTANGENTS: "the formula takes {}, but the op returns {}", "take one cotangent for each output; write `_` for one that is not used";
    GRADIENT_OF_UNKNOWN: "`{}` is not an {} of the op", "{}";
    GRADIENT_OF_ATTR: "`{}` is an attribute, so it has no {}", "remove the entry; only tensors have one";
    GRADIENT_OF_INTEGER: "`{}` is never a floating-point tensor, so it has no {}", "remove the entry, or write `{}: none`";
    GRADIENT_TWICE: "the {} of `{}` is defined twice", "remove one of them";
    GRADIENT_MISSING: "the {} of `{}` is missing", "write a formula for it, or `{}: none`";
    FORMULA_VARIADIC: "a formula cannot contain the tensors of the list `{}`", "write `{}` as a function instead";
    NOT_AN_ENTRY: "expected the {} of an {}", "write an entry such as `{}` for every {}, or `none` as its value";
    BARE_LET: "expected `let name = value;`", "a formula has `let` statements first, then its entries";
    LATE_LET: "a `let` cannot follow an entry", "a formula has `let` statements first, then its entries";
    ENTRY_NOT_TENSOR: "`{}` is not a tensor", "compute the entry from tensors, or write `none`";
    UNKNOWN_NAME: "unknown name `{}` in the formula", "{}";
    FORMULA_EXPR: "`{}` is not supported in a formula", "use calls, methods and operators on tensors, or name a function in place of the formula";
    FORMULA_IF: "an `if` in a formula needs an `else`", "write `else { … }`";
    PROPERTY: "a tensor in a formula has no property `{}`", "it has `shape`, `dtype` and `ndim`";
    BRANCHES: "one branch of `{}` is a tensor, but the other is not", "both branches must be tensors, or neither";
    NOT_SEVERAL: "`{}` is not a call of an op", "only a call of an op returns several tensors";
}

messages! {
    /// Every message that is only reported at run time.
    AT_RUN_TIME:

    UNKNOWN_DTYPE: "unknown dtype `{}`", "the dtypes are {}";
    LONG_CLAUSE: "the clause has {} bytes", "the limit is {} bytes";
    OPEN_TEXT: "unterminated string", "add `\"` at its end";
    ESCAPE: "a string cannot contain `\\`", "write the character itself";
    UNKNOWN_SIGN: "unexpected character `{}`", "remove it";
    NOT_A_NUMBER: "`{}` is not a number", "write a number such as `12`, `0.5` or `1e-6`";
    LIST_SHAPE: "`{}` is a list of tensors, which may have different dimensions", "remove the `shape` clause";
    PROPERTY_OF: "in `{}`, `{}` is not a tensor", "only tensors have the property `{}`";
}
