//! Compares the pretty-printed expansion with a committed file, so that people can read it.
//!
//! `BLESS=1 cargo test -p minitensor-macros` rewrites the files.

use std::path::PathBuf;

use proc_macro2::TokenStream;
use quote::quote;

use super::expanded;

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
