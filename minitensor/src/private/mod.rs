//! Runtime functions that the expansion of `#[custom_op]` calls. Not for hand-written code.

mod axis;
mod cell;
mod complex;
mod drawn;
mod recursion;
mod row;
mod value;

pub use std::borrow::Cow;
pub use std::convert::From;
pub use std::option::Option::{self, None, Some};
pub use std::primitive::{bool, f32, f64, i8, i16, i32, i64, str, u8, u16, u32, u64, usize};
pub use std::result::Result::Ok;
pub use std::vec;
pub use std::vec::Vec;

pub use axis::along_axis;
pub use cell::*;
pub use complex::{joined, optional_parts, parts};
pub use drawn::Drawn;
pub use recursion::Recursion;
pub use row::*;
pub use value::*;

pub use inventory;
pub use minitensor_kernels::cartesian::Complex;
pub use minitensor_kernels::program::{Output as ProgramOutput, Program, Symbol};
pub use minitensor_kernels::simd::{AtLevel, at_level};
pub use minitensor_kernels::{Bits, Filled};
use minitensor_kernels::{Columns, ColumnsMut};
pub use minitensor_kernels::{Const, Dual, Element, Field, Float, Int, Machine, Map, Mask, Num, Real, map};
pub use minitensor_kernels::{FieldOperand, FieldReference, FloatOperand, NumOperand, NumReference, RealOperand};
pub use ndarray;

pub use crate::attr::{Attr, AttrEnum, AttrKind, FromAttr, uniform};
pub use crate::autograd::BackwardCall;
pub use crate::dtype::{DType, DTypeSet, scalars};
pub use crate::error::{Error, Result};
pub use crate::impl_custom_op;
pub use crate::op::*;
pub use crate::tensor::{Device, Shape, Tensor};

use minitensor_kernels::cartesian::Mixed;
use ndarray::{ArrayView, ArrayViewMut, Dim as NdDim, ShapeBuilder, StrideShape};

macro_rules! comparisons {
    ($($name:ident: $bound:ident),*) => {$(
        #[inline(always)]
        pub fn $name<T: $bound>(a: T, b: T) -> T::Mask { a.$name(b) }
    )*};
}
comparisons!(less: Real, less_equal: Real, greater: Real, greater_equal: Real, equal: Element, not_equal: Element);

/// A value that becomes an element: a literal, an attribute, or what the body computes from them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number",
    label = "expected a number or an element",
    note = "literals and attributes of the types `f64`, `i64` and `usize` become elements"
)]
pub trait Literal {
    #[doc(hidden)]
    fn value(self) -> Const;
}
#[diagnostic::do_not_recommend]
impl<V: Into<Const>> Literal for V {
    #[inline(always)]
    fn value(self) -> Const {
        self.into()
    }
}

/// A literal or an attribute as an element.
#[inline(always)]
pub fn lit<T: Element>(value: impl Literal) -> T {
    T::constant(value.value())
}

/// An integer exponent or position: a literal or an attribute.
#[diagnostic::on_unimplemented(
    message = "expected an integer",
    label = "`{Self}` is not an integer",
    note = "the integers of a body are `i64`, `usize` and literals"
)]
pub trait Exponent {
    #[doc(hidden)]
    fn exponent(self) -> i64;
}
macro_rules! exponents {
    ($($t:ty),*) => {$(
        impl Exponent for $t {
            #[inline(always)]
            fn exponent(self) -> i64 { self as i64 }
        }
    )*};
}
exponents!(i32, i64, usize);

/// `x.powi(n)`, where `n` is an integer of any type of attributes.
#[inline(always)]
pub fn exponent(n: impl Exponent) -> i64 {
    n.exponent()
}

/// `vec![…]` in the body of a cell.
#[inline(always)]
pub fn vec_of<T, const N: usize>(items: [T; N]) -> Vec<T> {
    items.into()
}

/// `vec![item; count]` in the body of a cell. Too large a count ends the call with an error.
#[inline(always)]
pub fn vec_repeat<T: Clone>(item: T, count: usize) -> Vec<T> {
    minitensor_kernels::stop::filled(item, count)
}

/// The element of a row at a position; NaN if there is no such position.
#[inline(always)]
pub fn at_number<R: minitensor_kernels::Row>(row: R, position: R) -> R {
    let exists = position.greater_equal(lit(0)) & position.less(row.count()) & position.equal(position.floor());
    R::select(exists, row.at(position.to_index()), lit(f64::NAN))
}

/// The element of a row of integers at a position; 0 if there is no such position.
#[inline(always)]
pub fn at_integer<R: minitensor_kernels::RealRow>(row: R, position: R) -> R {
    row.at(position.to_index())
}

/// A number of memory without its fraction, which is then cast to an integer type as by Rust's `as`: floats are limited to its range, but
/// integers wrap.
#[inline(always)]
pub fn truncated<T: Machine + Real>(x: T, least: i128, most: i128) -> i128 {
    let whole = x.truncated();
    if T::IS_EXACT { whole } else { whole.clamp(least, most) }
}

/// `if`/`else` on elements.
#[inline(always)]
pub fn select<T: Element>(condition: T::Mask, a: impl Fn() -> T, b: impl Fn() -> T) -> T {
    T::select(condition, a(), b())
}

/// The values of a branch of an `if` on data. It is computed for every element, so it must not modify anything around it.
#[inline(always)]
pub fn branch<R>(values: impl Fn() -> R) -> R {
    values()
}

/// `&&` on elements.
#[inline(always)]
pub fn and<M: Mask>(a: M, b: M) -> M {
    a & b
}

/// `||` on elements.
#[inline(always)]
pub fn or<M: Mask>(a: M, b: M) -> M {
    a | b
}

/// `==` on masks.
#[inline(always)]
pub fn alike<M: Mask>(a: M, b: M) -> M {
    (a & b) | !(a | b)
}

/// `!=` and `^` on masks.
#[inline(always)]
pub fn unlike<M: Mask>(a: M, b: M) -> M {
    (a | b) & !(a & b)
}

/// The program of a body.
pub fn program(
    inputs: &[&str],
    uniforms: &[&str],
    body: impl FnOnce(&[Symbol], &[Symbol]) -> Vec<(String, ProgramOutput)>,
) -> Result<Program> {
    Program::write_bounded(inputs, uniforms, body).map_err(|e| Error::value(e.to_string()))
}

/// The entry of a table at a position, which is rounded down; the first or last entry if the position is outside of the table. NaN stays
/// NaN. 0 if the table is empty.
#[inline(always)]
pub fn lookup<T: Real>(at: T, table: &[impl Copy + Literal]) -> T {
    fn entry<T: Real>(at: T, table: &[impl Copy + Literal], first: usize) -> T {
        match table {
            [] => T::zero(),
            [only] => lit(*only),
            _ => {
                let (low, high) = table.split_at(table.len() / 2);
                let middle = first + low.len();
                T::select(at.less(lit(middle)), entry(at, low, first), entry(at, high, middle))
            }
        }
    }
    T::select(at.equal(at), entry(at, table, 0), at)
}

/// Whether a loop has ended for all elements, as far as this is known.
#[inline(always)]
pub fn is_known_false<M: Mask>(running: M) -> bool {
    running.is_known_false()
}

/// `!` on elements.
#[inline(always)]
pub fn not<M: std::ops::Not<Output = M>>(a: M) -> M {
    !a
}

/// Unary minus on elements.
#[inline(always)]
pub fn negative<T: Num>(x: T) -> T {
    x.negative()
}

/// `/` on elements that may be complex.
#[inline(always)]
pub fn divide<T: Field>(x: T, y: T) -> T {
    x.divide(y)
}

macro_rules! mixed {
    ($($name:ident),*) => {$(
        /// An operator on numbers of which either may be complex.
        #[inline(always)]
        pub fn $name<A: Mixed<B>, B>(a: A, b: B) -> A::Output {
            a.$name(b)
        }
    )*};
}
mixed!(plus, minus, multiplied, divided);

/// The type of a literal that does not fit in `i32`.
#[inline(always)]
pub const fn of_i64(value: i64) -> i64 {
    value
}

/// The same for one that does not fit in `i64`.
#[inline(always)]
pub const fn of_u64(value: u64) -> u64 {
    value
}

/// An optional complex number, of which both parts are given or none.
#[inline(always)]
pub fn optional_complex<T: Float>(re: Option<T>, im: Option<T>) -> Option<Complex<T>> {
    re.zip(im).map(|(re, im)| Complex::new(re, im))
}

/// A cotangent times a derivative. The derivative of a holomorphic function is conjugated. A cotangent of 0 contributes 0, even
/// where the derivative is infinite.
#[inline(always)]
pub fn cotangent_times<T: Num>(cotangent: T, tangent: T) -> T {
    tangent.conj().chain(cotangent)
}

/// A typed attribute.
#[inline(always)]
pub fn attr<'a, A: FromAttr<'a>>(attrs: &'a [Attr], index: usize) -> Result<A> {
    A::from_attr(&attrs[index])
}

/// A tuned attribute: its first candidate if no value is chosen.
#[inline]
pub fn tuned<A: for<'a> FromAttr<'a>>(attrs: &[Attr], index: usize, first: i64) -> Result<A> {
    match &attrs[index] {
        Attr::None => A::from_attr(&Attr::Int(first)),
        value => A::from_attr(value),
    }
}

/// An attribute that is one of a set of words. Its methods are those of [`KnownEnum`] if the type is an enum of attributes, else
/// those of [`UnknownEnum`]. So a type that is none is one compile error, where the definition names its words.
pub struct EnumOf<E>(std::marker::PhantomData<E>);
impl<E> EnumOf<E> {
    pub const NEW: EnumOf<E> = EnumOf(std::marker::PhantomData);
}

/// Reads and writes an enum of attributes.
pub trait KnownEnum<E> {
    #[doc(hidden)]
    fn read(&self, attrs: &[Attr], index: usize) -> Result<E>;
    #[doc(hidden)]
    fn word(&self, variant: E) -> &'static str;
}
impl<E: AttrEnum> KnownEnum<E> for EnumOf<E> {
    #[inline]
    fn read(&self, attrs: &[Attr], index: usize) -> Result<E> {
        let word: &str = attr(attrs, index)?;
        E::from_word(word).ok_or_else(|| Error::value(format!("'{word}' is not one of '{}'", E::WORDS.join("', '"))))
    }
    #[inline]
    fn word(&self, variant: E) -> &'static str {
        variant.word()
    }
}

/// The same methods for other types, in code that does not compile.
pub trait UnknownEnum<E> {
    #[doc(hidden)]
    fn read(&self, _attrs: &[Attr], _index: usize) -> Result<E> {
        unreachable!()
    }
    #[doc(hidden)]
    fn word(&self, _variant: E) -> &'static str {
        unreachable!()
    }
}
impl<E> UnknownEnum<E> for &EnumOf<E> {}

/// An optional `f64` attribute in a program. Its presence is known when the program is made, its value is not.
pub fn given(attrs: &[Attr], index: usize, uniform: Symbol) -> Option<Symbol> {
    (attrs[index] != Attr::None).then_some(uniform)
}

/// A named output of the program of a body.
pub fn named(name: &str, output: impl Into<ProgramOutput>) -> (String, ProgramOutput) {
    (name.to_owned(), output.into())
}

/// The program of the vector-Jacobian product of some outputs of a program with respect to some inputs. The complex version is
/// also correct for real numbers, which equal their own conjugates.
pub fn vjp_program(program: &Program, outputs: &[usize], wrt: &[usize], is_complex: bool) -> Result<Program> {
    let program = program.giving(outputs);
    let vjp = if is_complex { program.vjp_of_complex(wrt) } else { program.vjp(wrt) };
    vjp.ok_or_else(|| Error::runtime("the body has a function without a derivative"))
}

/// Whether an optional input of a cell is absent.
pub fn is_absent(arg: &CellArg<'_>) -> bool {
    arg.data.is_null()
}

/// The address of the first element of the core of a cell.
#[inline(always)]
fn place<T>(arg: &CellArg<'_>, cell: usize) -> *mut T {
    arg.data.wrapping_offset(cell as isize * arg.step).cast()
}

#[inline(always)]
fn numel(arg: &CellArg<'_>) -> usize {
    arg.shape.iter().product()
}

/// # Safety
/// The argument has a contiguous core of elements of type `T` for that cell. They are valid for reads for `'a`.
pub unsafe fn slice<'a, T>(arg: &CellArg<'a>, cell: usize) -> &'a [T] {
    // SAFETY: by the contract of this function, the core is contiguous and has `numel(arg)` elements.
    unsafe { std::slice::from_raw_parts(place(arg, cell), numel(arg)) }
}

/// # Safety
/// As for [`slice`]. The core is also valid for writes, and nothing else refers to it for `'a`.
pub unsafe fn slice_mut<'a, T>(arg: &CellArg<'a>, cell: usize) -> &'a mut [T] {
    // SAFETY: by the contract of this function, the core is contiguous, has `numel(arg)` elements and is not aliased.
    unsafe { std::slice::from_raw_parts_mut(place(arg, cell), numel(arg)) }
}

/// The height, width and distance of rows of a table of cells: one cell, or neighbouring ones as columns.
#[inline(always)]
fn table(arg: &CellArg<'_>) -> (usize, usize, usize) {
    match (arg.shape, arg.strides) {
        ([height, width], [stride, _]) => (*height, *width, *stride as usize),
        _ => (numel(arg), 1, 1),
    }
}

/// # Safety
/// The argument has a contiguous core of elements of type `T`, or neighbouring cells as columns. They are valid for reads for `'a`.
pub unsafe fn columns<'a, T>(arg: &CellArg<'a>, cell: usize) -> Columns<'a, T> {
    let (height, width, stride) = table(arg);
    // SAFETY: by the contract of this function.
    unsafe { Columns::from_raw_parts(place(arg, cell), height, width, stride) }
}

/// # Safety
/// As for [`columns`]. The elements are also valid for writes, and nothing else refers to them for `'a`.
pub unsafe fn columns_mut<'a, T>(arg: &CellArg<'a>, cell: usize) -> ColumnsMut<'a, T> {
    let (height, width, stride) = table(arg);
    // SAFETY: by the contract of this function.
    unsafe { ColumnsMut::from_raw_parts(place(arg, cell), height, width, stride) }
}

/// # Safety
/// The core of the argument is one element of type `T`, valid for reads for `'a`.
pub unsafe fn scalar<'a, T>(arg: &CellArg<'a>, cell: usize) -> &'a T {
    // SAFETY: by the contract of this function.
    unsafe { &*place(arg, cell) }
}

/// # Safety
/// As for [`scalar`]. The element is also valid for writes, and nothing else refers to it for `'a`.
pub unsafe fn scalar_mut<'a, T>(arg: &CellArg<'a>, cell: usize) -> &'a mut T {
    // SAFETY: by the contract of this function.
    unsafe { &mut *place(arg, cell) }
}

/// A shape with strides. An empty array has those of ndarray, which copies them.
macro_rules! layout {
    ($sizes:ident, $strides:ident) => {
        if $sizes.contains(&0) { StrideShape::from(NdDim($sizes)) } else { NdDim($sizes).strides(NdDim($strides)) }
    };
}

macro_rules! views {
    ($($n:literal $view:ident $view_mut:ident;)*) => {$(
        /// # Safety
        /// The core of the argument has `$n` dimensions and elements of type `T`, valid for reads for `'a`.
        pub unsafe fn $view<'a, T>(arg: &CellArg<'a>, cell: usize) -> ArrayView<'a, T, NdDim<[usize; $n]>> {
            let (first, sizes, strides, turned) = upright::<T, $n>(arg, cell);
            let layout = layout!(sizes, strides);
            // SAFETY: by the contract of this function. `upright` returns the lowest address and positive strides.
            let mut view = unsafe { ArrayView::from_shape_ptr(layout, first.cast_const()) };
            turned.into_iter().enumerate().filter(|(_, t)| *t).for_each(|(d, _)| view.invert_axis(ndarray::Axis(d)));
            view
        }

        /// # Safety
        /// As for the shared view. The core is also valid for writes, and nothing else refers to it for `'a`.
        pub unsafe fn $view_mut<'a, T>(arg: &CellArg<'a>, cell: usize) -> ArrayViewMut<'a, T, NdDim<[usize; $n]>> {
            let (first, sizes, strides, turned) = upright::<T, $n>(arg, cell);
            let layout = layout!(sizes, strides);
            // SAFETY: as above. The core is not aliased, by the contract of this function.
            let mut view = unsafe { ArrayViewMut::from_shape_ptr(layout, first) };
            turned.into_iter().enumerate().filter(|(_, t)| *t).for_each(|(d, _)| view.invert_axis(ndarray::Axis(d)));
            view
        }
    )*};
}
views! { 1 view1 view1_mut; 2 view2 view2_mut; 3 view3 view3_mut; 4 view4 view4_mut; 5 view5 view5_mut; }

/// The same core from its lowest address with positive strides, and which axes are reversed by that.
fn upright<T, const N: usize>(arg: &CellArg<'_>, cell: usize) -> (*mut T, [usize; N], [usize; N], [bool; N]) {
    let sizes: [usize; N] = std::array::from_fn(|d| arg.shape[d]);
    let turned = std::array::from_fn(|d| arg.strides[d] < 0);
    let start: isize = (0..N).map(|d| (arg.strides[d] * (sizes[d].max(1) as isize - 1)).min(0)).sum();
    let strides = std::array::from_fn(|d| arg.strides[d].unsigned_abs());
    (place::<T>(arg, cell).wrapping_offset(start), sizes, strides, turned)
}

/// A return type of a body over whole tensors.
pub trait IntoOutputs {
    #[doc(hidden)]
    fn into_outputs(self) -> Result<Vec<Tensor>>;
}
impl IntoOutputs for Tensor {
    fn into_outputs(self) -> Result<Vec<Tensor>> {
        Ok(vec![self])
    }
}
impl IntoOutputs for () {
    fn into_outputs(self) -> Result<Vec<Tensor>> {
        Ok(Vec::new())
    }
}
impl IntoOutputs for Vec<Tensor> {
    fn into_outputs(self) -> Result<Vec<Tensor>> {
        Ok(self)
    }
}
impl<V: IntoOutputs> IntoOutputs for Result<V> {
    fn into_outputs(self) -> Result<Vec<Tensor>> {
        self.and_then(V::into_outputs)
    }
}
macro_rules! tuples {
    ($(($($v:ident $t:ident),*))*) => {$(
        impl IntoOutputs for ($($t,)*) {
            fn into_outputs(self) -> Result<Vec<Tensor>> { let ($($v,)*) = self; Ok(vec![$($v),*]) }
        }
    )*};
}
tuples! {
    (a Tensor, b Tensor) (a Tensor, b Tensor, c Tensor) (a Tensor, b Tensor, c Tensor, d Tensor)
    (a Tensor, b Tensor, c Tensor, d Tensor, e Tensor) (a Tensor, b Tensor, c Tensor, d Tensor, e Tensor, f Tensor)
    (a Tensor, b Tensor, c Tensor, d Tensor, e Tensor, f Tensor, g Tensor)
    (a Tensor, b Tensor, c Tensor, d Tensor, e Tensor, f Tensor, g Tensor, h Tensor)
}
