//! Ops with complex and real numbers: parameters and results of the type `Complex<T>`.
//!
//! Such a definition becomes a function and two ops. The function is that of the definition, lowered like a helper. The first op takes
//! and returns the parts of complex numbers as tensors of real ones, like any other op, and calls the function. The second has the name
//! of the definition; its body over whole tensors takes complex tensors apart, calls the first op, and joins its results.

mod parts;
mod tensors;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::{FnArg, Ident, ItemFn, Pat, ReturnType, Type, parse_quote};

use crate::ast::{Generic, spelling, text};
use crate::composite;
use crate::diag::{Diag, messages};
use crate::drawn;
use crate::hygiene::quote;
use crate::parse::clause::Clauses;
use crate::parse::{self, clause, option, variable_of_complex};

/// The complex numbers of a definition.
pub struct Complex {
    /// The parameters of the function. `None` for one that is not a plain name.
    params: Vec<Option<(Ident, Type)>>,
    /// The types of the results.
    returned: Vec<Type>,
    /// The clauses, with their tokens by word.
    clauses: Clauses,
    words: Vec<(String, TokenStream)>,
}

/// The clauses that no such op can have.
const OF_NONE: [&str; 3] = ["inplace", "program", "tune"];

impl Complex {
    /// The complex numbers of a function. `None` if there are none, or if a mistake is reported elsewhere.
    pub fn of(attr: &TokenStream, function: &ItemFn, diag: &mut Diag) -> Option<Complex> {
        let generics = crate::parse::helper::variables(function).0;
        let mut types = vec![];
        let params = function.sig.inputs.iter().map(|arg| match arg {
            FnArg::Typed(arg) => {
                types.push((*arg.ty).clone());
                let Pat::Ident(pat) = &*arg.pat else { return None };
                Some((pat.ident.clone(), (*arg.ty).clone()))
            }
            FnArg::Receiver(_) => None,
        });
        let params: Vec<_> = params.collect();
        let returned: Vec<Type> = match &function.sig.output {
            ReturnType::Default => vec![],
            ReturnType::Type(_, ty) => match &**ty {
                Type::Tuple(tuple) => tuple.elems.iter().cloned().collect(),
                ty => vec![ty.clone()],
            },
        };
        types.extend(returned.iter().cloned());
        let has_complex = check_types(&types, &generics, diag);
        if !has_complex || !diag.is_empty() {
            return None;
        }
        let optional = params.iter().flatten().find(|(_, ty)| option(ty).is_some() && Complex::is_complex(ty));
        if let Some((before, _)) = optional {
            let after = params.iter().flatten().skip_while(|(ident, _)| ident != before);
            let tensors = after.filter(|(_, ty)| option(ty).is_none() && parse::is_tensor(ty, &generics));
            for (ident, _) in tensors {
                diag.error(ident, &messages::REQUIRED_AFTER_OPTIONAL, &[ident, before, ident, before]);
            }
        }
        let clauses = clause::parse(attr.clone(), diag);
        let words = drawn::clauses(attr.clone());
        for (word, tokens) in words.iter().filter(|(word, _)| OF_NONE.contains(&word.as_str())) {
            diag.error(tokens, &messages::COMPLEX_CLAUSE, &[word]);
        }
        for arg in &function.sig.inputs {
            let FnArg::Typed(arg) = arg else { continue };
            if let Some(attr) = arg.attrs.iter().find(|attr| drawn::WORDS.iter().any(|word| attr.path().is_ident(word)))
            {
                diag.error(attr, &messages::COMPLEX_DRAWN, &[&spelling(attr.path())]);
            }
        }
        Some(Complex { params, returned, clauses, words })
    }

    fn name(&self, function: &ItemFn) -> String {
        self.clauses.name.as_ref().map_or_else(|| text(&function.sig.ident), |name| name.value())
    }

    /// The name of the op on parts.
    pub fn name_of_parts(&self, function: &ItemFn) -> String {
        composite::name_of_given(&self.name(function))
    }

    fn is_complex(ty: &Type) -> bool {
        parse::complex_part(option(ty).unwrap_or(ty)).is_some()
    }

    fn joined(&self, words: &[&str]) -> TokenStream {
        let chosen = self.words.iter().filter(|(word, _)| words.contains(&word.as_str()));
        let tokens = chosen.map(|(_, tokens)| tokens);
        quote!(#(#tokens,)*)
    }

    fn complex_params(&self) -> impl Iterator<Item = &Ident> {
        self.params.iter().flatten().filter(|(_, ty)| Complex::is_complex(ty)).map(|(ident, _)| ident)
    }
}

/// Checks the types with `Complex`. Whether one is that of complex numbers over a dtype variable.
fn check_types(types: &[Type], generics: &[Generic], diag: &mut Diag) -> bool {
    let mut variable: Option<usize> = None;
    for ty in types {
        let inner = option(ty).unwrap_or(ty);
        let mentions = |name: &dyn Fn(&Ident) -> bool| crate::body::mentions(ty.to_token_stream(), name);
        match variable_of_complex(inner, generics) {
            Some(i) if !generics[i].bound.is_of_floats() => {
                diag.error(ty, &messages::COMPLEX_PART, &[&spelling(inner), &generics[i].ident]);
            }
            Some(i) => {
                let first = *variable.get_or_insert(i);
                if first != i {
                    diag.error(ty, &messages::COMPLEX_VARIABLES, &[&spelling(inner), &generics[first].ident]);
                }
            }
            None if !mentions(&|name| name == "Complex") => {}
            // That of a cell is reported like any other type.
            None if spelling(ty).contains(['&', '[']) => {}
            None if mentions(&|name| generics.iter().any(|g| g.ident == *name)) => {
                diag.error(ty, &messages::COMPLEX_TYPE, &[&spelling(ty)]);
            }
            None if !generics.is_empty() && ["Complex<f32>", "Complex<f64>"].contains(&spelling(inner).as_str()) => {
                diag.error(ty, &messages::COMPLEX_MACHINE, &[&spelling(inner)]);
            }
            None => {}
        }
    }
    variable.is_some()
}

/// `T` for `Complex<T>`, `Option<T>` for `Option<Complex<T>>`.
fn part(ty: &Type) -> Type {
    let inner = option(ty).unwrap_or(ty);
    let of = crate::parse::complex_part(inner).cloned().unwrap_or_else(|| inner.clone());
    if option(ty).is_some() { parse_quote!(Option<#of>) } else { of }
}

/// `z_real`, `z_imag`
fn names(ident: &Ident) -> [Ident; 2] {
    ["real", "imag"].map(|part| Ident::new(&format!("{}_{part}", text(ident)), ident.span()))
}

/// The name of an output that the definition does not name.
fn output(count: usize, at: usize) -> Ident {
    if count == 1 { format_ident!("out") } else { format_ident!("out{at}") }
}
