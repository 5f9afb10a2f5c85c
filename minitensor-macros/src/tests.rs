//! Compares the pretty-printed expansion with a committed file, so that people can read it.
//!
//! `BLESS=1 cargo test -p minitensor-macros` rewrites the files.

use std::path::PathBuf;

use proc_macro2::TokenStream;
use quote::quote;

use crate::diag::messages;

/// Splits `#[custom_op(…)] fn …` and prints its expansion.
fn expanded(attr: TokenStream, item: TokenStream) -> String {
    let tokens = crate::op(attr, item).to_string();
    let file = syn2::parse_file(&tokens).unwrap_or_else(|e| panic!("the expansion is no Rust: {e}\n{tokens}"));
    prettyplease::unparse(&file)
}

fn assert_snapshot(name: &str, attr: TokenStream, item: TokenStream) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(format!("{name}.rs"));
    let shown = expanded(attr, item);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        return std::fs::write(path, shown).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == shown, "{} differs; BLESS=1 accepts this:\n{shown}", path.display());
}

#[test]
fn an_element_op_and_its_gradient() {
    assert_snapshot(
        "swish",
        quote!(alias = "silu", inplace),
        quote! {
            /// Swish (SiLU): `x · σ(x)`.
            pub fn swish<T: Float>(x: T) -> T { x * x.sigmoid() }
        },
    );
}

#[test]
fn uniforms_and_choices() {
    assert_snapshot(
        "clamp",
        quote!(),
        quote! {
            /// Limits every element to `[lo, hi]`.
            pub fn clamp<T: Real>(x: T, #[default = f64::NEG_INFINITY] lo: f64, #[default = f64::INFINITY] hi: f64) -> T {
                if x < lo { lo } else if x > hi { hi } else { x }
            }
        },
    );
}

#[test]
fn a_row_op_and_its_gradient() {
    assert_snapshot(
        "rms_norm",
        quote!(shape = (x: [.., n], weight: [n]) -> [.., n] where eps >= 0.0),
        quote! {
            /// Root-mean-square normalization over the last axis.
            pub fn rms_norm<R: Row>(x: R, weight: Option<R>, #[default = 1e-5] eps: f64) -> R {
                let y = x * (x.square().mean() + eps).rsqrt();
                if let Some(weight) = weight { y * weight } else { y }
            }
        },
    );
}

#[test]
fn an_op_with_complex_and_real_numbers() {
    assert_snapshot(
        "rotated",
        quote!(),
        quote! {
            /// `z · e^(iφ)`, scaled.
            pub fn rotated<T: Float>(z: Complex<T>, phi: T, #[default = 1.0] by: f64) -> Complex<T> {
                2.0 * by * z * Complex::from_polar(1.0, phi)
            }
        },
    );
}

#[test]
fn a_reduction_of_columns() {
    assert_snapshot(
        "counted",
        quote!(shape = (x: [.., n]) -> [..], axis = None, combine = add, backward = none),
        quote! {
            /// The number of elements that are not 0.
            pub fn counted<T: Element>(x: Columns<T>, out: &mut [i64]) {
                columns::count_nonzero(x, out);
            }
        },
    );
}

#[test]
fn a_precompiled_row_op() {
    assert_snapshot(
        "total",
        quote!(shape = (x: [.., n]) -> [..], precompiled),
        quote! {
            /// The sum of a row.
            pub fn total<R: Row>(x: R) -> R { x.sum() }
        },
    );
}

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
        // Assignments replace what is known of a name.
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
        // What is made of attributes is known.
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
        // What a closure is called with isn't seen.
        (quote!(x + y.map_or(R::zero(), |v| v.mean())), "8usize", "(0usize, 3usize)"),
    ] {
        let name = body.to_string();
        assert_eq!(levels(body), (reductions.to_owned(), passes.to_owned()), "{name}");
    }
}

#[test]
fn a_cell_op_and_its_gradient() {
    assert_snapshot(
        "recurrence",
        quote!(shape = (a: [.., n], b: [.., n]) -> [.., n]),
        quote! {
            /// `hᵢ = aᵢ · hᵢ₋₁ + bᵢ`.
            pub fn recurrence<T: Float>(a: &[T], b: &[T], out: &mut [T]) {
                let mut h = T::zero();
                for i in 0..a.len() {
                    h = a[i] * h + b[i];
                    out[i] = h;
                }
            }
        },
    );
}

#[test]
fn a_cell_op_with_a_formula() {
    assert_snapshot(
        "topk",
        quote!(
            shape = (x: [.., n]) -> (values: [.., k], indices: [.., k]) where k <= n,
            dtype = (x: T) -> (T, i64),
            backward = |d_values, _| { x: d_values.scatter(-1, indices, n) },
        ),
        quote! {
            /// The `k` largest elements of every row, and where they stood.
            pub fn topk<T: Real>(x: &[T], k: usize, values: &mut [T], indices: &mut [i64]) { todo!() }
        },
    );
}

#[test]
fn in_place_by_mutable_references() {
    assert_snapshot(
        "sgd_step",
        quote!(),
        quote! {
            /// One SGD step.
            pub fn sgd_step<T: Float>(p: &mut T, v: &mut T, g: T, lr: f64, #[default = 0.9] momentum: f64) {
                *v = *v * momentum + g;
                *p = *p - *v * lr;
            }
        },
    );
}

#[test]
fn a_cell_op_that_changes_an_input_in_place() {
    assert_snapshot(
        "bubble",
        quote!(shape = (x: [.., n]) -> (swaps: [..])),
        quote! {
            /// Moves the largest element of every row to its end. Returns the number of swaps.
            pub fn bubble<T: Real>(x: &mut [T], swaps: &mut i64) { todo!() }
        },
    );
}

#[test]
fn a_tensor_op() {
    assert_snapshot(
        "linear",
        quote!(name = "nn::linear"),
        quote! {
            /// `x @ w + b`
            pub fn linear(x: &Tensor, w: &Tensor, b: Option<&Tensor>) -> Result<Tensor> { todo!() }
        },
    );
}

#[test]
fn a_tensor_op_with_operators_and_slices() {
    assert_snapshot(
        "attention",
        quote!(),
        quote! {
            /// Attention.
            pub fn attention(q: &Tensor, k: &Tensor, mask: Option<&Tensor>, scale: Option<f64>) -> Result<Tensor> {
                let scale = scale.unwrap_or(1.0 / (q.shape()[q.ndim() - 1] as f64).sqrt());
                let mut scores = q.matmul(k.matrix_transpose()) * scale;
                if let Some(mask) = mask {
                    scores += mask;
                }
                let (top, _) = scores.topk(k = 3)?;
                Ok(ops::concat([top, scores[(.., 1..n, 0)]], axis = -1))
            }
        },
    );
}

#[test]
fn the_macro_knows_every_method_of_tensors() {
    use crate::lower::tensor::Returns;
    let src = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../minitensor/src");
    let of = |folder: &str| std::fs::read_dir(src.join(folder)).unwrap().map(|file| file.unwrap().path());
    for file in of("tensor").chain([src.join("autograd/meta.rs"), src.join("guest/tensor.rs")]) {
        for item in syn::parse_file(&std::fs::read_to_string(file).unwrap()).unwrap().items {
            let syn::Item::Impl(item) = item else { continue };
            if item.trait_.is_some() || crate::ast::spelling(&item.self_ty) != "Tensor" {
                continue;
            }
            for part in item.items {
                let syn::ImplItem::Fn(method) = part else { continue };
                let is_method = matches!(method.sig.inputs.first(), Some(syn::FnArg::Receiver(_)));
                if !is_method || !matches!(method.vis, syn::Visibility::Public(_)) {
                    continue;
                }
                let returns = match crate::ast::spelling(&method.sig.output).as_str() {
                    "->Tensor" => Returns::Tensor,
                    "->Result<Tensor>" => Returns::Result,
                    _ => Returns::Other,
                };
                let name = method.sig.ident.to_string();
                assert_eq!(crate::lower::tensor::method(&name), Some(returns), "{name}");
            }
        }
    }
}

#[test]
fn an_optional_input_and_an_enum() {
    assert_snapshot(
        "scaled",
        quote!(backward = |d_out| {
            let s = d_out * 2.0;
            x: if exact { s / (1.0 + n_scale) } else { s },
            bias: d_out.sum(axis = -1, keepdims = true),
        }),
        quote! {
            /// Scales.
            pub fn scaled<T: Float>(
                x: T,
                bias: Option<T>,
                #[default = 1.0] n_scale: f64,
                #[default = true] exact: bool,
                #[default = Approximate::None] approximate: Approximate,
            ) -> T {
                let y = match approximate { Approximate::None => x, Approximate::Tanh => 0.5 };
                let mut acc = 0.0;
                for i in 0..3 { acc += y * i; }
                match bias { Some(b) => acc + b.max(2.0), None => if exact && x > 0.0 { 1.0 } else { -y } }
            }
        },
    );
}

#[test]
fn parts_of_a_formula_that_are_no_tensors_stay_the_rust_that_they_are() {
    let item = quote! {
        /// Scales.
        pub fn scaled<T: Float>(x: T, weight: Option<T>, #[default = 2] n: i64, #[default = Mode::Sum] mode: Mode) -> T { x }
    };
    let with = |weight: TokenStream| {
        let formula = quote!(backward = |d_out| {
            let (first, last) = (x.shape[0], x.shape.last().copied().unwrap_or(1) as f64);
            let size: f64 = x.shape.iter().map(|s| *s as f64).product::<f64>() * std::f64::consts::PI;
            let (a, b) = (d_out * size, d_out / last);
            let (sorted, _) = sort(a + b, axis = -1);
            let factor = match mode {
                Mode::Sum if n > 1 => -1.0,
                Mode::Mean | Mode::Sum => f64::from(2_i32).max(SCALE),
            };
            let each = if weight == None { sorted * factor } else { sorted.expand([first, n]) };
            x: if let Some(w) = weight { each * w } else { -each },
            weight: if weight != None { sum(stack([each, x], 0), [0]) } else { #weight },
        });
        expanded(formula, item.clone())
    };
    let shown = with(quote!(vec!(1).len(); d_out));
    assert!(shown.contains("expected `}`, found `;`"), "{shown}");
    let shown = with(quote!(d_out * vec![1].len()));
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "let weight = ctx.optional_input(1)?;",
        "let (first, last) = ( ctx.shape(0)[0], ctx.shape(0).last().copied().unwrap_or(1) as f64, );",
        "let size: f64 = ctx.shape(0).iter().map(|s| *s as f64).product::<f64>() * std::f64::consts::PI;",
        "let [sorted, _] =",
        "match mode { Mode::Sum if n > 1 => -1.0, Mode::Mean | Mode::Sum => f64::from(2_i32).max(SCALE), };",
        "if weight.is_none() {",
        "if let Some(w) = &weight {",
        "if weight.is_some() {",
        "__private::list( &[__private::value(&each), __private::value(&x)], )?",
        "__private::value(&(vec![1].len()))",
    ] {
        assert!(shown.contains(part), "{part}\nis not in\n{shown}");
    }
}

#[test]
fn every_message_is_shown_to_a_reader() {
    let ui = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../ui-tests/ui");
    let folders = std::fs::read_dir(ui).unwrap().map(|folder| folder.unwrap().path());
    let cases = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|case| case.unwrap().path());
    let shown: String = cases
        .filter(|case| case.extension().is_some_and(|e| e == "stderr"))
        .map(|c| std::fs::read_to_string(c).unwrap())
        .collect();
    for (name, message) in messages::ALL.iter().chain(minitensor_schema::message::OF_MACRO) {
        let parts = || message.text.split("{}");
        let appears = shown.lines().any(|line| line.starts_with("error: ") && parts().all(|part| line.contains(part)));
        assert!(appears, "no case of ui-tests shows {name}: {}", message.text);
    }
    let blank = |line: &&str| line.contains("{}") && (line.starts_with("error: ") || line.contains("help: "));
    assert_eq!(shown.lines().find(blank), None, "a blank was left in a message");
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

/// The methods of the traits in a file of the kernels: the trait, the method, and its return type.
fn methods_of(file: &str) -> Vec<(String, String, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../kernels/src").join(file);
    let file = syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut methods = vec![];
    for item in file.items {
        let syn::Item::Trait(item) = item else { continue };
        for part in item.items {
            let syn::TraitItem::Fn(method) = part else { continue };
            let returns = crate::ast::spelling(&method.sig.output);
            methods.push((item.ident.to_string(), method.sig.ident.to_string(), returns));
        }
    }
    methods
}

#[test]
fn the_macro_knows_every_method_of_complex_numbers() {
    use crate::body::methods::{COMPLEX_ITEMS, COMPLEX_PARTS};
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../kernels/src/number/cartesian.rs");
    let file = syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (mut items, mut parts) = (vec![], vec![]);
    for item in file.items {
        let syn::Item::Impl(item) = item else { continue };
        for part in item.items {
            let syn::ImplItem::Fn(function) = part else { continue };
            let (name, output) = (function.sig.ident.to_string(), crate::ast::spelling(&function.sig.output));
            match (function.sig.receiver(), output.as_str()) {
                (Some(_), "->T") => parts.push(name),
                (None, "->Self") if !["constant", "select"].contains(&name.as_str()) => items.push(name),
                _ => {}
            }
        }
    }
    parts.sort();
    items.sort();
    let sorted = |names: &[&str]| {
        let mut names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!((sorted(COMPLEX_PARTS), sorted(COMPLEX_ITEMS)), (parts, items));
}

#[test]
fn the_macro_knows_every_method_of_elements_and_rows() {
    use crate::body::methods::{BITS, MASKS, METHODS, PAIRS, ROW_METHODS};
    let traits: Vec<&str> = METHODS.iter().map(|(bound, _)| *bound).collect();
    let methods = methods_of("number/scalar.rs");
    // Those that `Bits` is made of are no methods of bodies.
    let is_part = |name: &str| ["of_bits", "bits", "bits_equal", "bits_less"].contains(&name);
    let of_elements = methods.iter().filter(|(of, name, _)| traits.contains(&of.as_str()) && !is_part(name));
    let mut count = 0;
    for (of, name, returns) in of_elements {
        let table = match returns.as_str() {
            "->Self" => METHODS,
            "->Self::Mask" => MASKS,
            "->Bits<Self>" => BITS,
            _ => PAIRS,
        };
        let known = table.iter().any(|(bound, names)| bound == of && names.contains(&name.as_str()));
        assert!(known, "{of}::{name} {returns}");
        count += 1;
    }
    let listed: usize =
        [METHODS, MASKS, BITS, PAIRS].iter().flat_map(|table| table.iter()).map(|(_, names)| names.len()).sum();
    assert_eq!(count, listed);
    for (_, name, _) in methods_of("row/mod.rs").iter().filter(|(of, ..)| of.ends_with("Row")) {
        let other = ["reduce", "of_row", "stands_at", "any", "all"].contains(&name.as_str());
        assert!(other || ROW_METHODS.iter().any(|(row, _)| row == name), "Row::{name}");
    }
}
