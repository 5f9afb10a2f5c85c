//! Names that the expansion uses, too, or that Rust knows.
#![allow(non_camel_case_types, non_upper_case_globals, dead_code, unused_imports)]

use minitensor::OpRef;
use minitensor::prelude::*;

/// Parameters named like the op, and by raw identifiers.
mod parameters {
    use super::*;

    /// An element op whose input is named like itself.
    #[custom_op(inplace)]
    pub fn swish<T: Float>(swish: T) -> T {
        swish * swish.sigmoid()
    }

    /// The same with an attribute.
    #[custom_op]
    pub fn leaky<T: Float>(x: T, #[default = 0.1] leaky: f64) -> T {
        if x > 0.0 { x } else { leaky * x }
    }

    /// Raw identifiers of all kinds.
    #[custom_op]
    pub fn r#type<T: Float>(r#type: T, r#ref: Option<T>, #[default = 1.0] r#move: f64, #[default = true] r#box: bool) -> T {
        let r#loop = r#type * r#move;
        match r#ref {
            Some(r#ref) if r#box => r#loop + r#ref,
            _ => r#loop,
        }
    }

    /// Raw identifiers in a row.
    #[custom_op(
        shape = (r#type: [.., r#fn], r#ref: [..], r#match: [r#fn]) -> [.., r#fn] where r#move > 0.0,
    )]
    pub fn r#struct<R: Row>(r#type: R, r#ref: R, r#match: Option<R>, #[default = 1.0] r#move: f64) -> R {
        let y = r#type * r#ref / (r#move + r#type.square().mean());
        if let Some(r#match) = r#match { y * r#match } else { y }
    }

    /// Raw identifiers in a cell, and in its formula.
    #[custom_op(
        shape = (r#type: [.., r#fn]) -> (r#enum: [.., r#fn], [save] r#use: [..]),
        backward = |r#dyn| { r#type: r#dyn * r#move * r#use.unsqueeze(-1) * 2.0 / (r#fn + 1) },
    )]
    pub fn r#impl<T: Float>(r#type: &[T], r#move: f64, r#enum: &mut [T], r#use: &mut T) {
        *r#use = T::one();
        r#enum.copy_from_slice(r#type);
        let _ = r#move;
    }

    /// A row named like itself.
    #[custom_op(shape = (centred: [.., n], target: [..]) -> [.., n])]
    pub fn centred<R: Row>(centred: R, target: R::Index) -> R {
        centred - centred.mean() * centred.at(target)
    }

    /// A cell named like itself.
    #[custom_op(shape = (reversed: [.., n]) -> [.., n], backward = |d| { reversed: flip(d, -1) })]
    pub fn reversed<T: Num>(reversed: &[T], out: &mut [T]) {
        reversed.iter().rev().zip(out).for_each(|(x, out)| *out = *x);
    }

    /// Whole tensors, named like itself.
    #[custom_op]
    pub fn itself(itself: &Tensor) -> Result<Tensor> {
        Ok(itself.clone())
    }
}

/// Names of local variables of the expansion, for parameters and for ops.
mod locals {
    use super::*;

    /// Names of an element op's expansion.
    #[custom_op]
    pub fn attrs<T: Float>(inputs: T, outputs: T, has_args: T, args: Option<T>, #[default = 1.0] n: f64, #[default = 2.0] body: f64, #[default = true] _dtypes: bool) -> T {
        if _dtypes { inputs * n + outputs } else { args.unwrap_or(has_args) * body }
    }

    /// Names of a gradient's expansion.
    #[custom_op]
    pub fn rt<T: Float>(d_out: T, result0: T, output0: T, input0: T, attr0: f64) -> (T, T) {
        (d_out * result0 * attr0, output0 + input0)
    }

    /// Names of a row's expansion.
    #[custom_op(shape = (attrs: [.., n], args: [.., n], has: [n], cells: [..]) -> [.., n])]
    pub fn body<R: Row>(attrs: R, args: R, cells: R, has: Option<R>, #[default = 1.0] results: f64, #[default = 1.0] inputs: f64, #[default = 2.0] uniforms: f64) -> R {
        let y = attrs * args.sum() * results + cells;
        if let Some(has) = has { y * has * inputs } else { y * uniforms }
    }

    /// Names of a cell's expansion.
    #[custom_op(
        shape = (args: [.., n], cell: [..]) -> (cells: [.., n], kernel: [..]),
        backward = |gradients, ctx| { args: gradients * attrs + ctx.unsqueeze(-1), cell: none },
    )]
    pub fn cell<T: Float>(args: &[T], cell: &T, attrs: f64, run: bool, cells: &mut [T], kernel: &mut T) {
        cells.iter_mut().zip(args).for_each(|(out, x)| *out = *x);
        *kernel = if run { *cell } else { T::zero() };
        let _ = attrs;
    }

    /// Names of a formula's expansion.
    #[custom_op(backward = |call| {
        let gradients = call * ctx;
        ctx: gradients * 2.0 * needs,
        needs: gradients * ctx,
    })]
    pub fn backward<T: Float>(ctx: T, needs: T) -> T {
        ctx * needs
    }

    /// Names of a tensor op's expansion.
    #[custom_op]
    pub fn call(call: &Tensor, outputs: Option<&Tensor>, #[default = true] attrs: bool, #[default = 1.0] inputs: f64) -> Result<Tensor> {
        let _ = (outputs, inputs, attrs);
        Ok(call.clone())
    }

    /// A list of that name.
    #[custom_op]
    pub fn op(tensor: &Tensor, inputs: &[&Tensor]) -> Result<Tensor> {
        let _ = inputs;
        Ok(tensor.clone())
    }
}

/// Items of the expansion, and constants like its ops.
mod items {
    use super::*;

    pub const DEF: f64 = 2.0;
    pub const VJP: f64 = 3.0;
    pub const EXP: f64 = 4.0;
    pub const MULTIPLY: f64 = 5.0;

    /// An attribute's words.
    #[derive(AttrEnum, Clone, Copy, Debug, PartialEq)]
    pub enum Body {
        Loop,
        Cell,
    }

    /// Words named like prelude items.
    #[derive(AttrEnum, Clone, Copy, Debug, PartialEq)]
    pub enum Loop {
        None,
        Some,
        Ok,
    }

    pub mod rt {
        pub const HALF: f64 = 0.5;
    }

    pub fn swish_kernel(x: f64) -> f64 {
        x
    }

    /// Constants and types that the expansion might shadow.
    #[custom_op(backward = |d| { x: d.exp() * EXP * MULTIPLY * swish_kernel(half) })]
    pub fn swish<T: Float>(
        x: T,
        #[default = DEF] definition: f64,
        #[default = VJP] vjp: f64,
        #[default = rt::HALF] half: f64,
        #[default = Body::Loop] body: Body,
        #[default = Loop::None] cell: Loop,
    ) -> T {
        match body {
            Body::Loop => x * definition * half,
            Body::Cell => match cell {
                Loop::None => x * vjp,
                _ => x,
            },
        }
    }

    /// The same in a row.
    #[custom_op(shape = (x: [.., n]) -> [.., n])]
    pub fn row<R: Row>(x: R, #[default = DEF] definition: f64, #[default = Body::Loop] body: Body) -> R {
        match body {
            Body::Loop => x - x.mean() * definition,
            Body::Cell => x,
        }
    }

    /// The same in a cell.
    #[custom_op(shape = (x: [.., n]) -> [.., n], backward = none)]
    pub fn cell<T: Float>(x: &[T], #[default = Body::Loop] body: Body, out: &mut [T]) {
        let _ = body;
        out.copy_from_slice(x);
    }

    /// `x`, and what its own names are.
    #[custom_op]
    pub fn swish_vjp<T: Float>(x: T, d_x: T, d_out: T) -> T {
        x * d_x * d_out
    }

    /// A row of such names.
    #[custom_op(shape = (x: [.., n], d_x: [.., n], d_out: [..]) -> [..])]
    pub fn swish_program<R: Row>(x: R, d_x: R, d_out: R) -> R {
        (x * d_x).sum() * d_out
    }
}

/// Dtype variables named like types.
mod variables {
    use super::*;

    /// A variable named like a primitive.
    #[custom_op]
    pub fn primitive<f32: Float>(x: f32, y: Option<f32>, #[default = 2.0] k: f64, #[default = true] flag: bool) -> f32 {
        if flag { x * k } else { y.unwrap_or(x) }
    }

    /// A variable named like a struct of the expansion.
    #[custom_op(shape = (x: [.., n]) -> [.., n], backward = none)]
    pub fn structure<Cell: Float>(x: &[Cell], out: &mut [Cell]) {
        out.copy_from_slice(x);
    }

    /// The same of an element.
    #[custom_op]
    pub fn element<Loop: Float>(x: Loop) -> Loop {
        x * x
    }

    /// The same of a row.
    #[custom_op(shape = (x: [.., n]) -> [.., n])]
    pub fn row<Body: Row>(x: Body) -> Body {
        x - x.mean()
    }

    /// A variable named like the op.
    #[custom_op]
    pub fn same<same: Float>(x: same) -> same {
        x * x
    }

    /// Variables named like types of the prelude.
    #[custom_op]
    pub fn prelude<Result: Float, Vec: Num>(x: Result, y: Vec) -> (Result, Vec) {
        (x * x, y * y)
    }
}

/// A module whose names are all its own: nothing is taken from Rust's prelude.
mod alone {
    #![no_implicit_prelude]

    use ::minitensor::prelude::{ArrayView1, AttrEnum, Float, Num, Row, Tensor, custom_op};

    pub mod core {}
    pub mod std {}
    pub mod minitensor {}
    pub struct Option;
    pub struct Result;
    pub struct Vec;
    pub struct Some;
    pub struct None;
    pub struct Ok;
    pub struct String;
    pub struct Box;

    /// Like a function of the prelude.
    #[custom_op]
    pub fn drop<T: Float>(x: T, y: T) -> T {
        x * y
    }

    /// Like a method.
    #[custom_op(inplace)]
    pub fn min<T: Float>(x: T, #[default = 0.5] k: f64) -> T {
        if x < k { x } else { x * k }
    }

    /// Words.
    #[derive(AttrEnum, ::core::clone::Clone, ::core::marker::Copy)]
    pub enum Mode {
        Up,
        Down,
    }

    /// A row.
    #[custom_op(shape = (x: [.., n], y: [..], z: [n]) -> [.., n] where k > 0.0)]
    pub fn into<R: Row>(x: R, y: R, z: ::core::option::Option<R>, #[default = 1.0] k: f64, #[default = Mode::Up] mode: Mode) -> R {
        let y = match mode {
            Mode::Up => x * y / k,
            Mode::Down => x - x.mean(),
        };
        match z {
            ::core::option::Option::Some(z) => y * z,
            _ => y,
        }
    }

    /// A cell.
    #[custom_op(
        shape = (x: [.., n]) -> (sum: [..], [save] first: [..]),
        backward = |d| { x: d.unsqueeze(-1).expand(x.shape) * first.unsqueeze(-1) },
    )]
    pub fn cell<T: Num>(x: ArrayView1<T>, sum: &mut T, first: &mut T) {
        *first = T::one();
        *sum = T::zero();
        for x in &x {
            *sum = *sum + *x;
        }
    }

    /// Whole tensors.
    #[custom_op]
    pub fn vec(x: &Tensor, others: &[&Tensor], flag: bool) -> Tensor {
        let _ = (others, flag);
        ::core::clone::Clone::clone(x)
    }
}

/// Ops that a macro writes, whose names are the macro's.
macro_rules! scaled {
    ($($name:ident)*) => {$(
        /// Scaled.
        #[custom_op(backward = |d| { let twice = d * 2.0; x: twice * by * y, y: twice * x })]
        pub fn $name<T: Float>(x: T, y: T, by: f64) -> T {
            let z = x * y;
            z * by
        }
    )*};
}
scaled!(doubled tripled);

/// An op in a block.
fn block() -> OpRef {
    /// Inside.
    #[custom_op]
    pub fn inside<T: Float>(inside: T) -> T {
        inside * 2.0
    }
    inside::op()
}

fn names(op: &OpRef) -> Vec<&str> {
    op.inputs.iter().map(|i| i.name.as_ref()).chain(op.attrs.iter().map(|a| a.name.as_ref())).collect()
}

fn main() {
    assert_eq!(names(&parameters::r#type::op()), ["type", "ref", "move", "box"]);
    let op = parameters::r#impl::op();
    let minitensor::op::ShapeRule::Core(rule) = &op.shape else { panic!("it has a shape") };
    assert_eq!(rule.text, "(type: [.., fn]) -> (enum: [.., fn], [save] use: [..])");
    assert_eq!(names(&locals::cell::op()), ["args", "cell", "attrs", "run"]);
    assert_eq!(block().name, "inside");
    // The gradients of the others call ops that this crate does not link.
    minitensor::testing::opcheck(&parameters::swish::op(), &[]).into_result().unwrap();
}
