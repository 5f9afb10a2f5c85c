//! The dtypes and the scalar traits, as tables: what the runtime's `DType` and `DTypeSet` say, known at expansion.

use proc_macro2::TokenStream;
use quote::format_ident;
use syn::Type;

use crate::hygiene::quote;

/// One dtype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DType {
    /// The variant of the runtime's enum.
    pub variant: &'static str,
    /// The Rust type.
    pub rust: &'static str,
    pub kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Bool,
    Int,
    Float,
    Complex,
}

macro_rules! dtypes {
    ($($kind:ident: $($variant:ident $rust:literal),*;)*) => {
        /// All of them, in the order of the runtime.
        pub const DTYPES: &[DType] = &[$($(DType { variant: stringify!($variant), rust: $rust, kind: Kind::$kind }),*),*];
    };
}
dtypes! {
    Bool: Bool "bool";
    Int: I8 "i8", I16 "i16", I32 "i32", I64 "i64", U8 "u8", U16 "u16", U32 "u32", U64 "u64";
    Float: F16 "f16", Bf16 "bf16", F32 "f32", F64 "f64";
    Complex: C64 "c64", C128 "c128";
}

impl DType {
    /// The dtype that a type, or a word of the `dtype` clause, names: `f32`, `c64`, `Complex<f32>`.
    pub fn of(ty: &Type) -> Option<DType> {
        let text = quote!(#ty).to_string().replace(' ', "");
        let text = match text.as_str() {
            "Complex<f32>" => "c64",
            "Complex<f64>" => "c128",
            other => other,
        };
        DTYPES.iter().find(|d| d.rust == text).copied()
    }

    /// What it is computed in: `f16` and `bf16` in `f32`.
    pub fn compute(self) -> DType {
        match self.rust {
            "f16" | "bf16" => DTYPES[11],
            _ => self,
        }
    }

    pub fn is_complex(self) -> bool {
        self.kind == Kind::Complex
    }

    pub fn is_differentiable(self) -> bool {
        matches!(self.kind, Kind::Float | Kind::Complex)
    }

    /// `rt::DType::F32`
    pub fn tokens(self) -> TokenStream {
        let variant = format_ident!("{}", self.variant);
        quote!(__rt::DType::#variant)
    }

    /// The Rust type of what memory holds, as the expansion spells it.
    pub fn stored(self) -> TokenStream {
        if self.kind == Kind::Bool { quote!(__rt::scalars::Bool) } else { self.rust() }
    }

    /// The Rust type, as the expansion spells it.
    pub fn rust(self) -> TokenStream {
        match self.kind {
            Kind::Complex => {
                let alias = format_ident!("{}", self.variant);
                quote!(__rt::scalars::#alias)
            }
            _ => {
                let name = format_ident!("{}", self.rust);
                quote!(__rt::#name)
            }
        }
    }
}

/// The trait that bounds a dtype variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    pub name: &'static str,
    kinds: &'static [Kind],
    /// Whether `<` and its kin are for it.
    pub ordered: bool,
}

/// The scalar traits, weakest first.
pub const BOUNDS: &[Bound] = &[
    Bound { name: "Element", kinds: &[Kind::Bool, Kind::Int, Kind::Float, Kind::Complex], ordered: false },
    Bound { name: "Num", kinds: &[Kind::Int, Kind::Float, Kind::Complex], ordered: false },
    Bound { name: "Real", kinds: &[Kind::Int, Kind::Float], ordered: true },
    Bound { name: "Int", kinds: &[Kind::Int], ordered: true },
    Bound { name: "Field", kinds: &[Kind::Float, Kind::Complex], ordered: false },
    Bound { name: "Float", kinds: &[Kind::Float], ordered: true },
    Bound { name: "Row", kinds: &[Kind::Float], ordered: true },
];

impl Bound {
    pub fn named(name: &str) -> Option<Bound> {
        BOUNDS.iter().find(|b| b.name == name).copied()
    }

    pub fn names() -> Vec<&'static str> {
        BOUNDS.iter().map(|b| b.name).collect()
    }

    pub fn dtypes(self) -> Vec<DType> {
        DTYPES.iter().filter(|d| self.admits(**d)).copied().collect()
    }

    pub fn admits(self, dtype: DType) -> bool {
        self.kinds.contains(&dtype.kind)
    }

    /// Whether a fraction such as `0.5` may be lost in it.
    pub fn has_integers(self) -> bool {
        self.kinds.contains(&Kind::Int)
    }
}

/// `rt::DTypeSet::FLOAT`, or a list where no trait has exactly these.
pub fn set(dtypes: &[DType]) -> TokenStream {
    match BOUNDS.iter().find(|b| b.dtypes() == dtypes) {
        Some(bound) => {
            let name = format_ident!("{}", bound.name.to_uppercase());
            quote!(__rt::DTypeSet::#name)
        }
        None => {
            let dtypes = dtypes.iter().map(|d| d.tokens());
            quote!(__rt::DTypeSet::of(&[#(#dtypes),*]))
        }
    }
}
