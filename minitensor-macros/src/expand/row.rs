//! Row bodies: the function as a `row::Body`, its passes over memory and those of its gradient, its program.

use minitensor_schema::grammar::{NamedDims, Shape};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::{Ident, Type, parse_quote};

use super::{attr, stem, table};
use crate::ast::{Arity, AttrKind, Core, Elem, Gradient, Input, Level, Op, Output, Returns, Role, Slot, text};
use crate::body::levels;
use crate::hygiene::{attribute, flag, input, local, quote};
use crate::source::Clause;

/// The program. If the op is precompiled, also the body and its kernels.
pub fn kernels(op: &Op) -> TokenStream {
    let program = program(op, &of_numbers(op, &quote!(__private::Symbol)));
    if op.precompiled.is_none() {
        return program;
    }
    let run = format_ident!("{}_rows", stem(op));
    let table = table(op, &run, &format_ident!("CellKernel"));
    let body = body(op);
    let (floats, indices) = (positions(op, 0), indices(op, 0));
    let flags = flags(op, 0);
    quote! {
        #body
        unsafe fn #run<__T: __private::ComputedFloat>(
            attrs: &[__private::Attr],
            args: &[__private::CellArg<'_>],
            cells: __private::usize,
        ) -> __private::Result<()> {
            let body = __Body::of(attrs, #flags)?;
            // SAFETY: the caller provides cores as the definition declares.
            unsafe { __private::rows::<__T, _, _, _, _>(&body, args, cells, #floats, #indices) }
        }
        #table
        #program
    }
}

/// The program of the gradient. If the op is precompiled, also the kernels.
pub fn gradient_kernels(op: &Op, vjp: &Op) -> TokenStream {
    let kernels = op.precompiled.as_ref().map(|_| compiled_gradient(op, vjp));
    let (program, forward) = (format_ident!("{}_program", stem(vjp)), format_ident!("{}_program", stem(op)));
    let numbers: Vec<usize> = cotangents(op).map(|(k, _)| k).collect();
    let gives = cotangents(op).map(|(_, o)| o.core.is_along());
    let outputs = super::positions(numbers);
    let variables = floats_of(op).map(|(i, input)| {
        let (kind, at) = match input.core {
            Core::Slice => ("Input", along(op).position(|other| other == i)),
            _ => ("Uniform", floats_of(op).filter(|(_, x)| !x.core.is_along()).position(|(other, _)| other == i)),
        };
        let (kind, at) = (format_ident!("{kind}"), syn::Index::from(at.unwrap_or_default()));
        quote!(__private::Variable::#kind(#at))
    });
    quote! {
        #kernels
        fn #program(attrs: &[__private::Attr]) -> __private::Result<__private::Program> {
            __private::vjp_of_rows(&#forward(attrs)?, #outputs, &[#(#gives),*], &[#(#variables),*])
        }
    }
}

fn compiled_gradient(op: &Op, vjp: &Op) -> TokenStream {
    let run = format_ident!("{}_rows", stem(vjp));
    let table = table(vjp, &run, &format_ident!("CellKernel"));
    let cotangents = op.outputs.len();
    let (floats, indices) = (positions(op, cotangents), indices(op, cotangents));
    let flags = flags(op, cotangents);
    let shared = floats_of(op).map(|(_, input)| !is_batched(op, input));
    quote! {
        unsafe fn #run<__T: __private::ComputedFloat>(
            attrs: &[__private::Attr],
            args: &[__private::CellArg<'_>],
            cells: __private::usize,
        ) -> __private::Result<()> {
            let body = __Body::of(attrs, #flags)?;
            // SAFETY: as above. The cotangents of the outputs are first, the gradients of the inputs last.
            unsafe { __private::rows_vjp::<__T, _, _, _, _>(&body, args, cells, #floats, #indices, [#(#shared),*]) }
        }
        #table
    }
}

/// The gradient as an op. Its inputs are the cotangents of the outputs, then the inputs. Its outputs are the gradients of
/// the inputs.
pub fn vjp(op: &Op) -> Option<super::vjp::Vjp> {
    let shape = op.shape.as_ref()?;
    let mut fresh = super::vjp::fresh_names(op);
    let named = |name: &Ident, dims: &NamedDims| NamedDims { name: Some(text(name)), save: false, ..dims.clone() };
    let mut dims = Shape { inputs: vec![], outputs: vec![] };
    let mut inputs = vec![];
    for (k, output) in cotangents(op) {
        let ident = fresh(&output.ident);
        dims.inputs.push(named(&ident, shape.output(&text(&output.ident), k)?));
        let (elem, core) = (output.elem, output.core);
        inputs.push(Input { ident, ty: parse_quote!(_), elem, arity: Arity::One, mutated: false, core });
    }
    for input in &op.inputs {
        inputs.push(input.clone());
        dims.inputs.push(shape.input(&text(&input.ident))?.clone());
    }
    let mut outputs = vec![];
    for (_, input) in floats_of(op) {
        let ident = fresh(&input.ident);
        dims.outputs.push(named(&ident, shape.input(&text(&input.ident))?));
        outputs.push(Output { ident, elem: input.elem, role: Role::Returned, core: input.core });
    }
    let returns = if outputs.len() == 1 { Returns::One } else { Returns::Tuple };
    let mut function = op.function.clone();
    function.sig.ident = format_ident!("__{}_vjp", text(op.ident()));
    let wrt = floats_of(op).map(|(i, _)| i).collect();
    let op = Op {
        type_name: op.type_name.clone(),
        function,
        level: Level::Row,
        name: format!("{}.vjp", op.name),
        aliases: vec![],
        doc: format!("The vector-Jacobian product of `{}`.", op.name),
        since: op.since,
        generics: op.generics.clone(),
        params: (0..inputs.len()).map(Slot::Input).chain((0..op.attrs.len()).map(Slot::Attr)).collect(),
        inputs,
        attrs: op.attrs.clone(),
        outputs,
        returns,
        shape: Some(Clause { tree: dims, source: shape.source.clone() }),
        predicates: vec![],
        axis: None,
        combine: None,
        properties: Vec::new(),
        gradient: Gradient::NotNeeded,
        inplace: None,
        precompiled: op.precompiled.clone(),
        program: None,
    };
    Some(super::vjp::Vjp { op, wrt })
}

fn floats_of(op: &Op) -> impl Iterator<Item = (usize, &Input)> {
    op.inputs.iter().enumerate().filter(|(_, i)| matches!(i.elem, Elem::Generic(_)))
}

fn indices_of(op: &Op) -> impl Iterator<Item = (usize, &Input)> {
    op.inputs.iter().enumerate().filter(|(_, i)| !matches!(i.elem, Elem::Generic(_)))
}

/// The inputs with one value for each element of a row.
fn along(op: &Op) -> impl Iterator<Item = usize> {
    (0..op.inputs.len()).filter(|i| op.inputs[*i].core.is_along())
}

/// The outputs that have a cotangent.
fn cotangents(op: &Op) -> impl Iterator<Item = (usize, &Output)> {
    op.outputs.iter().enumerate().filter(|(_, o)| matches!(o.elem, Elem::Generic(_)))
}

fn is_batched(op: &Op, input: &Input) -> bool {
    op.shape.as_ref().and_then(|s| s.input(&text(&input.ident))).is_none_or(|named| named.dims.batch)
}

/// `[0, 2]`: the positions of float inputs among the arguments.
fn positions(op: &Op, shift: usize) -> TokenStream {
    let all = floats_of(op).map(|(i, _)| syn::Index::from(i + shift));
    quote!([#(#all),*])
}

/// `[(1, "target")]`: the positions and names of the index inputs.
fn indices(op: &Op, shift: usize) -> TokenStream {
    let all = indices_of(op).map(|(i, input)| {
        let (at, name) = (syn::Index::from(i + shift), text(&input.ident));
        quote!((#at, #name))
    });
    quote!([#(#all),*])
}

fn optional(op: &Op) -> impl Iterator<Item = (usize, &Input)> {
    op.inputs.iter().enumerate().filter(|(_, i)| i.arity == Arity::Optional)
}

/// The presence of optional inputs.
fn flags(op: &Op, shift: usize) -> TokenStream {
    let each = optional(op).map(|(i, _)| {
        let at = syn::Index::from(i + shift);
        quote!(!__private::is_absent(&args[#at]))
    });
    quote!([#(#each),*])
}

/// The body: a struct whose fields are the attributes.
fn body(op: &Op) -> TokenStream {
    let attrs = quote!(attrs);
    let fields = op.attrs.iter().enumerate().map(|(i, a)| {
        let (ident, mut ty) = (attribute(i), a.ty.clone());
        if let Type::Reference(reference) = &mut ty {
            reference.lifetime = Some(parse_quote!('a));
        }
        if a.optional { quote!(#ident: __private::Option<#ty>) } else { quote!(#ident: #ty) }
    });
    let reads = op.attrs.iter().enumerate().map(|(i, a)| {
        let (ident, read) = (attribute(i), attr::read(a, i, &attrs));
        quote!(#ident: #read)
    });
    let has: Vec<_> = optional(op).map(|(i, _)| flag(i)).collect();
    let count = syn::Index::from(has.len());
    let along = floats_of(op).map(|(_, i)| i.core.is_along());
    let gives: Vec<_> = op.outputs.iter().map(|o| o.core.is_along()).collect();
    let (floats, indices): (Vec<_>, Vec<_>) =
        (floats_of(op).map(|(i, _)| input(i)).collect(), indices_of(op).map(|(i, _)| input(i)).collect());
    let (i, x, o) = (floats.len(), indices.len(), gives.len());
    let levels::Levels { reductions, least, most, runs } = levels::of(op);
    let results: Vec<_> = (0..o).map(|k| local("result", k)).collect();
    let result = result(
        op,
        &of_numbers(op, &quote!(__R)),
        |i| {
            let a = &op.attrs[i];
            let ident = attribute(i);
            match a.kind {
                AttrKind::Float if a.optional => quote!(self.#ident.map(__private::lit::<__R>)),
                AttrKind::Float => quote!(__private::lit::<__R>(self.#ident)),
                _ => quote!(self.#ident),
            }
        },
        |has| quote!(self.#has),
    );
    quote! {
        struct __Body<'a> {
            #(#fields,)*
            #(#has: __private::bool,)*
            _attrs: ::core::marker::PhantomData<&'a ()>,
        }
        impl<'a> __Body<'a> {
            #[allow(unused_variables)]
            fn of(attrs: &'a [__private::Attr], has: [__private::bool; #count]) -> __private::Result<Self> {
                let [#(#has),*] = has;
                __private::Ok(__Body { #(#reads,)* #(#has,)* _attrs: ::core::marker::PhantomData })
            }
        }
        impl __private::RowBody<#i, #x, #o> for __Body<'_> {
            const ALONG: [__private::bool; #i] = [#(#along),*];
            const GIVES: [__private::bool; #o] = [#(#gives),*];
            const REDUCTIONS: __private::usize = #reductions;
            const LEVELS: (__private::usize, __private::usize) = (#least, #most);
            const RUNS: __private::bool = #runs;
            #[inline(always)]
            fn eval<__R: __private::Row>(
                &self,
                [#(#floats),*]: [__R; #i],
                [#(#indices),*]: [__R::Index; #x],
            ) -> [__R; #o] {
                let (#(#results,)*) = { #result };
                [#(#results),*]
            }
        }
    }
}

/// The function for one type of numbers.
fn of_numbers(op: &Op, number: &TokenStream) -> TokenStream {
    let function = op.ident();
    quote!(#function::<#number>)
}

/// The call of a function, with its results as a tuple.
fn result(
    op: &Op,
    function: &impl ToTokens,
    attr: impl Fn(usize) -> TokenStream,
    has: impl Fn(&Ident) -> TokenStream,
) -> TokenStream {
    let args = op.params.iter().filter_map(|slot| match *slot {
        Slot::Input(i) => {
            let ident = input(i);
            match op.inputs[i].arity {
                Arity::Optional => {
                    let has = has(&flag(i));
                    Some(quote!(#has.then_some(#ident)))
                }
                _ => Some(quote!(#ident)),
            }
        }
        Slot::Attr(i) if op.accumulator() == Some(i) => None,
        Slot::Attr(i) => Some(attr(i)),
        Slot::Output(_) => None,
    });
    let call = quote!(#function(#(#args),*));
    match (op.returns, op.outputs.len()) {
        (Returns::One, _) | (Returns::Nothing, 1) => quote!((#call,)),
        _ => call,
    }
}

/// The function that makes the program from a function of rows. The inputs of the program are those along the row. Its uniforms are the numbers
/// for a row, the positions, and then the `f64` attributes.
pub fn program(op: &Op, function: &impl ToTokens) -> TokenStream {
    let (name, attrs) = (format_ident!("{}_program", stem(op)), quote!(attrs));
    let along: Vec<usize> = along(op).collect();
    let number = |(i, _): (usize, &Input)| (!along.contains(&i)).then_some(i);
    let numbers: Vec<usize> = floats_of(op).filter_map(number).chain(indices_of(op).filter_map(number)).collect();
    let masks = along.iter().filter(|i| matches!(op.inputs[**i].elem, Elem::Mask(_))).map(|i| {
        let ident = input(*i);
        quote!(let #ident = __private::Element::truthy(#ident);)
    });
    let masks: Vec<_> = masks.collect();
    let is_uniform = |i: &usize| op.attrs[*i].kind == AttrKind::Float;
    let uniforms: Vec<usize> = (0..op.attrs.len()).filter(is_uniform).collect();
    let spelled = |i: &usize| text(&op.inputs[*i].ident);
    let inputs = along.iter().map(spelled);
    let names = numbers.iter().map(spelled).chain(uniforms.iter().map(|i| text(&op.attrs[*i].ident)));
    let statics = (0..op.attrs.len()).filter(|i| !is_uniform(i)).map(|i| {
        let (ident, read) = (attribute(i), attr::read(&op.attrs[i], i, &attrs));
        quote!(let #ident = #read;)
    });
    let flags = optional(op).enumerate().map(|(k, (i, _))| {
        let (has, at) = (flag(i), op.attrs.len() + k);
        quote!(let #has = __private::attr::<__private::bool>(attrs, #at)?;)
    });
    let given = uniforms.iter().map(|i| attribute(*i));
    let (along, numbers) = (along.iter().map(|i| input(*i)), numbers.iter().map(|i| input(*i)));
    let optional_uniforms = uniforms.iter().filter(|i| op.attrs[**i].optional).map(|i| {
        let ident = attribute(*i);
        quote!(let #ident = __private::given(attrs, #i, #ident);)
    });
    let result = result(
        op,
        function,
        |i| {
            let ident = attribute(i);
            quote!(#ident)
        },
        |has| quote!(#has),
    );
    let outputs = op.outputs.iter().map(|o| text(&o.ident));
    let results: Vec<_> = (0..op.outputs.len()).map(|k| local("output", k)).collect();
    quote! {
        #[allow(unused_variables)]
        fn #name(attrs: &[__private::Attr]) -> __private::Result<__private::Program> {
            #(#statics)* #(#flags)*
            __private::program(&[#(#inputs),*], &[#(#names),*], |inputs, uniforms| {
                let &[#(#along),*] = inputs else { return __private::vec![] };
                let &[#(#numbers,)* #(#given),*] = uniforms else { return __private::vec![] };
                #(#masks)*
                #(#optional_uniforms)*
                let (#(#results,)*) = { #result };
                __private::vec![#(__private::named(#outputs, #results)),*]
            })
        }
    }
}
