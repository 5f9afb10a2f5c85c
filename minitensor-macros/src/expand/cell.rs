//! Cell bodies: one core of every argument, handed over as the function's parameters say.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::{attr, element_type, machine_bounds, stem, table, turbofish};
use crate::ast::{Arity, Core, Elem, Op, Slot};

/// The call for one cell and the table that finds it.
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
            Arity::Optional => quote!(if rt::is_absent(&args[#at]) { None } else { Some(#core) }),
            _ => core,
        }
    });
    let outputs = op
        .outputs
        .iter()
        .enumerate()
        .map(|(i, output)| argument(op, output.elem, output.core, true, op.inputs.len() + i));
    let cores = inputs.chain(outputs);
    let names = op.inputs.iter().map(|i| &i.ident).chain(op.outputs.iter().map(|o| &o.ident));
    let attrs = quote!(attrs);
    let variables: Vec<_> = op.generics.iter().map(|g| &g.ident).collect();
    let args = op.params.iter().map(|slot| match *slot {
        Slot::Input(i) => {
            let ident = &op.inputs[i].ident;
            quote!(#ident)
        }
        Slot::Output(i) => {
            let ident = &op.outputs[i].ident;
            quote!(#ident)
        }
        Slot::Attr(i) => attr::read(&op.attrs[i], i, &attrs),
    });
    let attrs_name = if op.attrs.is_empty() { format_ident!("_attrs") } else { format_ident!("attrs") };
    let table = table(op, &run, &format_ident!("CellKernel"));
    quote! {
        unsafe fn #run #generics(attrs: &[rt::Attr], args: &[rt::CellArg<'_>], cells: usize) -> rt::Result<()> {
            struct Cell<'a, #(#variables),*> {
                attrs: &'a [rt::Attr],
                args: &'a [rt::CellArg<'a>],
                cells: usize,
                _dtypes: ::core::marker::PhantomData<(#(#variables,)*)>,
            }
            impl<#(#bounds),*> rt::AtLevel for Cell<'_, #(#variables),*> {
                type Output = rt::Result<()>;
                const VECTORIZE: bool = false #(|| <#variables as rt::Machine>::VECTORIZE)*;
                #[inline(always)]
                fn run(self) -> rt::Result<()> {
                    let Cell { attrs: #attrs_name, args, cells, .. } = self;
                    for cell in 0..cells {
                    // SAFETY: the caller gives one core for every argument, of the dtypes that this kernel was chosen
                    // for, and those of outputs overlap nothing.
                    let (#(#names,)*) = unsafe { (#(#cores,)*) };
                        rt::CellResult::into_result(#function #turbofish(#(#args),*))?;
                    }
                    Ok(())
                }
            }
            rt::at_level(Cell::<#(#variables),*> { attrs, args, cells, _dtypes: ::core::marker::PhantomData })
        }
        #table
    }
}

fn argument(op: &Op, elem: Elem, core: Core, mutable: bool, i: usize) -> TokenStream {
    let (ty, at) = (element_type(op, elem), syn::Index::from(i));
    let name = match core {
        Core::Scalar => "scalar".to_owned(),
        Core::Slice => "slice".to_owned(),
        Core::View(dims) => format!("view{dims}"),
    };
    let name = if mutable { format_ident!("{name}_mut") } else { format_ident!("{name}") };
    quote!(rt::#name::<#ty>(&args[#at], cell))
}
