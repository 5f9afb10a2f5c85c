//! Dtypes in Rust syntax: the type that names a dtype, and its tokens in the expansion.

use minitensor_schema::dtype::{BOUNDS, Kind};
use proc_macro2::TokenStream;
use quote::format_ident;
use syn::{Ident, Type};

use crate::hygiene::quote;

pub use minitensor_schema::dtype::{Bound, DType, DTypeSet};

/// The bound of complex numbers in a body, `Complex<T>`.
pub const COMPLEX: Bound =
    Bound { name: "Complex", dtypes: DTypeSet::of(&[DType::C64, DType::C128]), is_ordered: false };

/// The dtype that a type, or a word of the `dtype` clause, names: `f32`, `c64`, `Complex<f32>`.
pub fn of(ty: &Type) -> Option<DType> {
    DType::of_rust(&quote!(#ty).to_string().replace(' ', ""))
}

/// `rt::DType::F32`
pub fn tokens(dtype: DType) -> TokenStream {
    let variant = format_ident!("{}", dtype.variant());
    quote!(__private::DType::#variant)
}

/// The path of the Rust type that is stored in memory, for the expansion.
pub fn stored(dtype: DType) -> TokenStream {
    if dtype == DType::Bool { quote!(__private::scalars::Bool) } else { rust(dtype) }
}

/// The path of the Rust type, for the expansion.
pub fn rust(dtype: DType) -> TokenStream {
    match dtype.kind() {
        Kind::Complex => {
            let alias = format_ident!("{}", dtype.variant());
            quote!(__private::scalars::#alias)
        }
        _ => {
            let name = format_ident!("{}", dtype.rust_name());
            quote!(__private::#name)
        }
    }
}

/// `rt::DTypeSet::FLOAT`, or a list if no trait has exactly these dtypes.
pub fn set(dtypes: DTypeSet) -> TokenStream {
    match BOUNDS.iter().find(|b| b.dtypes == dtypes) {
        Some(bound) => {
            let name = format_ident!("{}", bound.name.to_uppercase());
            quote!(__private::DTypeSet::#name)
        }
        None => {
            let dtypes = dtypes.iter().map(tokens);
            quote!(__private::DTypeSet::of(&[#(#dtypes),*]))
        }
    }
}

/// The traits of the numbers of a cell body that have operators with references, and of those references.
pub fn operand(bound: &Bound) -> Option<(Ident, Ident)> {
    let (number, reference) = match bound.name {
        "Num" => ("NumOperand", "NumReference"),
        "Real" | "Int" => ("RealOperand", "NumReference"),
        "Field" => ("FieldOperand", "FieldReference"),
        "Float" => ("FloatOperand", "FieldReference"),
        _ => return None,
    };
    Some((format_ident!("{number}"), format_ident!("{reference}")))
}
