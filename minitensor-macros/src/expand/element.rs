//! Element bodies: one loop for every dtype.

use proc_macro2::TokenStream;
use quote::format_ident;
use syn::{Ident, Type};

use super::vjp::Vjp;
use super::{attr, element_type, machine_bounds, positions, stem, table, turbofish};
use crate::ast::{Arity, AttrKind, Attribute, Elem, Generic, Input, Op, Returns, Role, Slot, text};
use crate::hygiene::{attribute, flag, input, local, quote};

/// The loop over elements and the table of its kernels.
pub fn kernels(op: &Op) -> TokenStream {
    let run = format_ident!("{}_loop", stem(op));
    let bounds = machine_bounds(op);
    let variables: Vec<_> = op.generics.iter().map(|g| &g.ident).collect();
    let lifetime = borrows(op).then(|| quote!('a,));
    let elided = borrows(op).then(|| quote!('_,));
    let (declared, given) = fields(op);
    let eval = eval(op);
    let inputs = op.inputs.iter().map(|i| element_type(op, i.elem));
    let outputs = op.outputs.iter().map(|o| element_type(op, o.elem));
    let table = table(op, &run, &format_ident!("ElementKernel"));
    quote! {
        unsafe fn #run<#(#bounds),*>(
            attrs: &[__private::Attr],
            n: __private::usize,
            inputs: &[*const __private::u8],
            outputs: &[*mut __private::u8],
        ) -> __private::Result<()> {
            struct __Loop<#lifetime #(#variables),*> {
                #declared
                _dtypes: ::core::marker::PhantomData<(#(#variables,)*)>,
            }
            impl<#(#bounds),*> __private::Map for __Loop<#elided #(#variables),*> {
                type In = (#(#inputs,)*);
                type Out = (#(#outputs,)*);
                #eval
            }
            let body = __Loop::<#(#variables),*> { #given _dtypes: ::core::marker::PhantomData };
            // SAFETY: the caller provides `n` elements of the dtypes that this loop was chosen for.
            unsafe { __private::map(&body, n, inputs, outputs) };
            __private::Ok(())
        }
        #table
    }
}

/// Whether an attribute is a reference.
fn borrows(op: &Op) -> bool {
    op.attrs.iter().any(|a| matches!(a.ty, Type::Reference(_)))
}

/// The fields of the loop: attributes, and the presence of optional inputs.
fn fields(op: &Op) -> (TokenStream, TokenStream) {
    let attrs = quote!(attrs);
    let first = op.generics.first().map(|g| &g.ident);
    let (mut declared, mut given) = (TokenStream::new(), TokenStream::new());
    for (i, a) in op.attrs.iter().enumerate() {
        let ident = attribute(i);
        let (ty, read) = match (first, a.kind) {
            (Some(variable), AttrKind::Float) => (quote!(#variable), attr::read_uniform(a, i, variable, &attrs)),
            _ => {
                let mut ty = a.ty.clone();
                if let Type::Reference(reference) = &mut ty {
                    reference.lifetime = Some(syn::parse_quote!('a));
                }
                (quote!(#ty), attr::read(a, i, &attrs))
            }
        };
        let ty = if a.optional { quote!(__private::Option<#ty>) } else { ty };
        declared.extend(quote!(#ident: #ty,));
        given.extend(quote!(#ident: #read,));
    }
    for (k, i) in optional(op).enumerate() {
        let (has, at) = (flag(i), syn::Index::from(op.attrs.len() + k));
        declared.extend(quote!(#has: __private::bool,));
        given.extend(quote!(#has: __private::attr::<__private::bool>(attrs, #at)?,));
    }
    (declared, given)
}

/// The positions of optional inputs.
fn optional(op: &Op) -> impl Iterator<Item = usize> {
    (0..op.inputs.len()).filter(|i| op.inputs[*i].arity == Arity::Optional)
}

/// One iteration of the loop: unpacks the arguments, calls the function and packs the results.
fn eval(op: &Op) -> TokenStream {
    let patterns = patterns(op);
    let result = result(op, &quote!(self.));
    quote! {
        #[inline(always)]
        fn eval(&self, (#(#patterns,)*): Self::In) -> Self::Out {
            #result
        }
    }
}

fn patterns(op: &Op) -> impl Iterator<Item = TokenStream> {
    op.inputs.iter().enumerate().map(|(i, Input { mutated, .. })| {
        let (ident, mutability) = (input(i), mutated.then(|| quote!(mut)));
        quote!(#mutability #ident)
    })
}

/// The tuple of all outputs. `place` prefixes attributes and flags.
fn result(op: &Op, place: &TokenStream) -> TokenStream {
    let function = op.ident();
    let turbofish = turbofish(op);
    let args = op.params.iter().map(|slot| match *slot {
        Slot::Input(i) => {
            let Input { arity, mutated, .. } = &op.inputs[i];
            let (ident, has) = (input(i), flag(i));
            match arity {
                Arity::Optional => quote!(#place #has.then_some(#ident)),
                _ if *mutated => quote!(&mut #ident),
                _ => quote!(#ident),
            }
        }
        Slot::Attr(i) => {
            let ident = attribute(i);
            quote!(#place #ident)
        }
        Slot::Output(_) => TokenStream::new(),
    });
    let call = quote!(#function #turbofish(#(#args),*));
    let mutated =
        op.outputs.iter().filter_map(|o| if let Role::Mutates(i) = o.role { Some(input(i.into())) } else { None });
    let mutated: Vec<_> = mutated.collect();
    let returned: Vec<_> = (0..op.returned().count()).map(|i| local("result", i)).collect();
    match (op.returns, mutated.is_empty()) {
        (Returns::One, true) => quote!((#call,)),
        (Returns::Tuple, true) => call,
        (Returns::Nothing, _) => quote!(#call; (#(#mutated,)*)),
        (Returns::One, false) => quote!(let result0 = #call; (#(#mutated,)* result0,)),
        _ => quote!(let (#(#returned,)*) = #call; (#(#mutated,)* #(#returned,)*)),
    }
}

/// Whether the body can run on symbols.
pub fn has_program(op: &Op) -> bool {
    !op.generics.is_empty()
}

/// Whether the program computes the op, rather than compiled loops: all dtypes are real floats, and no input is changed in place.
pub fn by_program(op: &Op) -> bool {
    let is_float = |generic: &Generic| generic.dtypes.iter().all(|d| d.is_differentiable() && !d.is_complex());
    let changes = op.inplace.is_some() || op.inputs.iter().any(|input| input.mutated);
    has_program(op) && op.generics.len() == 1 && op.generics.iter().all(is_float) && !changes
}

/// The function that makes the program of a body. It runs the body with symbols for all dtype variables.
pub fn program(op: &Op) -> TokenStream {
    let (run, attrs) = (program_name(op), quote!(attrs));
    let variables = op.generics.iter().map(|g| &g.ident);
    let names = op.inputs.iter().map(|i| text(&i.ident));
    let inputs = op.inputs.iter().zip(patterns(op)).enumerate().map(|(k, (input, pattern))| match input.elem {
        Elem::Mask(_) => quote!(let #pattern = __private::Element::truthy(inputs[#k]);),
        _ => quote!(let #pattern = inputs[#k];),
    });
    let is_uniform = |a: &&Attribute| a.kind == AttrKind::Float;
    let uniforms = op.attrs.iter().filter(is_uniform).map(|a| text(&a.ident));
    let statics = op.attrs.iter().enumerate().filter(|(_, a)| !is_uniform(a)).map(|(i, a)| {
        let (ident, read) = (attribute(i), attr::read(a, i, &attrs));
        quote!(let #ident = #read;)
    });
    let given = op.attrs.iter().enumerate().filter(|(_, a)| is_uniform(a)).enumerate().map(|(k, (i, a))| {
        let ident = attribute(i);
        let value = if a.optional { quote!(__private::given(attrs, #i, uniforms[#k])) } else { quote!(uniforms[#k]) };
        quote!(let #ident = #value;)
    });
    let flags = optional(op).enumerate().map(|(k, i)| {
        let (has, at) = (flag(i), op.attrs.len() + k);
        quote!(let #has = __private::attr::<__private::bool>(attrs, #at)?;)
    });
    let results: Vec<_> = (0..op.outputs.len()).map(|k| local("output", k)).collect();
    let outputs = op.outputs.iter().map(|o| text(&o.ident));
    let result = result(op, &quote!());
    quote! {
        #[allow(unused_variables, unused_mut)]
        fn #run(attrs: &[__private::Attr]) -> __private::Result<__private::Program> {
            #(type #variables = __private::Symbol;)*
            #(#statics)* #(#flags)*
            __private::program(&[#(#names),*], &[#(#uniforms),*], |inputs, uniforms| {
                #(#inputs)* #(#given)*
                let (#(#results,)*) = { #result };
                __private::vec![#(__private::named(#outputs, #results)),*]
            })
        }
    }
}

/// As above, for the gradient of an op that has a program.
pub fn gradient_program(op: &Op, vjp: &Vjp) -> TokenStream {
    let (run, forward) = (program_name(&vjp.op), program_name(op));
    let returned = op.returned().filter(|(_, o)| op.is_differentiable(o.elem)).map(|(k, _)| k);
    let (outputs, wrt) = (positions(returned), positions(vjp.wrt.iter().copied()));
    let is_complex = vjp.op.generics.iter().any(|g| g.dtypes.iter().any(|d| d.is_complex()));
    quote! {
        fn #run(attrs: &[__private::Attr]) -> __private::Result<__private::Program> {
            __private::vjp_program(&#forward(attrs)?, #outputs, #wrt, #is_complex)
        }
    }
}

/// `swish_program`
pub fn program_name(op: &Op) -> Ident {
    format_ident!("{}_program", stem(op))
}
