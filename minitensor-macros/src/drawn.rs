//! Parameters that the engine computes: `#[position(axis)] i: T`, `#[uniform] u: T`, `#[normal] z: T`.
//!
//! Such a definition becomes two ops. The first takes these numbers as tensors, like any other op. The second has the name of the
//! definition; its body over whole tensors makes the numbers and calls the first.

use minitensor_schema::grammar::{Mode, UNUSED_TANGENT};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::{Attribute, Expr, FnArg, Ident, ItemFn, Meta, Pat, Type};

use crate::ast::{Arity, Elem, Gradient, Input, Op, Slot, spelling, text};
use crate::composite;
use crate::diag::{Diag, messages};
use crate::dtype::Bound;
use crate::hygiene::quote;
use crate::parse::clause::starts_clause;
use crate::parse::{Clauses, option};

/// The parameters of a definition that the engine computes.
pub struct Drawn {
    params: Vec<Param>,
    /// The words of the clauses, with their tokens.
    clauses: Vec<(String, TokenStream)>,
}

struct Param {
    ident: Ident,
    kind: Kind,
}

enum Kind {
    Position(Box<Expr>),
    Uniform,
    Normal,
}

/// The attributes of parameters.
pub const WORDS: [&str; 3] = ["position", "uniform", "normal"];
/// The clauses that both ops have. The one that makes the numbers checks shapes and conditions, too, so that errors have its name.
const OF_BOTH: [&str; 4] = ["crate", "shape", "where", "linear"];
/// The clauses that only the op that makes the numbers has. The other op takes tensors whose last axis is the chosen one.
const OF_COMPOSITE: [&str; 1] = ["axis"];
/// The clauses that no such op can have.
const OF_NONE: [&str; 3] = ["inplace", "symmetric", "replaces"];

impl Drawn {
    /// Takes the attributes of these parameters from a function. `None` if there are none.
    pub fn take(attr: &TokenStream, function: &mut ItemFn, diag: &mut Diag) -> Option<Drawn> {
        let variables: Vec<(String, String)> = function
            .sig
            .generics
            .type_params()
            .map(|param| (text(&param.ident), param.bounds.first().map_or_else(String::new, spelling)))
            .collect();
        let integers: Vec<Ident> =
            typed(function).filter(|(_, ty)| spelling(ty) == "i64").map(|(ident, _)| ident).collect();
        let mut params = vec![];
        let mut optional: Option<Ident> = None;
        for arg in &mut function.sig.inputs {
            let FnArg::Typed(arg) = arg else { continue };
            let Pat::Ident(pat) = &*arg.pat else { continue };
            let is_drawn = |attr: &Attribute| WORDS.iter().any(|word| attr.path().is_ident(word));
            let attrs: Vec<Attribute> = arg.attrs.extract_if(.., |attr| is_drawn(attr)).collect();
            let Some(first) = attrs.first() else {
                if option(&arg.ty).is_some() {
                    optional = Some(pat.ident.clone());
                }
                continue;
            };
            let word = spelling(first.path());
            if let Some(second) = attrs.get(1) {
                diag.error(second, &messages::DRAWN_TWICE, &[&pat.ident, &word, &spelling(second.path())]);
            }
            if let Some(before) = &optional {
                diag.error(&pat.ident, &messages::DRAWN_ORDER, &[&pat.ident, before, before]);
            }
            match variables.iter().find(|(name, _)| *name == spelling(&arg.ty)) {
                None => diag.error(&arg.ty, &messages::DRAWN_TYPE, &[&word, &spelling(&arg.ty)]),
                Some((_, bound))
                    if Bound::named(bound).is_some_and(|bound| bound.is_of_rows())
                        && first.parse_args::<Expr>().is_ok_and(|axis| spelling(&axis) == "-1") =>
                {
                    diag.error(first, &messages::POSITION_IN_ROW, &[]);
                }
                Some((name, bound))
                    if word != "position" && !Bound::named(bound).is_some_and(|bound| bound.is_of_floats()) =>
                {
                    diag.error(&arg.ty, &messages::DRAWN_FLOAT, &[name, bound, name]);
                }
                Some(_) => {}
            }
            let kind = match (&*word, first.parse_args::<Expr>()) {
                ("position", Ok(axis)) if is_integer(&axis, &integers) => Kind::Position(Box::new(axis)),
                ("position", _) => {
                    diag.error(first, &messages::POSITION_SYNTAX, &[]);
                    continue;
                }
                _ if !matches!(first.meta, Meta::Path(_)) => {
                    diag.error(first, &messages::DRAWN_ARGUMENTS, &[&word]);
                    continue;
                }
                ("uniform", _) => Kind::Uniform,
                _ => Kind::Normal,
            };
            params.push(Param { ident: pat.ident.clone(), kind });
        }
        if params.is_empty() {
            return None;
        }
        for (ident, ty) in typed(function).filter(|(_, ty)| matches!(ty, Type::Reference(r) if r.mutability.is_some()))
        {
            diag.error(ty, &messages::DRAWN_MUTATES, &[&ident]);
        }
        // An axis may be all that an attribute is for.
        let axes =
            params.iter().filter_map(|param| if let Kind::Position(axis) = &param.kind { Some(axis) } else { None });
        let axes: TokenStream = axes.map(|axis| quote!(#axis;)).collect();
        for arg in &mut function.sig.inputs {
            if let FnArg::Typed(arg) = arg
                && let Pat::Ident(pat) = &*arg.pat
                && crate::body::mentions(axes.clone(), &|name| *name == pat.ident)
            {
                arg.attrs.push(syn::parse_quote!(#[allow(unused_variables)]));
            }
        }
        let drawn = Drawn { params, clauses: clauses(attr.clone()) };
        for (_, tokens) in drawn.clauses.iter().filter(|(word, _)| word == "shape") {
            for Param { ident, kind } in &drawn.params {
                let word = match kind {
                    Kind::Position(_) => "position",
                    Kind::Uniform => "uniform",
                    Kind::Normal => "normal",
                };
                if let Some(named) = named_in(tokens, ident) {
                    diag.error(named, &messages::DRAWN_SHAPE, &[ident, &word]);
                }
            }
        }
        for (word, tokens) in drawn.clauses.iter().filter(|(word, _)| OF_NONE.contains(&word.as_str())) {
            diag.error(tokens, &messages::DRAWN_CLAUSE, &[word]);
        }
        Some(drawn)
    }

    fn is_random(&self) -> bool {
        self.params.iter().any(|param| !matches!(param.kind, Kind::Position(_)))
    }

    /// The clauses of the op that takes the numbers. In a `shape` clause, a position is a number for each row.
    pub fn clauses(&self) -> TokenStream {
        let inputs = self.params.iter().map(|Param { ident, kind }| match kind {
            Kind::Position(_) => quote!(, #ident: [..]),
            _ => quote!(, #ident: [.., __n]),
        });
        let inputs: TokenStream = inputs.collect();
        self.joined(|word| !OF_COMPOSITE.contains(&word), &inputs)
    }

    /// These clauses, with more inputs in the `shape` clause. `__n` is the dimension of the row.
    fn joined(&self, is_chosen: impl Fn(&str) -> bool, inputs: &TokenStream) -> TokenStream {
        let chosen = self.clauses.iter().filter(|(word, _)| is_chosen(word));
        let each = chosen.map(|(word, tokens)| match word.as_str() {
            "shape" => with_inputs(tokens, inputs),
            "backward" => self.with_zeros(tokens.clone()),
            _ => tokens.clone(),
        });
        quote!(#(#each),*)
    }

    /// A `backward` clause in which `at: none` is `at: 0 * at` for a position. The engine makes positions from a tensor of the call, so they
    /// have a history.
    fn with_zeros(&self, clause: TokenStream) -> TokenStream {
        let is_position = |name: &Ident| {
            self.params.iter().any(|param| param.ident == *name && matches!(param.kind, Kind::Position(_)))
        };
        let mut named: Option<Ident> = None;
        let each = clause.into_iter().map(|token| match token {
            TokenTree::Group(group) => {
                let mut zeros = Group::new(group.delimiter(), self.with_zeros(group.stream()));
                zeros.set_span(group.span());
                TokenTree::Group(zeros).into()
            }
            TokenTree::Ident(word) if word == "none" && named.as_ref().is_some_and(is_position) => quote!(0 * #named),
            TokenTree::Ident(name) => {
                named = Some(name.clone());
                TokenTree::Ident(name).into()
            }
            token => {
                if !matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':') {
                    named = None;
                }
                TokenStream::from(token)
            }
        });
        each.collect()
    }

    /// Makes an op the one that takes the numbers.
    pub fn rename(&self, op: &mut Op) {
        if let Gradient::Formula(clause) = &mut op.gradient
            && clause.tree.mode == Mode::Forward
        {
            // The engine makes these numbers from a tensor of the call, so they have a history, and a tangent: zero.
            let is_drawn = |input: &Input| self.params.iter().any(|param| param.ident == input.ident);
            let ignored = clause.tree.given.iter_mut().zip(&op.inputs).filter(|((name, _), _)| name == "_");
            ignored.filter(|(_, input)| is_drawn(input)).for_each(|((name, _), _)| *name = UNUSED_TANGENT.to_owned());
        }
        op.name = composite::name_of_given(&op.name);
        op.aliases.clear();
        op.type_name = composite::type_of_given(op.ident());
    }

    /// The clauses and the function of the op that makes the numbers.
    pub fn composite(
        &self,
        op: &Op,
        clauses: &Clauses,
        runtime: &TokenStream,
        diag: &mut Diag,
    ) -> (TokenStream, ItemFn) {
        let is_drawn = |ident: &Ident| self.params.iter().any(|param| param.ident == *ident);
        let key = Ident::new("key", op.ident().span());
        let (mut params, mut dtypes, mut inputs, mut args) = (vec![], vec![], vec![], vec![]);
        for input in &op.inputs {
            let ident = &input.ident;
            if is_drawn(ident) {
                inputs.push(quote!(::core::option::Option::None));
                args.push(quote!(&#ident));
                continue;
            }
            if *ident == key && self.is_random() {
                diag.error(ident, &messages::DRAWN_KEY, &[ident]);
            }
            let dtype = composite::dtype(op, input.elem);
            dtypes.push(quote!(#ident: #dtype));
            args.push(quote!(#ident));
            params.push(composite::tensor(ident, input.arity, runtime));
            inputs.push(match input.arity {
                Arity::Optional => quote!(#ident),
                _ => quote!(::core::option::Option::Some(#ident)),
            });
        }
        if params.is_empty() {
            diag.error(op.ident(), &messages::DRAWN_ALONE, &[op.ident()]);
        }
        let mut shape_inputs = TokenStream::new();
        let mut given = quote!(::core::option::Option::None);
        if self.is_random() {
            params.push(composite::tensor(&key, Arity::Optional, runtime));
            given = key.to_token_stream();
            dtypes.push(quote!(#key: u64));
            shape_inputs = quote!(, #key: [2]);
        }
        for slot in &op.params {
            let Slot::Attr(i) = *slot else { continue };
            let attr = &op.attrs[i];
            let ident = &attr.ident;
            if *ident == key && self.is_random() {
                diag.error(ident, &messages::DRAWN_KEY, &[ident]);
            }
            params.push(composite::attribute(attr));
            args.push(ident.to_token_stream());
        }
        let returned: Vec<TokenStream> = match &clauses.dtype {
            Some(dtype) => dtype
                .outputs
                .iter()
                .map(|(name, ty)| name.as_ref().map_or_else(|| quote!(#ty), |name| quote!(#name: #ty)))
                .collect(),
            None => op.outputs.iter().map(|output| composite::dtype(op, output.elem)).collect(),
        };
        let bounds = op.generics.iter().map(|generic| {
            let (ident, dtypes) =
                (&generic.ident, generic.dtypes.iter().map(|dtype| format_ident!("{}", dtype.rust_name())));
            quote!(#ident: #(#dtypes)|*)
        });
        let own = self.joined(|word| OF_BOTH.contains(&word) || OF_COMPOSITE.contains(&word), &shape_inputs);
        let own = if own.is_empty() { own } else { quote!(#own,) };
        let Op { name, aliases, since, .. } = op;
        let attr = quote! {
            name = #name, alias = [#(#aliases),*], since = #since, #own
            dtype = (#(#dtypes),*) -> (#(#returned),*) where #(#bounds),*
        };
        let draws = self.params.iter().map(|Param { ident, kind }| {
            let variable = op.inputs.iter().find(|input| input.ident == *ident).map_or(0, |input| match input.elem {
                Elem::Generic(i) => i,
                _ => 0,
            });
            match kind {
                Kind::Position(axis) => quote!(let #ident = drawn.position(#variable, #axis)?;),
                Kind::Uniform => quote!(let #ident = drawn.uniform(#variable)?;),
                Kind::Normal => quote!(let #ident = drawn.normal(#variable)?;),
            }
        });
        let count = self.params.iter().filter(|param| !matches!(param.kind, Kind::Position(_))).count();
        let (name, vis) = (composite::function(op.ident()), &op.function.vis);
        let inner = composite::type_of_given(op.ident());
        let (docs, returns) = (composite::docs(&op.function), composite::returned(op.returned().count(), runtime));
        let function = quote! {
            #(#docs)*
            #[allow(clippy::too_many_arguments, non_snake_case)]
            #vis fn #name(#(#params),*) -> #runtime::Result<#returns> {
                let mut drawn = #runtime::Drawn::new(&#inner::op(), &[#(#inputs),*], #given, #count)?;
                #(#draws)*
                #inner::call(#(#args),*)
            }
        };
        let function = diag.ok(syn::parse2(function)).unwrap_or_else(|| op.function.clone());
        (attr, function)
    }
}

/// Removes the attributes of these parameters, which the compiler does not know.
pub fn strip(function: &mut ItemFn) {
    for arg in &mut function.sig.inputs {
        if let FnArg::Typed(arg) = arg {
            arg.attrs.retain(|attr| !WORDS.iter().any(|word| attr.path().is_ident(word)));
        }
    }
}

/// The parameters that are plain names, with their types.
fn typed(function: &ItemFn) -> impl Iterator<Item = (Ident, Type)> + '_ {
    function.sig.inputs.iter().filter_map(|arg| match arg {
        FnArg::Typed(arg) => match &*arg.pat {
            Pat::Ident(pat) => Some((pat.ident.clone(), (*arg.ty).clone())),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    })
}

/// Whether an axis may be an integer: a name alone must be that of an attribute of type `i64`.
fn is_integer(axis: &Expr, integers: &[Ident]) -> bool {
    match axis {
        Expr::Path(path) => path
            .path
            .get_ident()
            .is_none_or(|name| integers.contains(name) || name.to_string().chars().all(|c| !c.is_lowercase())),
        Expr::Lit(literal) => matches!(literal.lit, syn::Lit::Int(_)),
        _ => true,
    }
}

/// The clauses of an attribute. A wrong clause is reported where all are parsed.
pub fn clauses(attr: TokenStream) -> Vec<(String, TokenStream)> {
    let mut clauses: Vec<(String, TokenStream)> = vec![];
    let tokens: Vec<TokenTree> = attr.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let is_comma = matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
        if is_comma && starts_clause(&tokens[at + 1..]) {
            continue;
        }
        let is_first = at == 0
            || matches!(&tokens[at - 1], TokenTree::Punct(punct) if punct.as_char() == ',')
                && starts_clause(&tokens[at..]);
        if is_first {
            clauses.push((token.to_string(), TokenStream::new()));
        }
        if let Some((_, tokens)) = clauses.last_mut() {
            tokens.extend([token.clone()]);
        }
    }
    clauses
}

/// The name of an input where a `shape` clause mentions it.
fn named_in(clause: &TokenStream, name: &Ident) -> Option<Ident> {
    let inputs = clause.clone().into_iter().find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => Some(group.stream()),
        _ => None,
    });
    inputs?.into_iter().find_map(|token| match token {
        TokenTree::Ident(word) if word == *name => Some(word),
        _ => None,
    })
}

/// A `shape` clause with more inputs, in which `__n` is the dimension of the row.
fn with_inputs(clause: &TokenStream, inputs: &TokenStream) -> TokenStream {
    let mut is_done = false;
    let each = clause.clone().into_iter().map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis && !is_done => {
            is_done = true;
            let own = group.stream();
            let row = row(&own);
            let inputs = inputs.clone().into_iter().map(|token| replaced(token, row.as_ref()));
            let mut all = own;
            all.extend(inputs);
            let mut longer = Group::new(Delimiter::Parenthesis, all);
            longer.set_span(group.span());
            TokenTree::Group(longer)
        }
        other => other,
    });
    each.collect()
}

/// The dimension of the first row `[.., n]`.
fn row(inputs: &TokenStream) -> Option<TokenTree> {
    inputs.clone().into_iter().find_map(|token| match token {
        TokenTree::Group(group) => {
            group.stream().into_iter().find(|token| matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_)))
        }
        _ => None,
    })
}

fn replaced(token: TokenTree, row: Option<&TokenTree>) -> TokenTree {
    match token {
        TokenTree::Group(group) => {
            let each = group.stream().into_iter().map(|token| replaced(token, row));
            TokenTree::Group(Group::new(group.delimiter(), each.collect()))
        }
        TokenTree::Ident(ident) if ident == "__n" => row.cloned().unwrap_or(TokenTree::Ident(ident)),
        other => other,
    }
}
