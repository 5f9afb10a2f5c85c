//! Cell bodies: passes one core of every argument to the function, in the form that its parameters declare.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::Ident;

use super::{attr, element_type, machine_bounds, stem, table, turbofish};
use crate::ast::{Arity, Core, Elem, Op, Slot};
use crate::hygiene::{local, quote};

/// The call for one cell and the table of its kernels.
pub fn kernels(op: &Op) -> TokenStream {
    let run = format_ident!("{}_cell", stem(op));
    let bounds = machine_bounds(op);
    let generics = (!bounds.is_empty()).then(|| quote!(<#(#bounds),*>));
    let function = op.ident();
    let turbofish = turbofish(op);
    let inputs = op.inputs.iter().enumerate().map(|(i, input)| {
        let at = syn::Index::from(i);
        let core = argument(op, input.elem, input.core, false, i);
        match input.arity {
            Arity::Optional => {
                quote!(if __private::is_absent(&args[#at]) { __private::None } else { __private::Some(#core) })
            }
            _ => core,
        }
    });
    let outputs = op
        .outputs
        .iter()
        .enumerate()
        .map(|(i, output)| argument(op, output.elem, output.core, true, op.inputs.len() + i));
    let cores = inputs.chain(outputs);
    let names = (0..op.inputs.len() + op.outputs.len()).map(core_name);
    let attrs = quote!(attrs);
    let variables: Vec<_> = op.generics.iter().map(|g| &g.ident).collect();
    let args = op.params.iter().map(|slot| match *slot {
        Slot::Input(i) => core_name(i).to_token_stream(),
        Slot::Output(i) => core_name(op.inputs.len() + i).to_token_stream(),
        Slot::Attr(i) => attr::read(&op.attrs[i], i, &attrs),
    });
    let attrs_name = if op.attrs.is_empty() { quote!(_attrs) } else { quote!(attrs) };
    let table = table(op, &run, &format_ident!("CellKernel"));
    quote! {
        unsafe fn #run #generics(attrs: &[__private::Attr], args: &[__private::CellArg<'_>], cells: __private::usize) -> __private::Result<()> {
            struct __Cell<'a, #(#variables),*> {
                attrs: &'a [__private::Attr],
                args: &'a [__private::CellArg<'a>],
                cells: __private::usize,
                _dtypes: ::core::marker::PhantomData<(#(#variables,)*)>,
            }
            impl<#(#bounds),*> __private::AtLevel for __Cell<'_, #(#variables),*> {
                type Output = __private::Result<()>;
                const VECTORIZE: __private::bool = false #(|| <#variables as __private::Machine>::VECTORIZE)*;
                #[inline(always)]
                fn run(self) -> __private::Result<()> {
                    let __Cell { attrs: #attrs_name, args, cells, .. } = self;
                    for cell in 0..cells {
                    // SAFETY: the caller provides one core for every argument, of the dtypes that this kernel was chosen
                    // for. Cores of outputs overlap no other core.
                    let (#(#names,)*) = unsafe { (#(#cores,)*) };
                        __private::CellResult::into_result(#function #turbofish(#(#args),*))?;
                    }
                    __private::Ok(())
                }
            }
            __private::at_level(__Cell::<#(#variables),*> { attrs, args, cells, _dtypes: ::core::marker::PhantomData })
        }
        #table
    }
}

/// The core of an argument. Inputs are numbered first, then outputs.
fn core_name(at: usize) -> Ident {
    local("core", at)
}

fn argument(op: &Op, elem: Elem, core: Core, mutable: bool, i: usize) -> TokenStream {
    let (ty, at) = (element_type(op, elem), syn::Index::from(i));
    let name = match core {
        Core::Scalar => "scalar".to_owned(),
        Core::Slice => "slice".to_owned(),
        Core::View(dims) => format!("view{dims}"),
    };
    let name = if mutable { format_ident!("{name}_mut") } else { format_ident!("{name}") };
    quote!(__private::#name::<#ty>(&args[#at], cell))
}
