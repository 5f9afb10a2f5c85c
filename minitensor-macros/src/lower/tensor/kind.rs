//! [`Kind`]: the kind of a value in a body over whole tensors, as far as the macro can infer it.

use syn::{GenericArgument, Pat, PathArguments, ReturnType, Type};

/// The kind of a value, as far as it is certain. References do not matter, except for the tensors themselves.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Kind {
    /// A tensor, or a reference to one.
    Tensor,
    /// A value of the type `Tensor`.
    New,
    /// All outputs of an op, as a vector of which a part is taken.
    Outputs,
    /// An array of these values.
    Array(Vec<Kind>),
    Option(Box<Kind>),
    Result(Box<Kind>),
    /// A slice, vector, array or iterator.
    List(Box<Kind>),
    Tuple(Vec<Kind>),
    /// A closure that returns such a value.
    Fn(Box<Kind>),
    /// No value: the expression leaves the function, closure or loop.
    Never,
    #[default]
    Other,
}

impl Kind {
    pub fn is_tensor(&self) -> bool {
        matches!(self, Kind::Tensor | Kind::New)
    }

    pub fn has_tensor(&self) -> bool {
        match self {
            Kind::Option(inner) | Kind::Result(inner) | Kind::List(inner) | Kind::Fn(inner) => inner.has_tensor(),
            Kind::Tuple(parts) => parts.iter().any(Kind::has_tensor),
            kind => kind.is_tensor(),
        }
    }

    /// Whether it is a tensor, or a tuple or a list of these that an op may return.
    pub fn is_tensors(&self) -> bool {
        match self {
            Kind::Tuple(parts) => parts.iter().any(Kind::is_tensors),
            kind => matches!(kind, Kind::New | Kind::Outputs | Kind::Array(_)),
        }
    }

    /// Whether it holds several tensors of which an op may return each.
    pub fn is_several(&self) -> bool {
        matches!(self, Kind::Tuple(_) | Kind::Array(_) | Kind::List(_) | Kind::Outputs)
    }

    /// Whether a value of this kind has one tensor where `wanted` has several.
    pub fn is_less_than(&self, wanted: &Kind) -> bool {
        match (self, wanted) {
            (Kind::Result(own), Kind::Result(wanted))
            | (Kind::Option(own), Kind::Option(wanted))
            | (Kind::Fn(own), Kind::Fn(wanted)) => own.is_less_than(wanted),
            (own, wanted) => own.is_tensor() && wanted.is_several(),
        }
    }

    /// The kind of a type.
    pub fn of_type(ty: &Type) -> Kind {
        match ty {
            Type::Reference(inner) => Kind::of_type(&inner.elem).referred(),
            Type::Paren(inner) => Kind::of_type(&inner.elem),
            Type::Group(inner) => Kind::of_type(&inner.elem),
            Type::Slice(list) => Kind::List(Box::new(Kind::of_type(&list.elem))),
            Type::Array(list) => Kind::List(Box::new(Kind::of_type(&list.elem))),
            Type::Tuple(tuple) => Kind::Tuple(tuple.elems.iter().map(Kind::of_type).collect()),
            Type::Path(path) => {
                let Some(last) = path.path.segments.last() else { return Kind::Other };
                let inner = || match &last.arguments {
                    PathArguments::AngleBracketed(all) => match all.args.first() {
                        Some(GenericArgument::Type(ty)) => Box::new(Kind::of_type(ty)),
                        _ => Box::new(Kind::Other),
                    },
                    _ => Box::new(Kind::Other),
                };
                match last.ident.to_string().as_str() {
                    "Tensor" => Kind::New,
                    "Option" => Kind::Option(inner()),
                    "Result" => Kind::Result(inner()),
                    "Vec" => Kind::List(inner()),
                    _ => Kind::Other,
                }
            }
            _ => Kind::Other,
        }
    }

    /// The kind of the values that a pattern takes apart.
    pub fn of_pattern(pattern: &Pat) -> Kind {
        let each = |patterns: &mut dyn Iterator<Item = &Pat>| patterns.map(Kind::of_pattern).collect::<Vec<_>>();
        let has_rest = |pattern: &Pat| {
            matches!(pattern, Pat::Rest(_)) || matches!(pattern, Pat::Ident(part) if part.subpat.is_some())
        };
        match pattern {
            Pat::Type(pattern) => Kind::of_type(&pattern.ty),
            Pat::Paren(pattern) => Kind::of_pattern(&pattern.pat),
            Pat::Guard(pattern) => Kind::of_pattern(&pattern.pat),
            Pat::Tuple(tuple) if !tuple.elems.iter().any(has_rest) => Kind::Tuple(each(&mut tuple.elems.iter())),
            Pat::Slice(slice) if !slice.elems.iter().any(has_rest) => Kind::Array(each(&mut slice.elems.iter())),
            Pat::TupleStruct(pattern) if pattern.elems.len() == 1 => {
                let inside = Box::new(Kind::of_pattern(&pattern.elems[0]));
                if pattern.path.is_ident("Some") { Kind::Option(inside) } else { Kind::Result(inside) }
            }
            _ => Kind::Other,
        }
    }

    pub fn of_output(output: &ReturnType) -> Kind {
        if let ReturnType::Type(_, ty) = output { Kind::of_type(ty) } else { Kind::Other }
    }

    /// The kind of a reference to the value, or of a part that is read through one.
    pub fn referred(self) -> Kind {
        if self == Kind::New { Kind::Tensor } else { self }
    }

    /// The value in an `Option` or a `Result`.
    pub fn inside(self) -> Kind {
        match self {
            Kind::Option(inner) | Kind::Result(inner) => *inner,
            _ => Kind::Other,
        }
    }

    /// A value of a list.
    pub fn item(&self) -> Kind {
        match self {
            Kind::List(item) => (**item).clone().referred(),
            Kind::Outputs => Kind::New,
            _ => Kind::Other,
        }
    }

    /// A part of a tuple or an array, or a value of a list.
    pub fn part(&self, at: usize) -> Kind {
        match self {
            Kind::Tuple(parts) | Kind::Array(parts) => parts.get(at).cloned().unwrap_or(Kind::Other),
            list => list.item(),
        }
    }

    /// The kind of an `if` with these two branches.
    pub fn join(self, other: Kind) -> Kind {
        match (self, other) {
            (a, b) if a == b || b == Kind::Never => a,
            (Kind::Never, b) => b,
            (a, b) if a.is_tensor() && b.is_tensor() => Kind::New,
            (Kind::Option(a), Kind::Option(b)) => Kind::Option(Box::new(a.join(*b))),
            (Kind::Result(a), Kind::Result(b)) => Kind::Result(Box::new(a.join(*b))),
            (Kind::Tuple(a), Kind::Tuple(b)) if a.len() == b.len() => {
                Kind::Tuple(a.into_iter().zip(b).map(|(a, b)| a.join(b)).collect())
            }
            _ => Kind::Other,
        }
    }
}

/// What a Rust method of `Tensor` returns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Returns {
    Tensor,
    Result,
    Other,
}

impl Returns {
    pub fn kind(self) -> Kind {
        match self {
            Returns::Tensor => Kind::Tensor,
            Returns::Result => Kind::Result(Box::new(Kind::New)),
            Returns::Other => Kind::Other,
        }
    }
}

/// The Rust methods of `Tensor`. Every other method in a body over whole tensors is an op.
pub const METHODS: &[(Returns, &[&str])] = &[
    (Returns::Tensor, &["broadcast_view", "clone", "detach", "to_owned"]),
    (
        Returns::Result,
        &[
            "bitcast",
            "cast",
            "contiguous",
            "copied",
            "expand_view",
            "part_view",
            "permute_view",
            "reshape_view",
            "slice_view",
            "squeeze_view",
            "to_device",
            "unsqueeze_view",
            "with_requires_grad",
        ],
    ),
    (
        Returns::Other,
        &[
            "body",
            "copy_from",
            "data_ptr",
            "device",
            "dtype",
            "expect_cpu",
            "expect_values",
            "grad",
            "grad_fn_name",
            "handle",
            "into_handle",
            "is_contiguous",
            "is_leaf",
            "is_same_window",
            "item",
            "layout",
            "may_overlap",
            "ndim",
            "numel",
            "offset",
            "overlaps_itself",
            "register_hook",
            "requires_grad",
            "retain_grad",
            "set_grad",
            "set_requires_grad",
            "shape",
            "shares_storage",
            "storage",
            "strides",
            "to_vec",
            "view",
            // Those of traits.
            "as_ref",
            "borrow",
            "clone_from",
            "fmt",
            "into",
            "into_outputs",
            "to_string",
            "try_into",
            "type_id",
        ],
    ),
];

/// What a Rust method of `Tensor` returns. `None` if there is no such method.
pub fn method(name: &str) -> Option<Returns> {
    METHODS.iter().find(|(_, names)| names.contains(&name)).map(|(returns, _)| *returns)
}

/// The kind of the result of a function such as `Tensor::zeros`.
pub fn of_constructor(path: &syn::Path) -> Kind {
    let mut names = path.segments.iter().rev().map(|s| s.ident.to_string());
    match (names.next().as_deref(), names.next().as_deref()) {
        (Some("empty" | "from_array" | "from_const" | "from_vec" | "full" | "zeros"), Some("Tensor")) => {
            Kind::Result(Box::new(Kind::New))
        }
        _ => Kind::Other,
    }
}
