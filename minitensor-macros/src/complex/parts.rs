//! The op that takes and returns the parts of complex numbers as tensors of real ones.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::format_ident;
use syn::{FnArg, Ident, ItemFn, Pat, ReturnType, Type, parse_quote};

use super::{Complex, names, output, part};
use crate::ast::text;
use crate::hygiene::quote;
use crate::parse::clause::DTypes;
use crate::parse::option;

/// The clauses that this op has, too.
const CLAUSES: [&str; 3] = ["crate", "where", "precompiled"];

impl Complex {
    /// The clauses and the function of the op on parts.
    pub fn of_parts(&self, function: &ItemFn) -> (TokenStream, ItemFn) {
        let rt = crate::runtime::path(self.clauses.runtime.as_ref());
        let mut own = function.clone();
        own.sig.ident = format_ident!("__{}_parts", text(&function.sig.ident));
        own.sig.inputs = function
            .sig
            .inputs
            .iter()
            .flat_map(|arg| match arg {
                FnArg::Typed(typed) if Complex::is_complex(&typed.ty) => match &*typed.pat {
                    Pat::Ident(pat) => {
                        let ty = part(&typed.ty);
                        names(&pat.ident).map(|name| parse_quote!(#name: #ty)).into_iter().collect()
                    }
                    _ => vec![arg.clone()],
                },
                arg => vec![arg.clone()],
            })
            .collect();
        let args = self.params.iter().flatten().map(|(ident, ty)| {
            let [re, im] = names(ident);
            match (Complex::is_complex(ty), option(ty)) {
                (false, _) => quote!(#ident),
                (true, None) => quote!(#rt::Complex::new(#re, #im)),
                (true, Some(_)) => quote!(#rt::optional_complex(#re, #im)),
            }
        });
        let called = &function.sig.ident;
        let results: Vec<Ident> = (0..self.returned.len()).map(|k| format_ident!("result{k}")).collect();
        let (mut types, mut values): (Vec<Type>, Vec<TokenStream>) = (vec![], vec![]);
        for (ty, result) in self.returned.iter().zip(&results) {
            if Complex::is_complex(ty) {
                types.extend([part(ty), part(ty)]);
                values.extend([quote!(#result.re()), quote!(#result.im())]);
            } else {
                types.push(ty.clone());
                values.push(quote!(#result));
            }
        }
        let (pattern, value) = match &function.sig.output {
            ReturnType::Type(_, ty) if matches!(**ty, Type::Tuple(_)) => {
                (quote!((#(#results),*)), quote!((#(#values),*)))
            }
            _ if values.len() == 1 => (quote!(#(#results)*), quote!(#(#values)*)),
            _ => (quote!(#(#results)*), quote!((#(#values),*))),
        };
        own.sig.output = match (&function.sig.output, &types[..]) {
            (ReturnType::Type(arrow, _), [one]) => ReturnType::Type(*arrow, Box::new(one.clone())),
            (ReturnType::Type(arrow, _), types) => ReturnType::Type(*arrow, parse_quote!((#(#types),*))),
            (output, _) => output.clone(),
        };
        own.block = parse_quote!({
            let #pattern = #called(#(#args),*);
            #value
        });
        let shape = self.words.iter().find(|(word, _)| word == "shape").map(|(_, tokens)| self.shape(tokens));
        let dtype = self.clauses.dtype.as_ref().map(|dtype| self.dtype(dtype));
        let others = self.joined(&CLAUSES);
        (quote!(#others #shape #dtype), own)
    }

    /// The `shape` clause with two parts for each complex number.
    fn shape(&self, clause: &TokenStream) -> TokenStream {
        let mut lists = 0;
        let mut tokens: Vec<TokenTree> = clause.clone().into_iter().collect();
        for token in &mut tokens {
            let TokenTree::Group(group) = token else { continue };
            if group.delimiter() != Delimiter::Parenthesis || lists > 1 {
                continue;
            }
            let is_complex = |at: usize, name: &Ident| match lists {
                0 => self.complex_params().any(|param| param == name),
                _ => self.returned.get(at).is_some_and(Complex::is_complex),
            };
            let doubled = doubled(group.stream(), &is_complex);
            let mut longer = Group::new(Delimiter::Parenthesis, doubled);
            longer.set_span(group.span());
            *token = TokenTree::Group(longer);
            lists += 1;
        }
        // `-> [.., n]`
        if let (1, [only]) = (lists, &self.returned[..])
            && Complex::is_complex(only)
            && let Some(at) =
                tokens.iter().rposition(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == '>'))
            && let Some(TokenTree::Group(dims)) = tokens.get(at + 1).cloned()
        {
            let outputs = quote!(out_real: #dims, out_imag: #dims);
            tokens[at + 1] = TokenTree::Group(Group::new(Delimiter::Parenthesis, outputs));
        }
        let tokens = tokens.into_iter();
        quote!(#(#tokens)*,)
    }

    /// The `dtype` clause with two parts for each complex number.
    fn dtype(&self, clause: &DTypes) -> TokenStream {
        let inputs = clause.inputs.iter().flat_map(|(name, ty)| match Complex::is_complex(ty) {
            true => {
                let ty = part(ty);
                names(name).map(|name| quote!(#name: #ty)).to_vec()
            }
            false => vec![quote!(#name: #ty)],
        });
        let outputs = clause.outputs.iter().enumerate().flat_map(|(k, (name, ty))| {
            let named = |name: Ident, ty: &Type| quote!(#name: #ty);
            let own = name.clone().unwrap_or_else(|| output(self.returned.len(), k));
            match Complex::is_complex(ty) {
                true => names(&own).map(|name| named(name, &part(ty))).to_vec(),
                false => vec![named(own, ty)],
            }
        });
        let bounds = clause.bounds.iter().map(|(variable, types)| quote!(#variable: #(#types)|*));
        let (inputs, outputs): (Vec<_>, Vec<_>) = (inputs.collect(), outputs.collect());
        let bounds: Vec<_> = bounds.collect();
        let rest = (!bounds.is_empty()).then(|| quote!(where #(#bounds),*));
        quote!(dtype = (#(#inputs),*) -> (#(#outputs),*) #rest,)
    }
}

/// A list of named dimensions with two parts for each complex number.
fn doubled(list: TokenStream, is_complex: &dyn Fn(usize, &Ident) -> bool) -> TokenStream {
    let mut items: Vec<Vec<TokenTree>> = vec![vec![]];
    for token in list {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => items.push(vec![]),
            _ => items.last_mut().expect("an item").push(token),
        }
    }
    let each = items.into_iter().filter(|item| !item.is_empty()).enumerate().flat_map(|(at, item)| {
        let name =
            item.iter().find_map(|token| if let TokenTree::Ident(name) = token { Some(name.clone()) } else { None });
        match name {
            Some(name) if is_complex(at, &name) => names(&name)
                .map(|part| {
                    let renamed = item.iter().map(|token| match token {
                        TokenTree::Ident(ident) if *ident == name => TokenTree::Ident(part.clone()),
                        other => other.clone(),
                    });
                    renamed.collect::<TokenStream>()
                })
                .to_vec(),
            _ => vec![item.into_iter().collect()],
        }
    });
    let each: Vec<_> = each.collect();
    quote!(#(#each),*)
}
