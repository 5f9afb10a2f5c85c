//! The expansion of a checked op: the function, a struct of its name, and the static `OpDef`.

pub mod attr;
mod call;
mod cell;
mod def;
mod element;
mod row;
mod tensor;
mod vjp;

pub use element::by_program as is_by_program;
pub use vjp::{MOST_INPUTS, MOST_OUTPUTS};

use minitensor_schema::grammar::Mode;
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident};
use syn::Ident;

use crate::ast::{Core, Elem, Generic, Gradient, Level, Op, Role};
use crate::dtype;
use crate::hygiene::quote;
use crate::lower::Lowered;

/// The whole expansion. `runtime` is the path of `minitensor::__private`.
pub fn op(mut op: Op, lowered: Lowered, runtime: &TokenStream) -> TokenStream {
    let (ident, vis) = (op.type_name.clone(), op.function.vis.clone());
    let function = &lowered.function;
    let doc = format!("The op [`{}()`] as a value: what everything but the computation itself asks.", op.ident());
    let mut items = Items::default();
    items.define(&op, &format_ident!("__DEF"), lowered.formula.as_ref());
    let call = call::call(&op, &format_ident!("call"));
    let in_place = op.inplace.is_some().then(|| {
        into_in_place(&mut op);
        items.define_again(&op, &format_ident!("__IN_PLACE"));
        call::call_in_place(&op)
    });
    let Items { tokens, entries, .. } = items;
    quote! {
        #function

        #[doc = #doc]
        #[allow(non_camel_case_types)]
        #[derive(
            ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug, ::core::default::Default
        )]
        #vis struct #ident {}

        const _: () = {
            use #runtime as __private;
            #tokens
            impl #ident {
                #call
                #in_place
                /// The op itself.
                pub fn op() -> __private::OpRef {
                    __private::OpRef::Static(&__DEF)
                }
            }
            __private::impl_custom_op!(#ident, __DEF);
            #(__private::inventory::submit! { #entries })*
        };
    }
}

/// Changes an op to its in-place form, for example `swish_`, which writes to its first argument.
fn into_in_place(op: &mut Op) {
    op.doc = format!("In-place form of `{}`.", op.name);
    op.name.push('_');
    op.aliases.iter_mut().for_each(|a| a.push('_'));
    op.inputs[0].mutated = true;
    op.outputs[0].role = Role::Mutates(0);
}

/// The items in the block of the expansion.
#[derive(Default)]
struct Items {
    tokens: TokenStream,
    /// The entries of the registry.
    entries: Vec<TokenStream>,
    body: TokenStream,
    backward: TokenStream,
}

impl Items {
    /// Defines the static of an op and its items, after the ops of its gradient.
    fn define(&mut self, op: &Op, name: &Ident, formula: Option<&crate::lower::formula::Lowered>) {
        let kernels = match op.level {
            Level::Element => {
                self.tokens.extend(element::has_program(op).then(|| element::program(op)));
                if is_compiled(op) { element::kernels(op) } else { TokenStream::new() }
            }
            Level::Row => row::kernels(op),
            Level::Cell => {
                self.tokens.extend(op.program.as_ref().map(|program| row::program(op, program)));
                cell::kernels(op, name)
            }
            Level::Tensor => tensor::body(op),
        };
        self.tokens.extend(kernels);
        let body = body(op);
        let backward = match &op.gradient {
            Gradient::None(reason) => quote!(__private::Backward::None(__private::Cow::Borrowed(#reason))),
            Gradient::NotNeeded => quote!(__private::Backward::NotNeeded),
            Gradient::Composite => quote!(__private::Backward::Composite),
            Gradient::Function(mode, path) => {
                let (inputs, outputs) = (list(0..op.inputs.len()), list(0..op.outputs.len()));
                formula_def(*mode, &quote!(#path), &inputs, &outputs, &list([]))
            }
            Gradient::Formula(clause) => {
                let formula = formula.expect("a formula is lowered with its op");
                self.tokens.extend(formula.function.clone());
                let run = &formula.ident;
                let inputs = list(formula.saved_inputs.iter().copied());
                let outputs = list(formula.saved_outputs.iter().copied());
                let without = list(formula.without.iter().copied());
                formula_def(clause.mode, &quote!(#run), &inputs, &outputs, &without)
            }
            Gradient::Derived if op.level == Level::Row => match row::vjp(op) {
                Some(vjp) => self.define_rows(op, &vjp, name),
                None => quote!(__private::Backward::NotNeeded),
            },
            Gradient::Derived if op.level == Level::Cell && op.program.is_some() => by_program(),
            Gradient::Derived if op.level == Level::Cell => match cell::vjp(op) {
                Some(vjp) => self.define_cells(op, &vjp, name),
                None => quote!(__private::Backward::NotNeeded),
            },
            // A compiled gradient has the derivative by a number, but not that by its conjugate.
            Gradient::Derived if conjugates(op) => by_program(),
            Gradient::Derived => match vjp::of(op) {
                Some(vjp) => self.define_vjp(op, &vjp, name),
                // A gradient that exceeds the limits of a loop is computed by its program.
                None => by_program(),
            },
        };
        self.tokens.extend(def::def(op, name, &body, &backward));
        self.submit(0, op, name);
        (self.body, self.backward) = (body, backward);
    }

    /// Defines the gradient of an element op as an op. The gradient of that op is derived from its program.
    fn define_vjp(&mut self, op: &Op, vjp: &vjp::Vjp, name: &Ident) -> TokenStream {
        let program = element::gradient_program(op, vjp);
        let loops = is_compiled(op).then(|| (&vjp.op.function, element::kernels(&vjp.op)));
        let (function, kernels) = loops.unzip();
        let vjp_name = if name == "__DEF" { format_ident!("__VJP") } else { format_ident!("{name}_VJP") };
        let def = def::def(&vjp.op, &vjp_name, &body(&vjp.op), &by_program());
        self.tokens.extend(quote!(#function #kernels #program #def));
        self.submit_loops(self.entries.len(), &vjp.op, &vjp_name, is_compiled(op));
        derived_def(vjp, &vjp_name)
    }

    /// Defines the gradient of a row op as an op. The gradient of that op is derived from its program.
    fn define_rows(&mut self, op: &Op, vjp: &vjp::Vjp, name: &Ident) -> TokenStream {
        let kernels = row::gradient_kernels(op, &vjp.op);
        let vjp_name = format_ident!("{name}_VJP");
        let def = def::def(&vjp.op, &vjp_name, &body(&vjp.op), &by_program());
        self.tokens.extend(quote!(#kernels #def));
        self.submit(self.entries.len(), &vjp.op, &vjp_name);
        derived_def(vjp, &vjp_name)
    }

    /// Defines the gradient of a cell op as an op, and the gradient of that op. Both run the function at numbers of a tape.
    fn define_cells(&mut self, op: &Op, vjp: &vjp::Vjp, name: &Ident) -> TokenStream {
        let (vjp_name, second_name) = (format_ident!("{name}_VJP"), format_ident!("{name}_VJP_VJP"));
        let mut backward = quote!(__private::Backward::NotNeeded);
        if let Some(second) = cell::vjp(&vjp.op) {
            let why =
                format!("derivatives of the cell op '{}' exist up to the second; a formula has all of them", op.name);
            let kernels = cell::gradient_kernels(op, &second.op, name, true);
            let none = quote!(__private::Backward::None(__private::Cow::Borrowed(#why)));
            let def = def::def(&second.op, &second_name, &body(&second.op), &none);
            self.tokens.extend(quote!(#kernels #def));
            self.submit(self.entries.len(), &second.op, &second_name);
            backward = derived_def(&second, &second_name);
        }
        let kernels = cell::gradient_kernels(op, &vjp.op, name, false);
        let def = def::def(&vjp.op, &vjp_name, &body(&vjp.op), &backward);
        self.tokens.extend(quote! {
            static __PROGRAMS: __private::Programs = __private::Programs::new();
            #kernels
            #def
        });
        self.submit(self.entries.len(), &vjp.op, &vjp_name);
        derived_def(vjp, &vjp_name)
    }

    /// Defines another static with the most recently defined body and gradient.
    fn define_again(&mut self, op: &Op, name: &Ident) {
        self.tokens.extend(def::def(op, name, &self.body, &self.backward));
        self.submit(self.entries.len(), op, name);
    }

    /// Registers a static with its kernels, at this position.
    fn submit(&mut self, at: usize, op: &Op, name: &Ident) {
        self.submit_loops(at, op, name, is_compiled(op));
    }

    /// As above. `is_compiled`: whether there are compiled loops.
    fn submit_loops(&mut self, at: usize, op: &Op, name: &Ident, is_compiled: bool) {
        let kernel = format_ident!("{}_kernel", stem(op));
        let kind = match op.level {
            Level::Element => quote!(Elements),
            _ if op.is_of_columns() => quote!(Columns),
            _ => quote!(Cells),
        };
        let kernels = match is_compiled {
            false => quote!(__private::None),
            // In debug builds, which compile slower code, the program computes the op.
            true if op.precompiled.is_some() && (op.level == Level::Row || element::by_program(op)) => quote! {
                if ::core::cfg!(debug_assertions) {
                    __private::None
                } else {
                    __private::Some(__private::Kernels::#kind(#kernel))
                }
            },
            true => quote!(__private::Some(__private::Kernels::#kind(#kernel))),
        };
        self.entries.insert(at, quote!(__private::OpEntry { op: &#name, kernels: #kernels }));
    }
}

/// Whether an op on complex numbers conjugates them.
fn conjugates(op: &Op) -> bool {
    let is_complex = op.generics.iter().any(|g| g.dtypes.iter().any(|d| d.is_complex()));
    is_complex && crate::body::mentions(op.function.block.to_token_stream(), &|name| name == "conj")
}

/// Whether rustc compiles the loops of an op.
fn is_compiled(op: &Op) -> bool {
    match op.level {
        Level::Element => op.precompiled.is_some() || !element::by_program(op),
        Level::Row => op.precompiled.is_some(),
        Level::Cell => true,
        Level::Tensor => false,
    }
}

fn by_program() -> TokenStream {
    quote!(__private::Backward::Program(__private::Gradients::new()))
}

fn derived_def(vjp: &vjp::Vjp, name: &Ident) -> TokenStream {
    let wrt = list(vjp.wrt.iter().copied());
    quote! {
        __private::Backward::Derived(__private::Derived {
            vjp: __private::OpRef::Static(&#name),
            wrt: #wrt,
            gradients: __private::Gradients::new(),
        })
    }
}

fn formula_def(
    mode: Mode,
    run: &TokenStream,
    inputs: &TokenStream,
    outputs: &TokenStream,
    without: &TokenStream,
) -> TokenStream {
    let mode = match mode {
        Mode::Reverse => quote!(Reverse),
        Mode::Forward => quote!(Forward),
    };
    quote! {
        __private::Backward::Formula(__private::Formula {
            mode: __private::Mode::#mode,
            run: __private::BackwardBody::Static(#run),
            saved_inputs: #inputs,
            saved_outputs: #outputs,
            without: #without,
        })
    }
}

fn body(op: &Op) -> TokenStream {
    let stem = stem(op);
    match op.level {
        Level::Element if !element::has_program(op) => quote!(__private::Body::Element(__private::None)),
        Level::Element => {
            let program = element::program_name(op);
            quote!(__private::Body::Element(__private::Some(__private::ProgramFn::Compiled(#program))))
        }
        Level::Cell if op.program.is_none() => quote!(__private::Body::Cell(__private::None)),
        Level::Row | Level::Cell => {
            let program = format_ident!("{stem}_program");
            quote!(__private::Body::Cell(__private::Some(__private::ProgramFn::Compiled(#program))))
        }
        Level::Tensor => {
            let body = format_ident!("{stem}_body");
            quote!(__private::Body::Tensor(#body))
        }
    }
}

/// `&[0, 2]`
fn positions(list: impl IntoIterator<Item = usize>) -> TokenStream {
    let list = list.into_iter().map(syn::Index::from);
    quote!(&[#(#list),*])
}

/// The list for a definition.
fn list(of: impl IntoIterator<Item = usize>) -> TokenStream {
    let positions = positions(of);
    quote!(__private::Cow::Borrowed(#positions))
}

/// The prefix of the items of an op.
fn stem(op: &Op) -> String {
    format!("__{}", crate::ast::text(op.ident()).trim_start_matches("__"))
}

/// `T: __private::Float + __private::Machine`
fn machine_bounds(op: &Op) -> Vec<TokenStream> {
    let bounds = op.generics.iter().map(|Generic { ident, bound, .. }| {
        let name = format_ident!("{}", bound.name);
        let ordered = (op.level == Level::Cell && bound.is_ordered).then(|| quote!(+ ::core::cmp::PartialOrd));
        let operand =
            dtype::operand(bound).filter(|_| op.level == Level::Cell).map(|(name, _)| quote!(+ __private::#name));
        quote!(#ident: __private::#name + __private::Machine #ordered #operand)
    });
    bounds.collect()
}

/// The bounds of references to the numbers of a cell body, as a `where` clause.
fn of_references(op: &Op) -> TokenStream {
    let predicates =
        op.generics.iter().filter(|_| op.level == Level::Cell).filter_map(|Generic { ident, bound, .. }| {
            let (_, reference) = dtype::operand(bound)?;
            Some(quote!(for<'reference> &'reference #ident: __private::#reference<#ident>,))
        });
    let predicates: Vec<_> = predicates.collect();
    if predicates.is_empty() { TokenStream::new() } else { quote!(where #(#predicates)*) }
}

/// `::<T, U>`. Empty without dtype variables.
fn turbofish(op: &Op) -> TokenStream {
    let variables = op.generics.iter().map(|g| &g.ident);
    if op.generics.is_empty() { TokenStream::new() } else { quote!(::<#(#variables),*>) }
}

/// The function that finds the kernel for the given dtypes.
fn table(op: &Op, run: &Ident, kind: &Ident) -> TokenStream {
    let kernel = format_ident!("{}_kernel", stem(op));
    let kernels = op.signature().view().kernels();
    let arms = kernels.iter().map(|dtypes| {
        let names = dtypes.iter().map(|d| dtype::tokens(*d));
        let types = dtypes.iter().map(|d| dtype::stored(*d));
        quote!([#(#names),*] => __private::Some(#run::<#(#types),*>),)
    });
    quote! {
        fn #kernel(dtypes: &[__private::DType]) -> __private::Option<__private::#kind> {
            match dtypes {
                #(#arms)*
                _ => __private::None,
            }
        }
    }
}

/// The Rust type of one element in a kernel.
fn element_type(op: &Op, elem: Elem) -> TokenStream {
    match elem {
        Elem::Generic(i) => {
            let variable = &op.generics[i].ident;
            quote!(#variable)
        }
        Elem::Fixed(dtype) => dtype::rust(dtype),
        Elem::Mask(_) | Elem::Attr(_) | Elem::Any => quote!(__private::bool),
    }
}

fn core(core: Core) -> TokenStream {
    match core {
        Core::Scalar | Core::Results => quote!(__private::Core::Scalar),
        Core::Slice | Core::Columns => quote!(__private::Core::Slice),
        Core::View(_) => quote!(__private::Core::View),
    }
}
