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
    UNKNOWN_CLAUSE: "unknown clause `{}`", "{}";
    DOUBLED_CLAUSE: "duplicate clause `{}`", "remove one of them";
    NO_CUDA: "the clause `{}` is not supported yet", "remove it; element and row ops have kernels for CUDA without it";
    SINCE_ZERO: "the first version of a package is 1", "write `since = 1`, or remove the clause";
    DOUBLED_ALIAS: "the op already has the name `{}`", "remove the alias";
    NOT_AN_AXIS: "the default axis must be an integer or `None`", "write `axis = -1`, or `axis = None` if the caller may choose several axes or all";
    NOT_A_JVP: "expected the tangents of the outputs", "write a formula such as `|d_x| { out: d_x * 2.0 }`, or the path of a function";
    TWO_GRADIENTS: "the clauses `backward` and `jvp` both define the gradient", "remove one of them: the gradient follows from `jvp`";
    NOT_A_BACKWARD: "expected a gradient", "write `auto`, `none`, the path of a function, or a formula such as `|d_out| { x: d_out * 2.0 }`";

    // The function.
    QUALIFIED: "an op cannot be `{}`", "write a plain `fn`; the library decides where and when it runs";
    METHOD: "an op cannot be a method", "move the function out of the `impl`, and pass what it needs as parameters";
    PATTERN: "a parameter of an op must be a plain name", "name the parameter, and destructure it in the body";
    NO_DOC: "the op `{}` has no doc comment", "write a `///` comment above it; it becomes the docstring in Python";
    COMPLEX_TENSOR: "`{}` is no dtype variable", "write `fn f<T: Float>(z: Complex<T>) -> Complex<T>`";
    NO_TENSOR: "the op `{}` has no tensor parameter", "use the type `T` with `T: Float` or another trait of elements, `&[T]` or `&Tensor` for a parameter";
    MIXED_LEVELS: "the tensor parameters of an op must have one level: `{}` is for {}, this is for {}", "make all tensor parameters `T`, or all slices and views, or all `&Tensor`";
    CONST_GENERIC: "an op cannot have the const generic `{}`", "make it a parameter; `usize`, `i64` and `bool` are attributes";
    NO_BOUND: "the dtype variable `{}` has no bound", "write `{}: Float`; the traits are {}";
    BOUND: "the bound `{}` does not determine the dtypes of `{}`", "the traits are {}";
    TWO_BOUNDS: "the dtype variable `{}` has two bounds", "keep the stronger one: `Float` implies `Real` and `Field`, which imply `Num`";
    NO_COMMON_DTYPE: "no dtype satisfies both bounds of `{}`", "keep one; two tensors of different kinds have two variables, as in `<T: Float, U: Int>(x: T, y: U)`";
    VARIABLE_NAME: "`{}` is not a valid name of a dtype variable", "it is the name of a trait of elements; choose another name, such as `T`";
    ALL_STORED: "all tensors of `{}` are integers, so nothing determines the dtype of the numbers `{}` of the body", "add a tensor of this dtype; without the `dtype` clause, `T: Int` and `R: IntRow` take integers of any width; a cell op takes those of one width, such as `&[i8]`";
    UNUSED_VARIABLE: "no tensor parameter has the dtype `{}`", "use it for a parameter, or remove it";

    // Helpers.
    HELPER_CLAUSE: "`#[op_fn]` has no such argument", "write `#[op_fn]`; only the path of minitensor can be set, as in `#[op_fn(crate = path)]`";
    HELPER_CONST: "a helper of ops cannot be `const`", "remove `const`; the arithmetic of elements is not available at compile time";
    HELPER_VARIABLE: "the helper `{}` has no dtype variable", "declare one, such as `fn {}<T: Float>(x: T)`; the traits are {}. A function on plain numbers needs no `#[op_fn]`";

    // Parameters.
    PARAMETER_NAME: "`{}` is not a valid name of a parameter", "Rust reads it as a value in a pattern; choose another name";
    CONCRETE: "expected a generic type, found the machine type `{}`", "write `T` with `T: Float` or another trait of elements for a tensor; `f64`, `i64`, `usize` or `bool` for an attribute";
    CONCRETE_LET: "expected a generic type, found the machine type `{}`", "remove the type, or write the dtype variable";
    IMPL_TRAIT: "`{}` does not name its dtype variable", "name the dtype variable: `fn op<T: Float>(x: T)`";
    PARAMETER_TYPE: "`{}` is not the type of a tensor or an attribute", "tensors are `T`, `&[T]`, `ArrayView2<T>` or `&Tensor`; attributes are f64, i64, usize, bool, &str, &[i64], &[f64], DType, enums with #[derive(AttrEnum)], and Option of these";
    MUTATED_TENSOR: "a tensor op cannot change `{}` in place", "take `&Tensor`, and return a new tensor";
    ATTR_BEFORE_TENSOR: "the tensor `{}` comes after the attribute `{}`", "move it before all attributes";
    REQUIRED_AFTER_OPTIONAL: "the required parameter `{}` follows the optional parameter `{}`", "add `#[default = …]` to `{}`, or move it before `{}`";
    OPTIONAL_BESIDE_LIST: "the optional tensor `{}` cannot precede the tensor list `{}`, which is the last tensor", "make `{}` a required tensor or the first tensor of the list";
    TOO_MANY: "an element op can have at most {} tensors, got {}", "write it with `&Tensor` parameters, from smaller ops";

    // Parameters that the engine computes.
    POSITION_SYNTAX: "expected the axis of the positions", "write `#[position(-1)]`, or `#[position(axis)]` with an attribute `axis: i64`";
    POSITION_IN_ROW: "the last axis is that of the row", "write `x.position()` for the position of an element in its row; `#[position(-2)]` is that of the row";
    DRAWN_TYPE: "a parameter with `#[{}]` is a number for each element, not `{}`", "write the dtype variable, such as `T`";
    DRAWN_ARGUMENTS: "`#[{}]` takes no arguments", "compute with the number in the body, as in `mean + deviation * z`";
    DRAWN_SHAPE: "the `shape` clause mentions `{}`, which is no tensor of the caller but has `#[{}]`", "remove it from the clause";
    DRAWN_TWICE: "`{}` has the attributes `#[{}]` and `#[{}]`", "remove one of them";
    DRAWN_ORDER: "`{}` follows the optional parameter `{}`", "move it before `{}`; callers do not pass it";
    DRAWN_FLOAT: "random numbers are floats, but `{}` has the bound `{}`", "write `{}: Float`";
    DRAWN_MUTATES: "an op with `#[position]`, `#[uniform]` or `#[normal]` cannot change `{}` in place", "return a new value";
    DRAWN_CLAUSE: "an op with `#[position]`, `#[uniform]` or `#[normal]` cannot have the clause `{}`", "take these numbers as tensors, and make them in an op over `&Tensor`";
    DRAWN_ALONE: "the op `{}` takes no tensor whose shape its numbers could have", "add a tensor, or write an op over `&Tensor` that calls `random::uniform` or `random::normal`";
    DRAWN_KEY: "the op has a parameter `{}`, the key of its random numbers", "choose another name";

    // Defaults.
    DEFAULT_SYNTAX: "expected the value of the default", "write `#[default = 0.5]`";
    UNKNOWN_ATTRIBUTE: "a parameter has no attribute `#[{}]`", "{}";
    DEFAULT_ON_TENSOR: "the tensor `{}` cannot have a default", "make it an `Option`, and handle `None` in the body";
    DEFAULT_TYPE: "`{}` is not a valid default of `{}: {}`", "write a constant of this type";
    DEFAULT_NEGATIVE: "the default of `{}` cannot be negative", "a `usize` is at least 0; use `i64` for negative values";

    // Tuning.
    TUNE_UNKNOWN: "`{}` is not a parameter that can be tuned", "tune an integer parameter, or `grain`, the fewest elements for a thread; {}";
    TUNE_LEVEL: "`{}` cannot be tuned in an element or row op", "only `grain` can, the fewest elements for a thread";
    TUNE_TWICE: "the candidates of `{}` are written twice", "write one list";
    TUNE_TYPE: "`{}` cannot be tuned, because it is not an integer without a default", "declare it as `{}: usize`; if a caller does not pass it, it is measured";

    // Return types.
    RETURNS: "an element op cannot return `{}`", "return `T`, `T::Mask` or a tuple of these";
    RETURNS_RESULT: "the body of an op for elements or rows cannot fail, but it returns `{}`", "return the value; state conditions as `where …`, or check them in a cell or tensor op";
    RETURNS_BOOL: "an element op cannot return `{}`", "return `T::Mask`, which is the result of a comparison and becomes a boolean tensor";
    RETURNS_NOTHING: "the op `{}` has no output", "return `T`, or change a parameter `&mut T`";
    CELL_RETURNS: "a cell op cannot return `{}`", "return numbers, such as `T` or `(T, i64)`, or a `Result` of them; results with several elements are `&mut` parameters, such as `out: &mut [T]`, that the `shape` clause names";
    CELL_FILLS_NOTHING: "the op `{}` has no output", "add a parameter `out: &mut [T]`, and name it in the `shape` clause";
    OTHER_ERROR: "the error of an op is `minitensor::Error`, not `{}`", "write `Result<…>` of the prelude, and return `Err(Error::value(text))`";
    TENSOR_RETURNS: "a tensor op cannot return `{}`", "return `Tensor`, a tuple of tensors, `Vec<Tensor>`, or a `Result` of one of these";

    // Bodies over whole tensors.
    TENSOR_TRY: "`{}` is a tensor, not a `Result`", "remove the `?`; an error of an op leaves the function without it";
    TENSOR_FAILS: "the {} calls ops, which may fail, but it returns `{}`", "return `Result<{}>`, and write `Ok(…)`";
    TENSOR_RESULT: "`{}` is not a `Result`, which the {} must return, because ops may fail", "write `Ok({})`";
    TENSOR_FIELD: "`{}` is one tensor, which has no part `{}`", "outputs of an op are taken where it is called, as in `x.topk(2).0`, or by a pattern, `let (values, indices) = x.topk(2);`. Annotate the result of a closure, `|x: &Tensor| -> Result<(Tensor, Tensor)> { … }`";
    TENSOR_PATTERN: "`{}` takes several values, but this value is one tensor", "name each output of an op, or write `_` for it, where the op is called: `let (values, _) = x.topk(2);`. Annotate the result of a closure, `|x: &Tensor| -> Result<(Tensor, Tensor)> { … }`";
    TENSOR_CONDITION: "the condition `{}` is a tensor, which has a value for each element", "select elements by an op: `ops::where_({}, x, y)`";
    TENSOR_PART: "a part of the tensor `{}` cannot be assigned", "compute a new tensor, for example with `ops::concat([…])` or `ops::where_(…)`";
    SLICE_REST: "a slice can have `..` once, which stands for all remaining axes", "write `0..` for all of one axis";
    SLICE_CLOSED: "the end of a slice is exclusive", "write `..` instead of `..=`, and the position after the last one";
    SLICE_TENSOR: "`{}` is a tensor, but a slice takes numbers, ranges, `..` and `None`", "select by a tensor with an op: `x.take(index, axis)`";

    // The shape clause.
    CELL_NEEDS_SHAPE: "the op `{}` works on cells, but has no `shape` clause", "describe its input and output dimensions, such as `shape = (x: [.., n]) -> [.., n]`";
    RANK: "`{}` has rank {} here, but its type `{}` has rank {}", "write the same number of dimensions in both";
    RANK_RETURNED: "`{}` has rank {} here, but the function returns it as one number, `{}`", "take a parameter, such as `{}: &mut [T]`, or write `[..]` for a number";
    CELL_COUNT: "the function returns {}, but {} of the `shape` clause have no `&mut` parameter", "return one number for each of them";
    RANK_SLICE: "`{}` has no core dimension, but its type is `{}`", "use `&T` or `&mut T` for a single element";
    COLUMNS: "the op has `Columns`, but `{}` has the type `{}`", "use `Columns<T>` for inputs, `ColumnsMut<T>` for outputs along the row, and `&mut [T]` for outputs without its dimension";
    COMBINE: "unknown word `{}` in the clause `combine`", "{}";
    COMBINE_LEVEL: "`combine` describes a row or cell op that reduces its only input along an axis to one result", "add the clause `axis` if the op reduces rows; otherwise remove `combine`";
    AXIS_LEVEL: "an `axis` clause needs a `shape` clause with a row", "add one, such as `shape = (x: [.., n]) -> [.., n]`, or remove `axis`";

    // Rows.
    ROW_NEEDS_SHAPE: "the op `{}` works on rows, but has no `shape` clause", "state which arguments are rows, and which have one number for each row: `shape = (x: [.., n]) -> [.., n]`";
    ROW_DIMENSIONS: "a row has one dimension, but `{}` has {} here", "write `[.., n]` for a row, `[..]` for one number for each row, with the same name everywhere. With `axis = None`, a row may be several axes; a cell op takes matrices, `ArrayView2<T>`, and returns other lengths";
    ROW_ATTR: "the dimension `{}` of a row has the name of an attribute, but the inputs determine its size", "rename the dimension or the attribute `{}`; the length of a row is `x.count()`";
    ROW_BATCH: "the output of a row op must have the batch dimensions `..`", "write `[.., n]` or `[..]` for an output";
    ROW_INDEX: "`{}` is one index for each row, but has {} here", "write `[..]`";
    ROW_NONE: "the op `{}` takes no row", "give an input the dimensions `[.., n]`, or write an element op";
    ROW_RETURNS: "a row op cannot return `{}`", "return `R`, `R::Mask`, `R::Index` or a tuple of these";
    ROW_INPUT: "a row op cannot take `{}`", "use `R` or `Option<R>` for rows, `R::Mask` for conditions, and `R::Index` for indices";
    ROW_MASK: "`{}` must have one value for each element of a row, but has {} here", "write `[.., n]`, or take one number for each row as `R`";
    PRECOMPILED_DTYPES: "the op `{}` has conditions, positions or integers among its tensors, so it cannot be `precompiled`", "remove the clause `precompiled`";
    ROW_VARIABLES: "a row op has one dtype variable, but `{}` is a second", "use the same variable for all rows";
    ROW_VARIES: "`{}` has a value for each element of the row, but the output `{}` has one for each row", "reduce it, as in `x.sum()`, or declare the output as `[.., n]`";
    PRECOMPILED_MANY: "the body has {} reductions, {} of which depend on one another", "a `precompiled` body can have {}, of which {} depend on one another; remove `precompiled`";
    PROGRAM_LEVEL: "only a cell op can have the clause `program`", "remove it; the program of another op is its body";
    PRECOMPILED_LEVEL: "only an element or row op can be `precompiled`", "remove it; the loops of other ops are always compiled with the crate";
    PRECOMPILED_FUNCTION: "a `precompiled` body cannot call `{}`, which is a function of the whole row", "remove the clause `precompiled`";
    SCAN_STEP: "`scan` takes a row, or a tuple of rows, and a step with two parameters", "write `R::scan(x, |before, x| …)`; the step returns the next element";
    SCAN_RESULTS: "the step of `scan` must return {} elements", "return a tuple with the next element of each row";
    ELEMENT_INDEX: "`{}` is an element, not an index", "write `{} as usize`";
    IMAGINARY: "`{}` is no number of Rust", "write `Complex::new(0.0, 2.0)` for 2i";
    INPUT_PLACE: "`{}` is an input, which an op does not change", "copy it with `let mut {} = {}.to_vec();`, or take `{}: &mut [T]` to change the tensor in place";
    FLOAT_PLACE: "`{}` is an element, but `{}` is an `f64`", "omit the type `f64`, or write `T`";
    LOST_FRACTION: "`1 / {}` divides integers, so it is 0 or 1", "write `1.0 / {}`";
    INTEGER_DIVISION: "`{}` divides integers, which drops the fraction", "write `{} / {}`, or `let quotient = {};` before if that is intended";
    TUPLE_RESULT: "a tuple is no complex number", "write `Complex::new({}, {})`";
    SCAN_RESULT: "this scan returns {} rows, but one row is expected here", "take one of them: `let (a, _) = R::scan(…)`";
    SCAN_ONE: "a scan of one row takes no tuple", "write `R::scan({}, |before, x| …)`";
    SCAN_COMPLEX: "a scan takes rows of real numbers, but `{}` is complex", "scan its parts: `R::scan((z.re(), z.im()), |(a, b), (x, y)| …)`";
    SCAN_MASK: "a scan takes rows of numbers, but `{}` is a mask", "write `if {} { 1.0 } else { 0.0 }` for its row, and `a.maximum(b)` for `||`";
    SCAN_MANY: "{} rows are scanned together, but at most {} can be", "scan some of them first, or compute several of them from others";
    SCAN_PATTERN: "the pattern does not fit a scan of {}", "write one name for one row, or a tuple of as many names as there are rows: `R::scan((x, y), |(a, b), (x, y)| …)`";
    SCAN_CHANGES: "the step of `scan` changes `{}`, but it runs once for all elements", "scan several rows, as in `R::scan((x, y), |(a, b), (x, y)| …)`, and return the new values";
    SCAN_ROWS: "`{}` is a function of rows, but the step of `scan` computes single elements", "call it before `scan`, and use its result in the step";
    ROW_MANY: "a row op can have at most {} floating-point tensors, got {}", "write it with `&Tensor` parameters, from smaller ops";

    // The dtype clause.
    UNKNOWN_DTYPE: "unknown dtype `{}`", "write a dtype variable, `bool`, `i64`, `f32`, `c64`, …; after `where` also one of {}";
    UNKNOWN_VARIABLE: "unknown dtype variable `{}`", "write the generic parameter of the function, such as `T`";
    DTYPE_OUTSIDE: "`{}` is not among the dtypes of `{}`", "widen the bound of `{}`, or remove the dtype";
    DTYPE_DIFFERS: "the `dtype` clause has `{}`, but the function has `{}`", "make both equal, or remove the clause";
    STORED: "the op `{}` has tensors of a fixed integer dtype, which only a program of floats computes", "use one dtype variable with `T: Float`, change no input in place, and remove the clause `precompiled`; a cell op takes integers of one width, such as `&[i8]`";
    DTYPE_OF_BODY: "`{}` is for ops over whole tensors", "write the dtype variable, or a dtype of integers, as which results are stored";
    DTYPE_COUNT: "the `dtype` clause has {}, but the function has {}", "write one dtype for each output";

    // In place.
    INPLACE_LEVEL: "an op over whole tensors cannot be `inplace`", "remove `inplace`";
    INPLACE_TWICE: "the op changes `{}` in place, so it has no in-place form", "remove `inplace`";
    INPLACE_SHAPE: "the result has the dimensions {}, which the first argument cannot hold: `{}`", "an op with an in-place form must return one value with the dimensions of its first parameter; remove `inplace`";
    CHANGED_OUTPUT: "`{}` is an input that is changed in place, not an output", "remove it here; an op without other outputs has `-> ()`";
    CHANGED_PROGRAM: "an op that changes `{}` in place cannot have the clause `program`", "remove the clause, or return new values";
    CHANGED_BATCH: "`{}` is changed in place by all cells, because it has no batch dimensions", "write `[.., …]`, or remove it from the inputs of the `shape` clause: an output without batch dimensions is the sum over all cells";
    INPLACE_OUTPUT: "the first argument cannot hold the result", "an op with an in-place form must return one value of the dtype of its first parameter";

    // The gradient.
    NOT_DERIVABLE: "the gradient cannot be derived, because `{}` has another floating-point dtype", "write one dtype variable for all of them, such as `T` with `T: Float`; for several, write a formula or `backward = none`";
    NOT_DERIVABLE_COLUMNS: "the gradient of a body with `Columns` cannot be derived", "write a formula, name a function of rows with `program = …`, or write `backward = none`";
    NOT_DERIVABLE_IN_PLACE: "the gradient of an op that changes its arguments cannot be derived", "remove the clause, so that differentiating raises an error, or return new values";

    // Element bodies.
    IF_WITHOUT_ELSE: "an `if` on data needs an `else`", "both branches are computed for every element, and one value is selected; write `else { … }`";
    LEAVES_IF: "`{}` cannot leave an `if` on data", "both branches are computed for every element; make the result the value of the `if`";
    ASSIGNS_IN_IF: "`{}` is assigned inside an `if` on data", "both branches are computed for every element; write `{} = if … { … } else { {} };`";
    WHILE: "`while` on data is not supported, because each element may end at another time", "bound the number of turns: `for _ in 0..100 { if !({}) { break; } … }`";
    MODIFIES_IN_IF: "`{}` is modified by `{}` under a condition on data", "both sides of a condition are computed for every element; select elements before they are stored, as in `let new = if … { … } else { … };`";
    ENDS_ON_DATA: "a loop that ends on data needs a bound", "write `for` with a fixed count, such as `for _ in 0..100 { … }`; each element may end earlier";
    MATCH: "`match` on data is not supported, because each element may take another arm", "use `if`/`else`";
    AMBIGUOUS: "the dtype of `{}` is ambiguous: {}", "annotate it, such as `let c: T = …;`";
    FRACTION: "`{}` cannot be represented by the integers among the dtypes of `{}`", "bound `{}` by `{}`, or use an integer";
    NO_METHOD: "elements have no method `{}`", "{}";
    NO_MASK_METHOD: "masks have no method `{}`", "{}";
    ROW_METHOD: "`{}` reduces a row, but `{}` is one element", "write the op for rows: `fn op<R: {}>(x: R) -> R` with a clause such as `shape = (x: [.., n]) -> [.., n]`";
    LIST_METHOD: "slices and iterators of elements have no `{}`", "{}";
    SLICE_METHOD: "`{}` is a slice, which has no method `{}`", "write the op for rows, `R: Row`, or call a function of `minitensor::kernels::rows`, such as `rows::sum(x)`";
    NO_ITEM: "`{}` has no `{}`", "{}";
    MACHINE_FUNCTION: "`{}` takes machine numbers, but `{}` is an element", "write a method, such as `{}.{}(…)`";
    RANGE: "a range cannot contain `{}`, which is an element", "compare it, as in `lo <= x && x < hi`";
    INDEXED_BY_DATA: "a list of elements cannot be indexed by the element `{}`", "only a list of numbers can; write `if … { a[0] } else { a[1] }`, or a cell op with `&[T]`";
    QUESTION_MARK: "`?` cannot leave the body of an op for elements or rows", "such a body cannot fail; state conditions as `where …`, or check them in a cell or tensor op";
    DIMENSION: "the dimension `{}` is not in scope in the body", "write `{}`";
    TENSOR_CALL: "`{}` takes tensors, but `{}` is an element", "call the function of the op, `{}(…)`";
    ARGUMENTS: "`{}` takes {}, got {}", "docs/defining-ops.md lists the methods of elements and rows";
    WEAK_BOUND: "`{}` is not defined for every dtype of `{}`", "bound `{}` by {} instead of `{}`{}";
    NOT_OF_INTEGERS: "`{}` is not defined for the integers of `{}`", "{}";
    MIXED_DTYPES: "`{}` has the dtype `{}`, but `{}` has the dtype `{}`", "use the variable `{}` for both, so that they are promoted to one dtype";
    MIXED_RESULT: "`{}` has the dtype `{}`, but the result has the dtype `{}`", "return `{}`, or use one variable for both";
    MASK_OPERAND: "`{}` is a mask, not a number", "write `if {} { 1.0 } else { 0.0 }`";
    MASK_RESULT: "`{}` is a mask, but the function returns `{}`", "return `{}::Mask`, or write `if {} { 1.0 } else { 0.0 }`";
    ELEMENT_RESULT: "`{}` is a number, but the function returns `{}::Mask`", "return a comparison, such as `{} != 0`";
    NOT_A_CONDITION: "`{}` is a number, not a condition", "compare it, such as `{} != 0`";
    OPTIONAL_OPERAND: "`{}` may be absent", "handle both cases: `match {} { Some(value) => …, None => … }`";
    INDEX_OPERAND: "`{}` is an index, not a number", "`x.at({})` is the element of `x` at this index, and `x.position().at({})` is the index as a number";
    AT_ALONG: "`{}` has a value for each element, but `at` reads one element of the row", "write `x.take({})` to read at these positions";
    NOT_AN_INDEX: "`{}` is not an index", "write an integer, a number that all elements of the row share, or an input `index: R::Index`";
    PLACE_OPERAND: "`{}` is a reference to an element", "write `*{}`";
    DEREFERENCED: "`{}` is an element, not a reference", "write `{}` without `*`";
    FLAG_OPERAND: "`{}` is a `bool`, not a number", "write `if {} { … } else { … }`";
    FLAG_NUMBER: "`{}` is a `bool`, not a number", "write `{}`";
    RUST_OPERAND: "`{}` is {}, not a number", "compute numbers from it first; attributes of the types `f64`, `i64` and `usize` are numbers";
    PLACES: "the places of `shift` must be a known integer, got `{}`", "write an integer or an `i64` attribute; `take` reads an element at a computed position";
    POWER: "the exponent of `powi` must be an integer, got `{}`", "write `pow({})`";
    ELEMENT_IS_NO_LIST: "`{}` is one element, not a list", "the body runs once for each element; use `R: Row` for reductions, and `&[T]` for loops over a row";
    ROW_IS_NO_LIST: "`{}` is one element of the row, not a list", "write the body for one element, with `x.sum()`, `x.count()` and `x.at(index)` for the whole row; use `&[T]` for loops over a row";
    COUNT: "a loop cannot run up to data, because each element may end at another time", "use a `usize` attribute as the count";
    SHOWS_DATA: "`{}!` cannot show `{}`, because it has no value when the body is recorded or differentiated", "remove it, and show the tensors where the op is called";
    TESTS_DATA: "`{}!` cannot test `{}`, because it has no value when the body is recorded or differentiated", "state conditions on attributes and dimensions as `where …`, or test the tensors where the op is called";
    CAST: "data cannot be cast to `{}`", "elements are numbers of the dtype variable: `x.trunc()` drops the fraction, `values[x]` reads a list at this position, and the clause `dtype = (x: T) -> (out: i64)` stores a result as integers";
    CAST_IN_CELL: "data cannot be cast to `{}`", "elements are numbers of the dtype variable; only casts to integers are possible, such as `x as usize` for an index";

    // Complex numbers.
    COMPLEX_ASSIGNED: "`{}` is complex, but `{}` is real", "annotate it: `let mut {}: {} = …;`";
    COMPLEX_MIXED: "`{}` is real, but `{}` is complex", "write `Complex::from({})`, or take a part of the other number";
    COMPLEX_RESULT: "`{}` is real, but the function returns `{}`", "write `Complex::from({})`";
    REAL_RESULT: "`{}` is complex, but the function returns `{}`", "return a real number, such as `{}.re()` or `{}.abs()`";
    BITS_MIXED: "`{}` is a number, but `{}` is the bits of one", "write `{}.to_bits()` or `{}.to_integer()` for bits, or `{}.to_number()` for a number";
    INDEX_RESULT: "`{}` is a number, but the function returns `{}::Index`", "write `{}.to_index()`";
    BITS_RESULT: "`{}` is the bits of a number, but a number is expected", "write `{}.to_number()`, or `{}::from_bits({})`";
    NUMBER_RESULT: "`{}` is a number, but bits are expected", "write `{}.to_bits()` for its bits, or `{}.to_integer()`";
    BITS_FRACTION: "`{}` is beside bits, which are an integer", "use an integer, or convert the bits by `to_number()`";
    NO_BITS: "bits have no method `{}`", "{}";
    NO_COMPLEX: "complex numbers have no {} `{}`", "{}";
    COMPLEX_PART: "`{}` has parts of `{}`, which is not a float", "write `Complex<T>` with `T: Float`, or `R: Row` in a row op";
    COMPLEX_VARIABLES: "`{}` and `Complex<{}>` have different dtype variables", "use one variable for both, so that they are promoted to one dtype";
    COMPLEX_MACHINE: "expected a generic type, found the machine type `{}`", "write `Complex<T>` with `T: Float`";
    COMPLEX_TYPE: "`{}` cannot be a parameter or result of an op", "write `Complex<T>`, or `Option<Complex<T>>` for an optional parameter";
    COMPLEX_CLAUSE: "an op with `Complex<…>` cannot have the clause `{}`", "remove it, or call this op from an op over `&Tensor`";
    COMPLEX_DRAWN: "an op with `Complex<…>` cannot have the attribute `#[{}]`", "take the numbers as a tensor, and make them in an op over `&Tensor`";

    // AttrEnum.
    ENUM_ONLY: "AttrEnum can only be derived for enums", "its variants are the values of the attribute";
    ENUM_FIELDS: "the variant `{}` has fields", "remove the fields; a variant is one value of the attribute";
    ENUM_EMPTY: "the enum of an attribute must have a variant", "add a variant";
    ENUM_GENERIC: "the enum of an attribute cannot be generic", "remove the generic parameters";
}
