//! All messages of the macro: the error, and after `help:` a solution. The `{}` are filled from left to right.

pub use minitensor_schema::Message;

macro_rules! messages {
    ($($name:ident: $text:literal, $help:literal;)*) => {
        $(pub const $name: Message = Message { text: $text, help: $help };)*
        /// All messages, for the test that the UI tests show each of them.
        #[cfg(test)]
        pub const ALL: &[(&str, Message)] = &[$((stringify!($name), $name)),*];
    };
}

messages! {
    // Clauses.
    NOT_A_CLAUSE: "expected a clause", "the clauses are {}";
    UNKNOWN_CLAUSE: "there is no clause `{}`", "{}";
    DOUBLED_CLAUSE: "the clause `{}` is given twice", "leave one of them out";
    NO_CUDA: "the clause `{}` is not available yet", "leave it out: the op runs on the CPU";
    NOT_AN_AXIS: "the default axis is a whole number or `None`", "write `axis = -1`, or `axis = None` for several axes or all";
    NOT_A_BACKWARD: "expected a gradient", "write `auto`, `none`, the path of a function, or a formula such as `|d_out| { x: d_out * 2.0 }`";

    // The function.
    QUALIFIED: "an op can't be `{}`", "write a plain `fn`: how and where it runs is for the library to say";
    METHOD: "an op can't be a method", "move the function out of the `impl`, and take what it needs as parameters";
    PATTERN: "a parameter of an op has a name", "name the parameter, and take it apart in the body";
    NO_DOC: "the op `{}` has no doc comment", "write a `///` line above it: it is shown in Python and in the docs";
    NO_TENSOR: "the op `{}` takes no tensor", "let a parameter have the type `T` with `T: Float` or another such trait, `&[T]` or `&Tensor`";
    MIXED_LEVELS: "an op has one level: `{}` is for {}, this is for {}", "let all tensor parameters be `T`, or all slices and views, or all `&Tensor`";
    CONST_GENERIC: "`{}` can't be a const generic", "make it a parameter: `usize`, `i64` and `bool` are attributes";
    THREE_VARIABLES: "`{}` is a third dtype variable, and an op has two at most", "let parameters that are promoted to one dtype share a variable";
    NO_BOUND: "the dtype variable `{}` has no bound", "write `{}: Float`; the traits are {}";
    BOUND: "`{}` doesn't say which dtypes `{}` may be", "the traits are {}";
    TWO_BOUNDS: "the dtype variable `{}` has two bounds", "keep the stronger one: `Float` implies `Real` and `Field`, which imply `Num`";
    VARIABLE_NAME: "a dtype variable can't be named `{}`", "that is a trait which says what a variable can do: choose another name, such as `T`";
    UNUSED_VARIABLE: "no tensor parameter has the dtype `{}`", "use it for a parameter, or leave it out";

    // Parameters.
    PARAMETER_NAME: "a parameter can't be named `{}`", "in a pattern that is a value of Rust, not a name: choose another one";
    CONCRETE: "`{}` is one machine type where a generic is needed", "for a tensor write `T` with `T: Float` or another such trait, for an attribute `f64`, `i64`, `usize` or `bool`";
    CONCRETE_LET: "`{}` is one machine type where a generic is needed", "leave the type out, or write the dtype variable";
    IMPL_TRAIT: "`{}` has no name to refer to", "name the dtype variable: `fn op<T: Float>(x: T)`";
    PARAMETER_TYPE: "`{}` is neither a tensor nor an attribute", "tensors are `T`, `&[T]`, `ArrayView2<T>` or `&Tensor`; attributes f64, i64, usize, bool, &str, &[i64], &[f64], DType, enums with #[derive(AttrEnum)], and Option of these";
    MUTATED_CELL: "a cell op can't change `{}` in place", "leave it out of the inputs of the `shape` clause: then it is an output";
    MUTATED_TENSOR: "a tensor op can't change `{}` in place", "take `&Tensor`, and return the new tensor";
    ATTR_BEFORE_TENSOR: "the tensor `{}` comes after the attribute `{}`", "tensors come first: move it to the front";
    REQUIRED_AFTER_OPTIONAL: "the required parameter `{}` follows the optional parameter `{}`", "give `{}` a `#[default = …]` too, or move it before `{}`";
    TOO_MANY: "an element op has {} tensors at most, this one has {}", "write it at the level of `&Tensor`, out of smaller ops";

    // Defaults.
    DEFAULT_SYNTAX: "a default has a value", "write `#[default = 0.5]`";
    DEFAULT_ON_TENSOR: "the tensor `{}` can't have a default", "let it be an `Option`, and handle `None` in the body";
    DEFAULT_TYPE: "`{}` is no default for `{}: {}`", "write a constant of that type";
    DEFAULT_NEGATIVE: "`{}` can't be negative", "a `usize` begins at 0; `i64` may be negative";

    // Return types.
    RETURNS: "an element op can't return `{}`", "return `T`, `T::Mask` or a tuple of those";
    RETURNS_BOOL: "an element op can't return `{}`", "a comparison of elements is a `T::Mask`, which becomes a boolean tensor";
    RETURNS_NOTHING: "the op `{}` gives nothing", "return `T`, or let it change a `&mut T`";
    CELL_RETURNS: "a cell op can't return `{}`", "outputs are `&mut` parameters that the `shape` clause names; return nothing or `Result<()>`";
    CELL_FILLS_NOTHING: "the op `{}` gives nothing", "let it fill a parameter `out: &mut [T]` that the `shape` clause names";
    TENSOR_RETURNS: "a tensor op can't return `{}`", "return `Tensor`, a tuple of those, `Vec<Tensor>`, or a `Result` of one of these";

    // The shape clause.
    CELL_NEEDS_SHAPE: "the op `{}` works on cells, and has no `shape` clause", "say which dimensions it takes and gives: `shape = (x: [.., n]) -> [.., n]`";
    RANK: "the rank of `{}` is {} here, but that of its type `{}` is {}", "let the two agree";
    RANK_SLICE: "`{}` has no core dimension, but its type is `{}`", "a single element is `&T` or `&mut T`";
    AXIS_LEVEL: "only a cell op has an `axis` clause", "leave it out; a tensor op may take a parameter `axis: i64`";

    // Rows.
    ROW_NEEDS_SHAPE: "the op `{}` works on rows, and has no `shape` clause", "say which arguments are rows, and which have one number for each row: `shape = (x: [.., n]) -> [.., n]`";
    ROW_DIMENSIONS: "a row has one dimension, `{}` has {} here", "write `[.., n]` for a row, `[..]` for one number for each row, with the same name everywhere";
    ROW_BATCH: "every row has a result of its own", "write `[.., n]` or `[..]` for an output";
    ROW_INDEX: "`{}` is a position in each row, and has {} here", "write `[..]`";
    ROW_NONE: "the op `{}` takes no row", "let an input have the dimensions `[.., n]`; for one number an element op will do";
    ROW_RETURNS: "a row op can't return `{}`", "return `R` or a tuple of those; what is a truth value can be chosen by: `if x > y { 1.0 } else { 0.0 }`";
    ROW_INPUT: "a row op can't take `{}`", "rows are `R` or `Option<R>`, positions `R::Index`";
    ROW_VARIABLES: "a row op has one dtype variable, and `{}` is a second", "let all rows share the variable";
    ROW_MANY: "a row op has {} tensors of floats at most, this one has {}", "write it at the level of `&Tensor`, out of smaller ops";

    // The dtype clause.
    UNKNOWN_DTYPE: "there is no dtype `{}`", "write a dtype variable, `bool`, `i64`, `f32`, `c64`, …; behind `where` also one of {}";
    UNKNOWN_VARIABLE: "there is no dtype variable `{}`", "it is the `T` of the function";
    DTYPE_OUTSIDE: "`{}` isn't among the dtypes of `{}`", "widen the bound of `{}`, or leave the dtype out";
    DTYPE_DIFFERS: "the `dtype` clause says `{}`, the function says `{}`", "let the two agree; the clause may be left out";
    DTYPE_COUNT: "outputs in the `dtype` clause: {}, of the function: {}", "give one dtype for each of them";

    // In place.
    INPLACE_LEVEL: "only an element op can be `inplace`", "leave the word out";
    INPLACE_OUTPUT: "the first argument can't hold the result", "an op with an in-place form returns one value of the dtype of its first parameter";

    // The gradient.
    NO_BACKWARD: "the op `{}` has no gradient", "write a formula, `backward = |d_out| { {}: d_out * … }`, or `backward = none`";
    NOT_DERIVABLE: "the gradient of a cell op can't be derived", "write a formula, or `backward = none`";
    NOT_DERIVABLE_IN_PLACE: "the gradient of an op that changes its arguments can't be derived", "leave the clause out: differentiating then raises; or return new values";

    // Element bodies.
    IF_WITHOUT_ELSE: "an `if` on data needs an `else`", "elements take both branches, and one value is chosen: write `else { … }`";
    IF_TUPLE: "an `if` on data gives one value", "choose each of them by an `if` of its own";
    LEAVES_IF: "`{}` can't leave an `if` on data", "both branches are computed for every element: let the `if` have a value instead";
    ASSIGNS_IN_IF: "`{}` is changed inside of an `if` on data", "both branches are computed for every element: write `{} = if … { … } else { {} };`";
    WHILE: "`while` on data can't end at the same time for all elements", "use `for` with a fixed count";
    MATCH: "`match` on data can't take one arm for all elements", "use `if`/`else`";
    AMBIGUOUS: "which dtype is `{}`, {}?", "say it: `let c: T = …;`";
    FRACTION: "`{}` has no value in the integers that `{}` admits", "bound `{}` by `Float`, or use a whole number";
    FALSE_FRIEND: "elements have no `{}`", "write `{}`, which {}";
    CAST: "data can't be cast to `{}`", "an element keeps its dtype in a body; another dtype is another op's output";

    // AttrEnum.
    ENUM_ONLY: "AttrEnum is for enums", "its variants become the attribute's words";
    ENUM_FIELDS: "the variant `{}` has fields", "a word is a variant without fields";
    ENUM_EMPTY: "an attribute needs a word", "give the enum a variant";
    ENUM_GENERIC: "an attribute's enum can't be generic", "leave the parameters out";
}
