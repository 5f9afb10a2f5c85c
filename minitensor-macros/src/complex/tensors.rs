//! The op that takes and returns complex tensors.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::{Ident, ItemFn};

use super::{Complex, names, output};
use crate::ast::{Arity, Elem, Op, text};
use crate::composite;
use crate::diag::Diag;
use crate::dtype::{DType, DTypeSet};
use crate::hygiene::quote;

/// The clauses that this op has as they are written.
const CLAUSES: [&str; 9] = ["crate", "where", "shape", "axis", "backward", "jvp", "linear", "symmetric", "replaces"];

impl Complex {
    /// The clauses and the function of the op on complex tensors. `parts` is the op on parts.
    pub fn of_tensors(
        &self,
        function: &ItemFn,
        parts: &Op,
        runtime: &TokenStream,
        diag: &mut Diag,
    ) -> (TokenStream, ItemFn) {
        let (mut params, mut dtypes, mut taken, mut args) = (vec![], vec![], vec![], vec![]);
        let variables: Vec<String> = parts.generics.iter().map(|g| text(&g.ident)).collect();
        let complex = ["C", "Z", "W"].into_iter().find(|name| variables.iter().all(|v| v != name)).unwrap_or("C");
        let complex = format_ident!("{complex}");
        for (ident, ty) in self.params.iter().flatten() {
            let [re, im] = names(ident);
            let is_complex = Complex::is_complex(ty);
            let find = if is_complex { &re } else { ident };
            if let Some(input) = parts.inputs.iter().find(|input| input.ident == *find) {
                params.push(composite::tensor(ident, input.arity, runtime));
                let dtype = composite::dtype(parts, input.elem);
                let [one, two] = [&re, &im].map(|name| format_ident!("__{}", text(name)));
                match (is_complex, input.arity == Arity::Optional) {
                    (false, _) => args.push(quote!(#ident)),
                    (true, false) => {
                        taken.push(quote!(let (#one, #two) = #runtime::parts(#ident)?;));
                        args.extend([quote!(&#one), quote!(&#two)]);
                    }
                    (true, true) => {
                        taken.push(quote!(let (#one, #two) = #runtime::optional_parts(#ident)?;));
                        args.extend([quote!(#one.as_ref()), quote!(#two.as_ref())]);
                    }
                }
                dtypes.push(if is_complex { quote!(#ident: #complex) } else { quote!(#ident: #dtype) });
            } else if let Some(attr) = parts.attrs.iter().find(|attr| attr.ident == *ident) {
                params.push(composite::attribute(attr));
                args.push(quote!(#ident));
            }
        }
        let mut outputs = parts.outputs.iter();
        let mut results = vec![];
        let (mut returned, mut joined) = (vec![], vec![]);
        for (k, ty) in self.returned.iter().enumerate() {
            let named = self.clauses.dtype.as_ref().and_then(|dtype| dtype.outputs.get(k)?.0.clone());
            let name = named.or_else(|| self.output_of_shape(k)).unwrap_or_else(|| output(self.returned.len(), k));
            let (one, two) = (format_ident!("__result{k}"), format_ident!("__other{k}"));
            results.push(one.clone());
            let Some(output) = outputs.next() else { continue };
            if Complex::is_complex(ty) {
                outputs.next();
                results.push(two.clone());
                returned.push(quote!(#name: _));
                joined.push(quote!(#runtime::joined(&#one, &#two)?));
            } else {
                let dtype = match output.elem {
                    Elem::Generic(_) => quote!(_),
                    elem => composite::dtype(parts, elem),
                };
                returned.push(quote!(#name: #dtype));
                joined.push(one.to_token_stream());
            }
        }
        let floats = DTypeSet::of(&[DType::F32, DType::F64]);
        let words = |dtypes: DTypeSet| dtypes.iter().map(|d| format_ident!("{}", d.rust_name())).collect::<Vec<_>>();
        let mut bounds: Vec<TokenStream> = parts
            .generics
            .iter()
            .filter(|g| {
                parts.inputs.iter().any(|input| {
                    let is_own = self.params.iter().flatten().any(|(ident, _)| *ident == input.ident);
                    is_own && matches!(input.elem, Elem::Generic(i) if parts.generics[i].ident == g.ident)
                })
            })
            .map(|g| {
                // Half floats have no complex dtype.
                let is_part = g.dtypes.iter().any(|d| d.is_differentiable());
                let dtypes = words(if is_part { g.dtypes.intersection(floats) } else { g.dtypes });
                let ident = &g.ident;
                quote!(#ident: #(#dtypes)|*)
            })
            .collect();
        if self.complex_params().next().is_some() {
            let real =
                parts.generics.iter().find(|g| g.is_differentiable()).map_or(floats, |g| g.dtypes.intersection(floats));
            let pairs = [(DType::F32, DType::C64), (DType::F64, DType::C128)];
            let both = pairs.iter().filter(|(part, _)| real.contains(*part)).flat_map(|(part, whole)| [*part, *whole]);
            let dtypes = words(DTypeSet::of(&both.collect::<Vec<_>>()));
            bounds.push(quote!(#complex: #(#dtypes)|*));
        }
        let (name, aliases) = (self.name(function), &self.clauses.aliases);
        let since = self.clauses.since.unwrap_or(1);
        let own = self.joined(&CLAUSES);
        let bounds = (!bounds.is_empty()).then(|| quote!(where #(#bounds),*));
        let attr = quote! {
            name = #name, alias = [#(#aliases),*], since = #since, #own
            dtype = (#(#dtypes),*) -> (#(#returned),*) #bounds
        };
        let (ident, vis, inner) = (composite::function(&function.sig.ident), &function.vis, &parts.type_name);
        let (docs, returns) = (composite::docs(function), composite::returned(joined.len(), runtime));
        let (results, joined) = match (&results[..], &joined[..]) {
            ([result], [value]) => (result.to_token_stream(), value.clone()),
            (results, [value]) => (quote!((#(#results),*)), value.clone()),
            (results, values) => (quote!((#(#results),*)), quote!((#(#values),*))),
        };
        let definition = quote! {
            #(#docs)*
            #[allow(clippy::too_many_arguments, clippy::needless_question_mark, non_snake_case)]
            #vis fn #ident(#(#params),*) -> #runtime::Result<#returns> {
                #(#taken)*
                let #results = #inner::call(#(#args),*)?;
                ::core::result::Result::Ok(#joined)
            }
        };
        let definition = diag.ok(syn::parse2(definition)).unwrap_or_else(|| function.clone());
        (attr, definition)
    }

    /// The name of an output in the `shape` clause.
    fn output_of_shape(&self, at: usize) -> Option<Ident> {
        let name = self.clauses.shape.as_ref()?.outputs.get(at)?.name.clone()?;
        Some(format_ident!("{name}"))
    }
}
