//! Cell bodies: passes one core of every argument to the function, in the form that its parameters declare. Gradients of cell bodies:
//! runs the function at numbers of a tape.

use minitensor_schema::grammar::{NamedDims, Shape};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::{Ident, parse_quote};

use super::vjp::{Vjp, differentiable_part, fresh_names};
use super::{attr, element_type, machine_bounds, of_references, stem, table};
use crate::ast::{Arity, Core, Elem, Generic, Gradient, Input, Level, Op, Output, Returns, Role, Slot, text};
use crate::dtype::{self, DType};
use crate::hygiene::{local, quote};
use crate::source::Clause;

/// The call for one cell and the table of its kernels. `def` is the definition of the op.
pub fn kernels(op: &Op, def: &Ident) -> TokenStream {
    let run = format_ident!("{}_cell", stem(op));
    let bounds = machine_bounds(op);
    let generics = (!bounds.is_empty()).then(|| quote!(<#(#bounds),*>));
    let variables: Vec<_> = op.generics.iter().map(|g| &g.ident).collect();
    let cell = cell(op, |i| {
        let variable = &op.generics[i].ident;
        quote!(#variable)
    });
    let attrs_name = if op.attrs.is_empty() { quote!(_attrs) } else { quote!(attrs) };
    let table = side_by_side(op, def, &run, table(op, &run, &format_ident!("CellKernel")));
    let references = of_references(op);
    quote! {
        unsafe fn #run #generics(attrs: &[__private::Attr], args: &[__private::CellArg<'_>], cells: __private::usize) -> __private::Result<()>
        #references
        {
            struct __Cell<'a, #(#variables),*> {
                attrs: &'a [__private::Attr],
                args: &'a [__private::CellArg<'a>],
                cells: __private::usize,
                _dtypes: ::core::marker::PhantomData<(#(#variables,)*)>,
            }
            impl<#(#bounds),*> __private::AtLevel for __Cell<'_, #(#variables),*> #references {
                type Output = __private::Result<()>;
                const VECTORIZE: __private::bool = false #(|| <#variables as __private::Machine>::VECTORIZE)*;
                #[inline(always)]
                fn run(self) -> __private::Result<()> {
                    let __Cell { attrs: #attrs_name, args, cells, .. } = self;
                    for cell in 0..cells {
                        #cell
                    }
                    __private::Ok(())
                }
            }
            __private::at_level(__Cell::<#(#variables),*> { attrs, args, cells, _dtypes: ::core::marker::PhantomData })
        }
        #table
    }
}

/// The bounds of kernels that run the function at numbers of a tape.
fn traced_bounds(op: &Op) -> Vec<TokenStream> {
    let bounds = op.generics.iter().zip(machine_bounds(op)).map(|(generic, bounds)| {
        let traced = generic.is_differentiable().then(|| quote!(+ __private::Differentiable));
        quote!(#bounds #traced)
    });
    bounds.collect()
}

/// The table of kernels, in which those of floats may compute cells side by side. They run the function at numbers of a tape, so this
/// depends on a derived gradient.
fn side_by_side(op: &Op, def: &Ident, run: &Ident, table: TokenStream) -> TokenStream {
    let ([Generic { ident, dtypes, .. }], Gradient::Derived, None) = (&op.generics[..], &op.gradient, &op.program)
    else {
        return table;
    };
    let (lanes, kernel) = (format_ident!("{run}s"), format_ident!("{}_kernel", stem(op)));
    let (bounds, references) = (traced_bounds(op), of_references(op));
    let cell = cell(op, |_| quote!(__private::Traced<#ident>));
    let arms = [DType::F32, DType::F64].into_iter().filter(|dtype| dtypes.contains(*dtype)).map(|dtype| {
        let (name, ty) = (dtype::tokens(dtype), dtype::rust(dtype));
        quote!([#name] => __private::Some(#lanes::<#ty>),)
    });
    quote! {
        unsafe fn #lanes<#(#bounds),*>(
            attrs: &[__private::Attr],
            args: &[__private::CellArg<'_>],
            cells: __private::usize,
        ) -> __private::Result<()>
        #references
        {
            let body = |args: &[__private::CellArg<'_>]| -> __private::Result<()> {
                let cell = 0;
                #cell
                __private::Ok(())
            };
            // SAFETY: the caller provides cores as the definition declares.
            unsafe {
                match __private::cell_results::<#ident>(&#def, &__PROGRAMS, attrs, args, cells, body)? {
                    true => __private::Ok(()),
                    false => #run::<#ident>(attrs, args, cells),
                }
            }
        }
        fn #kernel(dtypes: &[__private::DType]) -> __private::Option<__private::CellKernel> {
            #table
            match dtypes {
                #(#arms)*
                _ => #kernel(dtypes),
            }
        }
    }
}

/// The call of the function for one `cell` of `args`, as a result. `number` is the type that stands for a dtype variable.
fn cell(op: &Op, number: impl Fn(usize) -> TokenStream) -> TokenStream {
    let element = |elem| if let Elem::Generic(i) = elem { number(i) } else { element_type(op, elem) };
    // The core of an input that is changed in place is that of its output.
    let inputs = op.inputs.iter().enumerate().filter(|(_, input)| !input.mutated).map(|(i, input)| {
        let at = syn::Index::from(i);
        let core = argument(&element(input.elem), input.core, false, i);
        let core = match input.arity {
            Arity::Optional => {
                quote!(if __private::is_absent(&args[#at]) { __private::None } else { __private::Some(#core) })
            }
            _ => core,
        };
        (i, core)
    });
    let output = |(k, output): (usize, &Output)| {
        let at = op.inputs.len() + k;
        (at, argument(&element(output.elem), output.core, true, at))
    };
    let (names, cores): (Vec<_>, Vec<_>) =
        inputs.chain(op.outputs.iter().enumerate().map(output)).map(|(at, core)| (core_name(at), core)).unzip();
    let changed = |i: usize| op.outputs.iter().position(|o| o.role == Role::Mutates(i as u8));
    let attrs = quote!(attrs);
    let given = op.params.iter().map(|slot| match *slot {
        Slot::Input(i) => core_name(changed(i).map_or(i, |k| op.inputs.len() + k)).to_token_stream(),
        Slot::Output(i) => core_name(op.inputs.len() + i).to_token_stream(),
        Slot::Attr(i) => attr::read(&op.attrs[i], i, &attrs),
    });
    let (function, variables) = (op.ident(), (0..op.generics.len()).map(&number));
    let turbofish = (!op.generics.is_empty()).then(|| quote!(::<#(#variables),*>));
    let results = op.results();
    let (given_back, places): (Vec<_>, Vec<_>) =
        results.iter().map(|k| (local("result", *k), core_name(op.inputs.len() + k))).unzip();
    let pattern = match op.returns {
        Returns::One => quote!(#(#given_back)*),
        _ => quote!((#(#given_back),*)),
    };
    let call = quote!(#function #turbofish(#(#given),*));
    let call = if op.is_fallible() { quote!(#call?) } else { call };
    quote!({
        // SAFETY: the caller provides one core for every argument, of the dtypes that this kernel was chosen for. Cores of outputs
        // overlap no other core.
        let (#(#names,)*) = unsafe { (#(#cores,)*) };
        let #pattern = #call;
        #(*#places = #given_back;)*
    })
}

/// The kernels of the gradient `vjp` of an op whose definition is `def`. A `second` gradient is that of the gradient.
pub fn gradient_kernels(op: &Op, vjp: &Op, def: &Ident, second: bool) -> TokenStream {
    let run = format_ident!("{}_cell", stem(vjp));
    let table = table(vjp, &run, &format_ident!("CellKernel"));
    let (bounds, references) = (traced_bounds(op), of_references(op));
    let is_traced = |g: &&Generic| g.is_differentiable();
    let Some(variable) = op.generics.iter().find(is_traced).map(|g| &g.ident) else { return TokenStream::new() };
    let level = if second { quote!(__private::Dual<#variable>) } else { quote!(#variable) };
    let cell = cell(op, |i| {
        let Generic { ident, .. } = &op.generics[i];
        if ident == variable { quote!(__private::Traced<#level>) } else { quote!(#ident) }
    });
    quote! {
        unsafe fn #run<#(#bounds),*>(
            attrs: &[__private::Attr],
            args: &[__private::CellArg<'_>],
            cells: __private::usize,
        ) -> __private::Result<()>
        #references __private::Dual<#variable>: __private::Differentiable,
        {
            let body = |args: &[__private::CellArg<'_>]| -> __private::Result<()> {
                let cell = 0;
                #cell
                __private::Ok(())
            };
            // SAFETY: the caller provides cores as the definition declares.
            unsafe { __private::cell_gradient::<#variable, #level>(&#def, &__PROGRAMS, attrs, args, cells, body) }
        }
        #table
    }
}

/// The gradient of a cell op as an op. Its inputs are the cotangents of the results, then the inputs. Its outputs are the gradients
/// of the differentiable inputs. Numbers have any strides, since they are copied to a tape.
pub fn vjp(op: &Op) -> Option<Vjp> {
    let shape = op.shape.as_ref()?;
    let mut fresh = fresh_names(op);
    let named = |name: &Ident, dims: &NamedDims| NamedDims { name: Some(text(name)), save: false, ..dims.clone() };
    let strided = |dims: &NamedDims| match dims.dims.core.len() {
        0 => Core::Scalar,
        rank => Core::View(rank),
    };
    let mut dims = Shape { inputs: vec![], outputs: vec![] };
    let (mut inputs, mut outputs, mut wrt) = (vec![], vec![], vec![]);
    for (k, output) in op.returned().filter(|(_, o)| op.is_differentiable(o.elem)) {
        let (ident, elem) = (fresh(&output.ident), output.elem);
        let own = shape.output(&text(&output.ident), k)?;
        dims.inputs.push(named(&ident, own));
        inputs.push(Input { ident, ty: parse_quote!(_), elem, arity: Arity::One, mutated: false, core: strided(own) });
    }
    for (i, input) in op.inputs.iter().enumerate() {
        let own = shape.input(&text(&input.ident))?;
        dims.inputs.push(own.clone());
        if !op.is_differentiable(input.elem) {
            inputs.push(input.clone());
            continue;
        }
        let core = strided(own);
        inputs.push(Input { core, ..input.clone() });
        let (ident, elem) = (fresh(&input.ident), input.elem);
        dims.outputs.push(named(&ident, own));
        outputs.push(Output { ident, elem, role: Role::Returned, core });
        wrt.push(i);
    }
    let mut function = op.function.clone();
    function.sig.ident = format_ident!("__{}_vjp", text(op.ident()));
    let op = Op {
        type_name: op.type_name.clone(),
        function,
        level: Level::Cell,
        name: format!("{}.vjp", op.name),
        aliases: vec![],
        doc: format!("The vector-Jacobian product of `{}`.", op.name),
        since: op.since,
        generics: op.generics.iter().map(differentiable_part).collect(),
        params: vec![],
        returns: Returns::Nothing,
        inputs,
        attrs: op.attrs.clone(),
        outputs,
        shape: Some(Clause { tree: dims, source: shape.source.clone() }),
        predicates: vec![],
        axis: None,
        combine: None,
        properties: Vec::new(),
        gradient: Gradient::NotNeeded,
        inplace: None,
        precompiled: None,
        program: None,
    };
    Some(Vjp { op, wrt })
}

/// The core of an argument. Inputs are numbered first, then outputs.
fn core_name(at: usize) -> Ident {
    local("core", at)
}

fn argument(ty: &TokenStream, core: Core, mutable: bool, i: usize) -> TokenStream {
    let at = syn::Index::from(i);
    let name = match core {
        Core::Scalar => "scalar".to_owned(),
        Core::Slice => "slice".to_owned(),
        Core::View(dims) => format!("view{dims}"),
        Core::Columns => "columns".to_owned(),
        // The cores of all these cells are one slice.
        Core::Results => "slice".to_owned(),
    };
    let name = if mutable { format_ident!("{name}_mut") } else { format_ident!("{name}") };
    quote!(__private::#name::<#ty>(&args[#at], cell))
}
