//! Properties of the expansions of many bodies.

use proc_macro2::TokenStream;
use quote::quote;

use super::expanded;

#[test]
fn the_passes_of_a_row_body_are_counted() {
    let levels = |body: TokenStream| {
        let item = quote! {
            /// A body.
            fn op<R: Row>(x: R, y: Option<R>, #[default = true] flag: bool) -> R { #body }
        };
        let shown = expanded(quote!(shape = (x: [.., n], y: [.., n]) -> [.., n], precompiled), item);
        let line =
            |name: &str| shown.lines().find(|l| l.contains(name)).map(|l| l.trim().to_owned()).unwrap_or_default();
        let value =
            |line: String| line.rsplit_once("= ").map(|(_, v)| v.trim_end_matches(';').to_owned()).unwrap_or_default();
        (value(line("const REDUCTIONS")), value(line("const LEVELS")))
    };
    for (body, reductions, passes) in [
        (quote!(x.exp()), "0usize", "(0usize, 0usize)"),
        (quote!((x.cumsum() - x.mean()).reverse_cumsum()), "3usize", "(2usize, 2usize)"),
        (
            quote!({
                let e = (x - x.max()).exp();
                e / e.sum()
            }),
            "2usize",
            "(2usize, 2usize)",
        ),
        (quote!(x.max(x.min())), "1usize", "(1usize, 1usize)"),
        (quote!(if let Some(y) = y { x.dot(y) } else { x.sum() }), "8usize", "(0usize, 3usize)"),
        (quote!(if x > x.mean() { x.sum() } else { 0.0 }), "2usize", "(1usize, 1usize)"),
        (quote!(if flag { x - x.mean() } else { x }), "8usize", "(0usize, 3usize)"),
        (quote!((if flag { x * 2.0 } else { x }) * x.logsumexp()), "2usize", "(2usize, 2usize)"),
        (quote!(helper(x)), "8usize", "(0usize, 3usize)"),
        (quote!(if R::any(x > 1.0) { R::zero() } else { x.prod() }), "6usize", "(1usize, 1usize)"),
        // An assignment changes the passes of a name.
        (
            quote!({
                let mut z = x;
                z -= x.mean();
                z.square().mean()
            }),
            "2usize",
            "(2usize, 2usize)",
        ),
        (
            quote!({
                let mut z = x.mean();
                z = x;
                z.sum()
            }),
            "2usize",
            "(1usize, 1usize)",
        ),
        (
            quote!({
                let mut z = x;
                if flag {
                    z -= x.mean();
                }
                z.mean()
            }),
            "8usize",
            "(0usize, 3usize)",
        ),
        (
            quote!({
                let mut z = x;
                shift(&mut z);
                z.mean()
            }),
            "8usize",
            "(0usize, 3usize)",
        ),
        // A variable that is assigned under a condition depends on the condition.
        (
            quote!({
                let mut z = x;
                if x > x.mean() {
                    z = 1.0;
                }
                z.sum()
            }),
            "2usize",
            "(2usize, 2usize)",
        ),
        // A value that is made of attributes needs no pass.
        (
            quote!({
                let plain = !flag;
                if plain { x.mean() } else { (x - x.mean()).square().mean() }
            }),
            "8usize",
            "(0usize, 3usize)",
        ),
        (quote!(if y.is_some() { x.mean() } else { x.argmax() }), "8usize", "(0usize, 3usize)"),
        // Each element of a tuple has its own.
        (
            quote!({
                let (m, z) = (x.max(), 2.0 * x);
                m + z.sum()
            }),
            "2usize",
            "(1usize, 1usize)",
        ),
        (
            quote!({
                let p = (x.max(), x);
                p.1.sum() + (x - p.0).sum()
            }),
            "3usize",
            "(2usize, 2usize)",
        ),
        (
            quote!({
                let (a, .., b) = (x.max(), x, x);
                a + b.sum()
            }),
            "8usize",
            "(0usize, 3usize)",
        ),
        // A name ends with its block.
        (
            quote!({
                let z = x;
                let a = {
                    let z = x.max();
                    z * 2.0
                };
                a + z.sum()
            }),
            "2usize",
            "(1usize, 1usize)",
        ),
        // The arguments of a closure are not known.
        (quote!(x + y.map_or(R::zero(), |v| v.mean())), "8usize", "(0usize, 3usize)"),
    ] {
        let name = body.to_string();
        assert_eq!(levels(body), (reductions.to_owned(), passes.to_owned()), "{name}");
    }
}

#[test]
fn long_and_deep_bodies_are_lowered() {
    let sum = (0..400).map(|_| quote!(+ 2.0 * x.sin()));
    let chain = (0..200).map(|_| quote!(.abs()));
    let nested = (0..60).fold(quote!(x), |inner, k| quote!(if x > #k { #inner } else { (x, 2.0 * x).0 }));
    for body in [quote!(x #(#sum)*), quote!(x #(#chain)*), nested] {
        let shown = expanded(
            quote!(),
            quote! {
                /// A long body.
                fn op<T: Float>(x: T) -> T { #body }
            },
        );
        assert!(!shown.contains("compile_error"));
    }
    let sum = (0..200).map(|_| quote!(+ 2.0 * x.sin()));
    let chain = (0..200).map(|_| quote!(.abs()));
    for body in [quote!(x #(#sum)*), quote!(x #(#chain)*)] {
        // Not parsed here: the calls are nested too deeply for the stack of a test.
        let item = quote! {
            /// A long body.
            fn op(x: &Tensor) -> Result<Tensor> { Ok(#body) }
        };
        let shown = crate::op(quote!(), item).to_string();
        assert!(shown.contains("call") && !shown.contains("compile_error"));
    }
}
