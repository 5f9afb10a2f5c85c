//! Tensor bodies: calls the function with the arguments of a `Call`.

use proc_macro2::TokenStream;
use quote::format_ident;

use super::{attr, stem};
use crate::ast::{Arity, Op, Slot};
use crate::hygiene::quote;

pub fn body(op: &Op) -> TokenStream {
    let (body, function) = (format_ident!("{}_body", stem(op)), op.ident());
    let attrs = quote!(call.attrs());
    let args = op.params.iter().map(|slot| match *slot {
        Slot::Input(i) => {
            let at = syn::Index::from(i);
            match op.inputs[i].arity {
                Arity::One => quote!(call.tensor(#at)),
                Arity::Optional => quote!(call.optional(#at)),
                Arity::Variadic => quote!(&call.variadic(#at)),
            }
        }
        Slot::Attr(i) => attr::read(&op.attrs[i], i, &attrs),
        Slot::Output(_) => TokenStream::new(),
    });
    let call = if op.params.is_empty() { quote!(_call) } else { quote!(call) };
    let results = quote!(__private::IntoOutputs::into_outputs(#function(#(#args),*)));
    let run = if op.axis.is_some() { quote!(__private::along_axis(call, |call| #results)) } else { results };
    quote! {
        fn #body(#call: &__private::Call<'_>) -> __private::Result<__private::Vec<__private::Tensor>> {
            #run
        }
    }
}
