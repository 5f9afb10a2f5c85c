//! The methods of elements, as far as the macro knows them.

use syn::Expr;

/// The methods that return elements, by the trait that has them.
pub const METHODS: &[(&str, &[&str])] = &[
    ("Element", &["zero", "one", "select", "constant"]),
    ("Num", &["square", "conj", "powi", "pow", "negative", "detach", "chain", "times", "exponent_slope"]),
    (
        "Real",
        &[
            "maximum",
            "minimum",
            "clip",
            "abs",
            "sign",
            "floor",
            "ceil",
            "round",
            "trunc",
            "floor_divide",
            "remainder",
            "div_euclid",
            "rem_euclid",
        ],
    ),
    ("Int", &["bitwise_xor", "left_shift", "right_shift"]),
    (
        "Field",
        &[
            "divide", "recip", "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "log_base", "sin", "cos",
            "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid",
        ],
    ),
    (
        "Float",
        &[
            "nan",
            "infinity",
            "epsilon",
            "rsqrt",
            "cbrt",
            "exp2",
            "silu",
            "softplus",
            "log_sigmoid",
            "erf",
            "erfc",
            "normal_cdf",
            "normal_pdf",
            "lgamma",
            "digamma",
            "polygamma",
            "atan2",
            "hypot",
            "logaddexp",
            "copysign",
            "fmod",
            "mul_add",
            "fract",
            "to_radians",
            "to_degrees",
            "as_float16",
            "as_bfloat16",
            "from_bits",
        ],
    ),
];

/// The methods that return the bits of elements.
pub const BITS: &[(&str, &[&str])] = &[("Float", &["to_bits", "to_integer"])];

/// The methods that return masks.
pub const MASKS: &[(&str, &[&str])] = &[
    ("Element", &["equal", "not_equal", "truthy"]),
    ("Real", &["less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "signbit"]),
    ("Float", &["isfinite"]),
];

/// The methods of rows, with their numbers of arguments.
pub const ROW_METHODS: &[(&str, usize)] = &[
    ("sum", 0),
    ("prod", 0),
    ("mean", 0),
    ("max", 0),
    ("min", 0),
    ("argmax", 0),
    ("argmin", 0),
    ("logsumexp", 0),
    ("cumsum", 0),
    ("reverse_cumsum", 0),
    ("count", 0),
    ("position", 0),
    ("to_index", 0),
    ("reverse", 0),
    ("cumprod", 0),
    ("cummax", 0),
    ("cummin", 0),
    ("argsort", 0),
    ("sort", 0),
    ("var", 1),
    ("std", 1),
    ("dot", 1),
    ("at", 1),
    ("shift", 1),
    ("recurrence", 1),
    ("reverse_recurrence", 1),
    ("take", 1),
    ("put", 1),
];

/// Those that only rows of floats have.
pub const OF_FLOAT_ROWS: &[&str] = &["mean", "logsumexp", "var", "std"];

/// Those that are functions of the whole row. They return rows, and only programs have them.
pub const ROW_FUNCTIONS: &[&str] = &[
    "reverse",
    "cumprod",
    "cummax",
    "cummin",
    "argsort",
    "sort",
    "shift",
    "recurrence",
    "reverse_recurrence",
    "take",
    "put",
];

/// Whether a function scans rows: `R::scan`.
pub fn is_scan(function: &Expr) -> bool {
    let Expr::Path(path) = function else { return false };
    let segments = &path.path.segments;
    segments.len() == 2 && segments[1].ident == "scan"
}

/// The methods that return two elements.
pub const PAIRS: &[(&str, &[&str])] = &[("Field", &["sin_cos", "sigmoid_and_slope"])];

/// The methods of complex numbers that return real ones.
pub const COMPLEX_PARTS: &[&str] = &["re", "im", "abs", "arg", "norm_sqr"];

/// The methods of rows that rows of complex numbers have, too.
pub const COMPLEX_ROW_METHODS: &[&str] = &["sum", "mean", "cumsum", "reverse_cumsum", "reverse", "shift"];

/// Methods that complex numbers lack: each with the method that they have.
pub const OTHER_COMPLEX_METHODS: &[(&str, &str)] = &[
    ("real", "re"),
    ("imag", "im"),
    ("angle", "arg"),
    ("phase", "arg"),
    ("norm", "abs"),
    ("modulus", "abs"),
    ("conjugate", "conj"),
    ("inv", "recip"),
    ("to_polar", "(z.abs(), z.arg())"),
];

/// The functions of complex numbers that return one, from real numbers.
pub const COMPLEX_ITEMS: &[&str] = &["new", "from", "from_polar", "i"];

/// Whether complex numbers have a method of elements.
pub fn is_complex(name: &str) -> bool {
    let is_of_both = matches!(bound_of(name), Some("Element" | "Num" | "Field"));
    is_of_both || COMPLEX_PARTS.contains(&name) || matches!(name, "isnan" | "isinf" | "isfinite")
}

/// Whether a name is a method of elements.
pub fn is_known(name: &str) -> bool {
    bound_of(name).is_some()
}

/// Whether a method returns an element.
pub fn returns_element(name: &str) -> bool {
    METHODS.iter().any(|(_, names)| names.contains(&name))
}

/// Methods whose arguments are elements too, so that literals among them become elements.
pub const DATA_METHODS: &[&str] = &[
    "pow",
    "maximum",
    "minimum",
    "clip",
    "atan2",
    "hypot",
    "logaddexp",
    "copysign",
    "fmod",
    "floor_divide",
    "remainder",
    "div_euclid",
    "rem_euclid",
    "log_base",
    "mul_add",
    "dot",
    "var",
    "std",
    "recurrence",
    "reverse_recurrence",
    "take",
    "put",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
];

/// Method names of Rust's floats, each with its number of arguments and its name in the traits.
pub const RUST_METHODS: &[(&str, usize, &str)] = &[
    ("max", 1, "maximum"),
    ("min", 1, "minimum"),
    ("clamp", 2, "clip"),
    ("ln", 0, "log"),
    ("log", 1, "log_base"),
    ("ln_1p", 0, "log1p"),
    ("exp_m1", 0, "expm1"),
    ("powf", 1, "pow"),
    ("round_ties_even", 0, "round"),
    ("is_nan", 0, "isnan"),
    ("is_infinite", 0, "isinf"),
    ("is_finite", 0, "isfinite"),
    ("is_sign_negative", 0, "signbit"),
];

/// The name in the traits of a method that is called with this number of arguments.
pub fn renamed(name: &str, arguments: usize) -> &str {
    let found = RUST_METHODS.iter().find(|(rust, takes, _)| *rust == name && *takes == arguments);
    found.map_or(name, |(.., ours)| ours)
}

/// Methods that elements lack: each with what to write instead. A trait of the user may add methods to elements, so the list has
/// only other names of methods that elements have.
pub const OTHER_METHODS: &[(&str, &str)] = &[
    // Rust.
    ("signum", "write `sign`, which is 0 at 0"),
    ("is_sign_positive", "write `!x.signbit()`"),
    ("re", "only complex numbers have parts: take `z: Complex<T>` with `T: Float`"),
    ("im", "only complex numbers have parts: take `z: Complex<T>` with `T: Float`"),
    ("count_ones", "add the bits `(x >> k) & 1` in a loop"),
    ("count_zeros", "add the bits `(x >> k) & 1` in a loop"),
    ("leading_zeros", "test the bits `(x >> k) & 1` in a loop"),
    ("trailing_zeros", "test the bits `(x >> k) & 1` in a loop"),
    ("total_cmp", "compare by `<`, `<=`, `==`, …"),
    ("partial_cmp", "compare by `<`, `<=`, `==`, …"),
    ("cmp", "compare by `<`, `<=`, `==`, …"),
    ("lt", "write `x < y`"),
    ("le", "write `x <= y`"),
    ("gt", "write `x > y`"),
    ("ge", "write `x >= y`"),
    ("wrapping_add", "write `x + y`, which wraps for integers"),
    ("wrapping_sub", "write `x - y`, which wraps for integers"),
    ("wrapping_mul", "write `x * y`, which wraps for integers"),
    ("checked_div", "write `x / y`; a division by 0 is an infinity or NaN"),
    ("scan", "write `R::scan(x, |before, x| …)` in a row op"),
    ("into", "an element keeps its dtype; convert the tensor with another op"),
    // NumPy and PyTorch.
    ("absolute", "write `abs`"),
    ("arccos", "write `acos`"),
    ("arccosh", "write `acosh`"),
    ("arcsin", "write `asin`"),
    ("arcsinh", "write `asinh`"),
    ("arctan", "write `atan`"),
    ("arctan2", "write `atan2`"),
    ("arctanh", "write `atanh`"),
    ("clamp_max", "write `x.minimum(hi)`"),
    ("clamp_min", "write `x.maximum(lo)`"),
    ("fmax", "write `maximum`, which is NaN if either is NaN"),
    ("fmin", "write `minimum`, which is NaN if either is NaN"),
    ("logical_not", "write `!mask`"),
    ("multiply", "write `x * y`"),
    ("mod", "write `remainder`"),
    ("power", "write `pow`"),
    ("reciprocal", "write `recip`"),
    ("rint", "write `round`"),
    ("rsub", "write `y - x`"),
    ("sgn", "write `sign`"),
    ("gelu", "write `x * x.normal_cdf()`"),
    ("leaky_relu", "write `if x > 0 { x } else { slope * x }`"),
    ("relu", "write `x.maximum(0)`"),
    ("swish", "write `silu`"),
    ("nan_to_num", "write `if x.isnan() { 0 } else { x }`"),
    ("masked_fill", "write `if mask { value } else { x }`"),
    ("astype", "the clause `dtype = (x: T) -> (out: i8)` stores a result as integers"),
];

/// Constants and functions that dtype variables lack: each with what to write instead.
pub const OTHER_ITEMS: &[(&str, &str)] = &[
    ("from_f64", "write the number itself; beside an element it becomes one"),
    ("from_f32", "write the number itself; beside an element it becomes one"),
    ("from_i64", "write the number itself; beside an element it becomes one"),
    ("from_usize", "write the number itself; beside an element it becomes one"),
    ("default", "write `0`"),
    ("EPSILON", "write `T::epsilon()`"),
    ("INFINITY", "write `T::infinity()`"),
    ("MAX", "write `T::infinity()` if all dtypes are floats; the largest number differs between dtypes"),
    ("MIN", "write `-T::infinity()` if all dtypes are floats; the smallest number differs between dtypes"),
    ("max_value", "write `T::infinity()` if all dtypes are floats; the largest number differs between dtypes"),
    ("min_value", "write `-T::infinity()` if all dtypes are floats; the smallest number differs between dtypes"),
    ("neg_infinity", "write `-T::infinity()`"),
    ("NAN", "write `T::nan()`"),
    ("NEG_INFINITY", "write `-T::infinity()`"),
    ("ONE", "write `1`"),
    ("PI", "write `std::f64::consts::PI`"),
    ("E", "write `std::f64::consts::E`"),
    ("ZERO", "write `0`"),
];

/// Methods that rows lack: each with what to write instead.
pub const OTHER_ROW_METHODS: &[(&str, &str)] = &[
    ("any", "write `R::any(mask)`"),
    ("all", "write `R::all(mask)`"),
    ("average", "write `mean`"),
    ("product", "write `prod`"),
    ("variance", "write `x.var(0)`; the argument is the correction"),
    ("median", "write `let y = x.sort();` and select the middle by `y.position()`"),
    ("quantile", "write `let y = x.sort();` and select the place by `y.position()`"),
    ("norm", "write `x.square().sum().sqrt()`"),
    ("softmax", "write `let e = (x - x.max().detach()).exp(); e / e.sum()`"),
    ("log_softmax", "write `x - x.logsumexp()`"),
    ("roll", "write `shift` for the elements inside of the row"),
    ("diff", "write `x - x.shift(1)`"),
];

/// Methods of slices and iterators that elements of a cell lack, because they are not those of one Rust type.
pub const OTHER_CELL_METHODS: &[(&str, &str)] = &[
    ("dot", "sum the products: `x.iter().zip(&y).map(|(x, y)| x * y).sum()`"),
    ("max", "write `.copied().reduce(|a, b| a.maximum(b))`"),
    ("min", "write `.copied().reduce(|a, b| a.minimum(b))`"),
    ("sort", "write `sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))`"),
    ("sort_unstable", "write `sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))`"),
];

/// Methods of lists and iterators.
pub const LIST_METHODS: &[&str] = &[
    "iter",
    "iter_mut",
    "into_iter",
    "len",
    "is_empty",
    "first",
    "last",
    "get",
    "sort",
    "windows",
    "chunks",
    "to_vec",
    "map",
    "fold",
    "rev",
    "zip",
    "enumerate",
    "as_slice",
    "swap",
    "reverse",
];

/// The number of arguments of a method of elements, if it is known.
pub fn arguments(name: &str) -> Option<usize> {
    match name {
        "clip" | "mul_add" => Some(2),
        "powi" | "polygamma" | "divide" => Some(1),
        "select" | "constant" | "zero" | "one" | "nan" | "infinity" | "epsilon" => None,
        _ if DATA_METHODS.contains(&name) => Some(1),
        _ => {
            let of_rows = ROW_METHODS.iter().find(|(row, _)| *row == name).map(|(_, takes)| *takes);
            if is_known(name) { Some(0) } else { of_rows }
        }
    }
}

/// The bounds that have a method.
pub fn bound_of(name: &str) -> Option<&'static str> {
    let all = METHODS.iter().chain(MASKS).chain(BITS).chain(PAIRS).find(|(_, names)| names.contains(&name));
    all.map(|(bound, _)| *bound)
}

/// The bounds with the methods of a bound, weakest first.
pub fn bounds_with(bound: &str) -> &'static [&'static str] {
    match bound {
        "Num" => &["Num", "Real", "Int", "Field", "Float", "Row", "IntRow"],
        "Real" => &["Real", "Int", "Float", "Row", "IntRow"],
        "Int" => &["Int", "IntRow"],
        "Field" => &["Field", "Float", "Row"],
        "Float" => &["Float", "Row"],
        "Row" => &["Row"],
        _ => &["Element", "Num", "Real", "Int", "Field", "Float", "Row", "IntRow"],
    }
}
