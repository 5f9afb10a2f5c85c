//! Ops with complex and real numbers: parameters and results of the type `Complex<T>`.
//!
//! Such a definition becomes a function and two ops. The function is that of the definition, lowered like a helper. The first op takes
//! and returns the parts of complex numbers as tensors of real ones, like any other op, and calls the function. The second has the name
//! of the definition; its body over whole tensors takes complex tensors apart, calls the first op, and joins its results.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::{FnArg, Ident, ItemFn, Pat, ReturnType, Type, parse_quote};

use crate::ast::{Arity, Elem, Op, spelling, text};
use crate::diag::{Diag, messages};
use crate::drawn;
use crate::dtype::{DType, DTypeSet};
use crate::hygiene::quote;
use crate::parse::clause::{Clauses, DTypes};
use crate::parse::{clause, option, variable_of_complex};

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

/// The clauses that only the op on complex tensors has.
const OF_COMPLEX: [&str; 5] = ["crate", "where", "shape", "backward", "dtype"];
/// The clauses that the op on parts has.
const OF_PARTS: [&str; 4] = ["crate", "where", "precompiled", "tune"];
/// The clauses that no such op can have.
const OF_NONE: [&str; 3] = ["axis", "inplace", "program"];

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
        let mut is_complex = false;
        for ty in &types {
            let inner = option(ty).unwrap_or(ty);
            match variable_of_complex(inner, &generics) {
                Some(i) if !matches!(generics[i].bound.name, "Float" | "Row") => {
                    let name = text(&generics[i].ident);
                    diag.error(ty, &messages::COMPLEX_PART, &[&spelling(inner), &name]);
                }
                Some(_) => is_complex = true,
                None if crate::body::mentions(ty.to_token_stream(), &|name| name == "Complex") => {
                    let machine = ["Complex<f32>", "Complex<f64>"].contains(&spelling(inner).as_str());
                    match generics.iter().any(|g| crate::body::mentions(ty.to_token_stream(), &|name| *name == g.ident))
                    {
                        true if !spelling(ty).contains(['&', '[']) => {
                            diag.error(ty, &messages::COMPLEX_TYPE, &[&spelling(ty)]);
                        }
                        false if machine && !generics.is_empty() => {
                            diag.error(ty, &messages::COMPLEX_MACHINE, &[&spelling(inner)]);
                        }
                        _ => {}
                    }
                }
                None => {}
            }
        }
        if !is_complex || !diag.is_empty() {
            return None;
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
                let name = generics.first().map_or_else(String::new, |g| text(&g.ident));
                diag.error(attr, &messages::COMPLEX_DRAWN, &[&name, &spelling(attr.path())]);
            }
        }
        Some(Complex { params, returned, clauses, words })
    }

    /// The name of the op on parts.
    pub fn name_of_parts(&self, function: &ItemFn) -> String {
        let name = self.clauses.name.as_ref().map_or_else(|| text(&function.sig.ident), |name| name.value());
        format!("given::{}", name.replace("::", "_"))
    }

    fn is_complex(ty: &Type) -> bool {
        let ty = option(ty).unwrap_or(ty);
        spelling(ty).starts_with("Complex<")
    }

    fn joined(&self, words: &[&str]) -> TokenStream {
        let chosen = self.words.iter().filter(|(word, _)| words.contains(&word.as_str()));
        let tokens = chosen.map(|(_, tokens)| tokens);
        quote!(#(#tokens,)*)
    }

    fn complex_params(&self) -> impl Iterator<Item = &Ident> {
        self.params.iter().flatten().filter(|(_, ty)| Complex::is_complex(ty)).map(|(ident, _)| ident)
    }

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
        let others = self.joined(&OF_PARTS);
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
        let dtype_of = |elem: Elem| match elem {
            Elem::Generic(i) => parts.generics[i].ident.to_token_stream(),
            Elem::Fixed(dtype) => format_ident!("{}", dtype.rust_name()).to_token_stream(),
            _ => quote!(bool),
        };
        for (ident, ty) in self.params.iter().flatten() {
            let [re, im] = names(ident);
            let is_complex = Complex::is_complex(ty);
            let find = if is_complex { &re } else { ident };
            if let Some(input) = parts.inputs.iter().find(|input| input.ident == *find) {
                let is_optional = input.arity == Arity::Optional;
                params.push(match is_optional {
                    true => quote!(#ident: ::core::option::Option<&#runtime::Tensor>),
                    false => quote!(#ident: &#runtime::Tensor),
                });
                let (dtype, [one, two]) =
                    (dtype_of(input.elem), [&re, &im].map(|name| format_ident!("__{}", text(name))));
                match (is_complex, is_optional) {
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
                let ty = &attr.ty;
                let default = attr.default.as_ref().map(|default| quote!(#[default = #default]));
                params.push(match attr.optional {
                    true => quote!(#default #ident: ::core::option::Option<#ty>),
                    false => quote!(#default #ident: #ty),
                });
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
                let dtype = if let Elem::Generic(_) = output.elem { quote!(_) } else { dtype_of(output.elem) };
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
        let (name, aliases) = match &self.clauses.name {
            Some(name) => (name.value(), &self.clauses.aliases),
            None => (text(&function.sig.ident), &self.clauses.aliases),
        };
        let since = self.clauses.since.unwrap_or(1);
        let own: Vec<&str> = OF_COMPLEX.iter().copied().filter(|word| *word != "dtype").collect();
        let own = self.joined(&own);
        let bounds = (!bounds.is_empty()).then(|| quote!(where #(#bounds),*));
        let attr = quote! {
            name = #name, alias = [#(#aliases),*], since = #since, #own
            dtype = (#(#dtypes),*) -> (#(#returned),*) #bounds
        };
        let (ident, vis, inner) =
            (format_ident!("__{}_op", text(&function.sig.ident)), &function.vis, &parts.type_name);
        let docs = function.attrs.iter().filter(|attr| attr.path().is_ident("doc"));
        let returns = match joined.len() {
            1 => quote!(#runtime::Tensor),
            n => {
                let each = std::iter::repeat_n(quote!(#runtime::Tensor), n);
                quote!((#(#each),*))
            }
        };
        let (results, joined) = match (&results[..], &joined[..]) {
            ([result], [value]) => (result.to_token_stream(), value.clone()),
            (results, [value]) => (quote!((#(#results),*)), value.clone()),
            (results, values) => (quote!((#(#results),*)), quote!((#(#values),*))),
        };
        let composite = quote! {
            #(#docs)*
            #[allow(clippy::too_many_arguments, non_snake_case)]
            #vis fn #ident(#(#params),*) -> #runtime::Result<#returns> {
                #(#taken)*
                let #results = #inner::call(#(#args),*)?;
                ::core::result::Result::Ok(#joined)
            }
        };
        let composite = diag.ok(syn::parse2(composite)).unwrap_or_else(|| function.clone());
        (attr, composite)
    }

    /// The name of an output in the `shape` clause.
    fn output_of_shape(&self, at: usize) -> Option<Ident> {
        let name = self.clauses.shape.as_ref()?.outputs.get(at)?.name.clone()?;
        Some(format_ident!("{name}"))
    }
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
