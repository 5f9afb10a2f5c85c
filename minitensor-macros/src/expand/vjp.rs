//! The vector-Jacobian product of an element op: another element op, whose body runs the first on dual numbers.

use proc_macro2::TokenStream;
use quote::format_ident;
use syn::{Ident, parse_quote};

use crate::ast::{Arity, AttrKind, Core, Elem, Generic, Gradient, Input, Level, Op, Output, Returns, Role, Slot, text};
use crate::dtype::{Bound, DType};
use crate::hygiene::{attribute, input, local, quote};

/// The limits of tensors in one loop, as in `Map` of the runtime.
pub const MOST_INPUTS: usize = 12;
pub const MOST_OUTPUTS: usize = 8;

/// A vector-Jacobian product, and the inputs that its outputs are the gradients of.
pub struct Vjp {
    pub op: Op,
    pub wrt: Vec<usize>,
}

/// An op whose inputs are the cotangents of the returned outputs, then the inputs. Its outputs are the gradients of the
/// inputs. `None` if that exceeds the limits of a loop.
pub fn of(op: &Op) -> Option<Vjp> {
    let wrt: Vec<usize> = (0..op.inputs.len()).filter(|i| op.is_differentiable(op.inputs[*i].elem)).collect();
    let mut fresh = fresh_names(op);
    let differentiable = op.returned().filter(|(_, o)| op.is_differentiable(o.elem));
    let cotangents: Vec<(usize, Input)> = differentiable
        .map(|(i, o)| {
            let (ident, elem) = (fresh(&o.ident), o.elem);
            (i, Input { ident, ty: parse_quote!(_), elem, arity: Arity::One, mutated: false, core: Core::Scalar })
        })
        .collect();
    let outputs: Vec<Output> = wrt
        .iter()
        .map(|i| {
            let input = &op.inputs[*i];
            Output { ident: fresh(&input.ident), elem: input.elem, role: Role::Returned, core: Core::Scalar }
        })
        .collect();
    let inputs: Vec<Input> = cotangents.iter().map(|(_, c)| c.clone()).chain(op.inputs.iter().cloned()).collect();
    if inputs.len() > MOST_INPUTS || outputs.len() > MOST_OUTPUTS {
        return None;
    }
    let generics = op.generics.iter().map(differentiable_part).collect();
    let returns = if outputs.len() == 1 { Returns::One } else { Returns::Tuple };
    let params = (0..inputs.len()).map(Slot::Input).chain((0..op.attrs.len()).map(Slot::Attr)).collect();
    let mut vjp = Op {
        type_name: op.type_name.clone(),
        function: op.function.clone(),
        level: Level::Element,
        name: format!("{}.vjp", op.name),
        aliases: vec![],
        doc: format!("The vector-Jacobian product of `{}`.", op.name),
        since: op.since,
        generics,
        inputs,
        attrs: op.attrs.clone(),
        outputs,
        params,
        returns,
        shape: None,
        predicates: vec![],
        axis: None,
        combine: None,
        properties: Vec::new(),
        gradient: Gradient::NotNeeded,
        inplace: None,
        precompiled: op.precompiled.clone(),
        program: None,
    };
    vjp.function = function(op, &vjp, &cotangents, &wrt);
    crate::lower::one_mask(&op.generics, &quote!(__private), &mut vjp.function);
    Some(Vjp { op: vjp, wrt })
}

/// Names for the cotangents and gradients of tensors: `d_x`, with underscores appended while an argument has the name.
pub fn fresh_names(op: &Op) -> impl FnMut(&Ident) -> Ident + use<> {
    let mut names: Vec<String> =
        op.inputs.iter().map(|i| text(&i.ident)).chain(op.attrs.iter().map(|a| text(&a.ident))).collect();
    move |name| {
        let mut fresh = format!("d_{}", text(name));
        while names.contains(&fresh) {
            fresh.push('_');
        }
        names.push(fresh.clone());
        Ident::new(&fresh, name.span())
    }
}

/// The dtype variable, restricted to its differentiable dtypes. `None` if it has none.
pub fn differentiable_part(generic: &Generic) -> Generic {
    let mut generic = generic.clone();
    if generic.is_differentiable() {
        generic.dtypes = generic.dtypes.filter(DType::is_differentiable);
        if generic.bound.name == "Element" {
            generic.bound = Bound::named("Num").expect("a trait");
        }
    }
    generic
}

/// `let d_x = cotangent_times(d_out, swish::<Dual<T>>(Dual::variable(x), …).tangent)`, for each input in turn.
fn function(op: &Op, vjp: &Op, cotangents: &[(usize, Input)], wrt: &[usize]) -> syn::ItemFn {
    let name = format_ident!("__{}_vjp", text(op.ident()));
    let bounds = vjp.generics.iter().map(|g| {
        let (ident, bound) = (&g.ident, format_ident!("{}", g.bound.name));
        quote!(#ident: __private::#bound)
    });
    let params = vjp.params.iter().map(|slot| parameter(vjp, *slot));
    let types: Vec<_> = vjp.outputs.iter().map(|o| element(vjp, o.elem)).collect();
    let gradients: Vec<_> = (0..vjp.outputs.len()).map(|k| local("gradient", k)).collect();
    let values = wrt.iter().map(|i| gradient(op, cotangents, *i));
    let (ty, result) = match (&types[..], &gradients[..]) {
        ([ty], [gradient]) => (quote!(#ty), quote!(#gradient)),
        _ => (quote!((#(#types),*)), quote!((#(#gradients),*))),
    };
    parse_quote! {
        #[inline(always)]
        #[allow(clippy::too_many_arguments)]
        fn #name<#(#bounds),*>(#(#params),*) -> #ty {
            #(let #gradients = #values;)*
            #result
        }
    }
}

fn element(op: &Op, elem: Elem) -> TokenStream {
    match elem {
        Elem::Generic(i) => {
            let variable = &op.generics[i].ident;
            quote!(#variable)
        }
        Elem::Mask(i) => {
            let variable = &op.generics[i].ident;
            quote!(<#variable as __private::Element>::Mask)
        }
        _ => quote!(_),
    }
}

fn parameter(vjp: &Op, slot: Slot) -> TokenStream {
    let (ident, ty, optional) = match slot {
        Slot::Input(i) => {
            let Input { elem, arity, .. } = vjp.inputs[i];
            (input(i), element(vjp, elem), arity == Arity::Optional)
        }
        Slot::Attr(i) => {
            let attr = &vjp.attrs[i];
            let ty = match attr.kind {
                AttrKind::Float => element(vjp, Elem::Generic(0)),
                _ => {
                    let ty = super::attr::without_lifetimes(&attr.ty);
                    quote!(#ty)
                }
            };
            (attribute(i), ty, attr.optional)
        }
        Slot::Output(_) => return TokenStream::new(),
    };
    if optional { quote!(#ident: __private::Option<#ty>) } else { quote!(#ident: #ty) }
}

/// The sum of cotangent times tangent over all outputs, where input `wrt` is the variable.
fn gradient(op: &Op, cotangents: &[(usize, Input)], wrt: usize) -> TokenStream {
    let call = dual_call(op, wrt, cotangents.len());
    // An output of one dtype has no tangent with respect to a variable of another.
    let same = |i: usize| op.outputs[i].elem == op.inputs[wrt].elem;
    let terms: Vec<_> =
        cotangents.iter().enumerate().filter(|(_, (i, _))| same(*i)).map(|(k, (i, _))| (*i, input(k))).collect();
    if terms.is_empty() {
        let variable = element(op, op.inputs[wrt].elem);
        return quote!(<#variable as __private::Element>::zero());
    }
    if op.returns == Returns::One {
        let cotangent = &terms[0].1;
        return quote!(__private::cotangent_times(#cotangent, #call.tangent));
    }
    let results = op.returned().map(|(i, _)| match terms.iter().any(|(t, _)| *t == i) {
        true => local("result", i),
        false => local("_result", i),
    });
    let products = terms.iter().map(|(i, cotangent)| {
        let result = local("result", *i);
        quote!(__private::cotangent_times(#cotangent, #result.tangent))
    });
    quote!({
        let (#(#results,)*) = #call;
        #(#products)+*
    })
}

/// The call of the function on dual numbers. Its inputs follow the cotangents.
fn dual_call(op: &Op, wrt: usize, cotangents: usize) -> TokenStream {
    let function = op.ident();
    let types = op.generics.iter().map(|g| {
        let ident = &g.ident;
        if g.is_differentiable() { quote!(__private::Dual<#ident>) } else { quote!(#ident) }
    });
    let lift = |ident: &Ident, how: TokenStream, optional: bool| {
        if optional { quote!(#ident.map(#how)) } else { quote!(#how(#ident)) }
    };
    let args = op.params.iter().map(|slot| match *slot {
        Slot::Input(i) => {
            let (ident, optional) = (&input(cotangents + i), op.inputs[i].arity == Arity::Optional);
            match op.is_differentiable(op.inputs[i].elem) {
                true if i == wrt => lift(ident, quote!(__private::Dual::variable), optional),
                true => lift(ident, quote!(__private::Dual::constant_of), optional),
                false => quote!(#ident),
            }
        }
        Slot::Attr(i) => {
            let attr = &op.attrs[i];
            let ident = &attribute(i);
            let uniform = attr.kind == AttrKind::Float && op.generics.first().is_some_and(Generic::is_differentiable);
            if uniform { lift(ident, quote!(__private::Dual::constant_of), attr.optional) } else { quote!(#ident) }
        }
        Slot::Output(_) => TokenStream::new(),
    });
    quote!(#function::<#(#types),*>(#(#args),*))
}
