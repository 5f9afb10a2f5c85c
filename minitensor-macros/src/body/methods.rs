//! The methods of elements, as far as the macro knows them.

/// The methods that return elements, by the trait that has them.
pub const METHODS: &[(&str, &[&str])] = &[
    ("Element", &["zero", "one", "select", "constant"]),
    ("Num", &["square", "conj", "powi", "pow", "negative"]),
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
        ],
    ),
];

/// The methods that return masks.
pub const MASKS: &[(&str, &[&str])] = &[
    ("Element", &["equal", "not_equal", "truthy"]),
    ("Real", &["less", "less_equal", "greater", "greater_equal", "isnan", "isinf", "signbit"]),
    ("Float", &["isfinite"]),
];

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

/// Methods of Rust's floats that the traits lack: each with a similar method, and how that differs.
pub const FALSE_FRIENDS: &[(&str, &str, &str)] = &[("signum", "sign", "is 0 at 0")];
