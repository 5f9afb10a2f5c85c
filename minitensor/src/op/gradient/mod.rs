//! [`Gradients`]: the derived gradients of one op, with one [`Pullback`] for each kind of call.

pub(crate) mod decomposition;
mod functional;
pub(crate) mod pullback;
mod vjp;

pub use functional::{gradient, results_read};
pub use vjp::vjp;

use std::sync::Arc;

use minitensor_kernels::program::Program;
use smallvec::SmallVec;

use crate::__private::vjp_program;
use crate::attr::{Attr, AttrKind};
use crate::autograd::BackwardCall;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::def::{Backward, Body, Core, DTypeRule, Input, OpDef};
use crate::op::gradient::pullback::Pullback;
use crate::op::registry;
use crate::tensor::Tensor;
use minitensor_kernels::Kept;

/// The pullbacks of one op, by kind of call.
#[derive(Default)]
pub struct Gradients(Kept<Key, Pullback>);

/// The kind of a call: everything except the op on which its gradient depends.
#[derive(Clone, PartialEq)]
pub struct Key {
    /// The attributes. For a float, only whether it is given matters.
    attrs: SmallVec<[Attr; 2]>,
    /// The inputs that are given.
    given: Places,
    /// The inputs that need a gradient.
    wrt: Places,
    /// Whether an input is complex.
    pub is_complex: bool,
    /// Whether an input is stored in a narrower format than the compute dtype.
    pub is_narrow: bool,
}

/// A set of inputs, with one bit for each.
#[derive(Clone, Default, PartialEq)]
struct Places(SmallVec<[u64; 1]>);

impl Places {
    const BITS: usize = u64::BITS as usize;

    fn set(&mut self, place: usize) {
        if self.0.len() <= place / Self::BITS {
            self.0.resize(place / Self::BITS + 1, 0);
        }
        self.0[place / Self::BITS] |= 1 << (place % Self::BITS);
    }

    fn contains(&self, place: usize) -> bool {
        self.0.get(place / Self::BITS).is_some_and(|bits| bits >> (place % Self::BITS) & 1 != 0)
    }
}

impl Gradients {
    /// An empty cache.
    pub const fn new() -> Gradients {
        Gradients(Kept::new())
    }

    /// The pullback of a call.
    fn pullback(&self, op: &OpDef, key: Key, attrs: &[Attr]) -> Result<Arc<Pullback>> {
        if let Some(pullback) = self.0.find(|known| *known == key) {
            return Ok(pullback.clone());
        }
        let pullback = Arc::new(Pullback::new(op, &key, attrs)?);
        self.0.keep(key, pullback.clone());
        Ok(pullback)
    }
}

/// The program of a compiled vector-Jacobian product for real numbers. The program of its definition is for complex numbers, if the op
/// takes them: then it also computes the derivative by the conjugate, which is 0 here.
pub fn program_of_reals(vjp: &OpDef, attrs: &[Attr], is_given: impl Fn(usize) -> bool) -> Option<Program> {
    let op = registry::get(vjp.name.strip_suffix(".vjp")?).ok()?;
    let Backward::Derived(derived) = &op.backward else { return None };
    if !std::ptr::eq(&*derived.vjp, vjp) {
        return None;
    }
    let cotangents: Vec<usize> = op.cotangents().collect();
    let forward = op.program(attrs, |i| is_given(cotangents.len() + i)).ok()??;
    let wrt: Vec<usize> = derived.wrt.iter().map(|i| usize::from(*i)).collect();
    vjp_program(&forward, &cotangents, &wrt, false).ok()
}

/// The pullback of a call whose gradient is derived. It is needed before the call runs, since it determines which tensors are
/// saved. `None` also if constructing it fails: the backward pass then reports the error.
pub fn pullback(
    op: &OpDef,
    attrs: &[Attr],
    dtypes: impl Iterator<Item = Option<DType>>,
    needs: impl Fn(usize) -> bool,
) -> Option<Arc<Pullback>> {
    let gradients = of(op)?;
    gradients.pullback(op, Key::of(op, attrs, dtypes, needs), attrs).ok()
}

/// The gradients of the inputs that need one.
pub(crate) fn run(call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
    let op = call.op();
    if has_positions(op) {
        return decomposition::gradient(call);
    }
    if let Some(pullback) = call.pullback() {
        return pullback.run(call);
    }
    let gradients = of(op).ok_or_else(|| Error::runtime(format!("op '{}' has no derived gradient", op.name)))?;
    let dtypes = (0..call.num_inputs()).map(|i| call.is_given(i).then(|| call.dtype(i)));
    gradients.pullback(op, Key::of(op, call.attrs(), dtypes, |i| call.needs(i)), call.attrs())?.run(call)
}

/// Whether the gradient of a call reads an output.
pub fn saves_output(op: &OpDef, pullback: Option<&Pullback>, output: usize) -> bool {
    match (&op.backward, pullback) {
        (_, Some(pullback)) => pullback.saves_output(output),
        (Backward::Formula(f), _) => f.saved_outputs.contains(&(output as u8)),
        _ => false,
    }
}

fn of(op: &OpDef) -> Option<&Gradients> {
    match (&op.backward, &op.body) {
        // This gradient consists of recorded ops, and is not cached.
        _ if has_positions(op) => None,
        (Backward::Program(gradients), _) => Some(gradients),
        (Backward::Derived(derived), _) => Some(&derived.gradients),
        _ => None,
    }
}

/// Whether it is a row op without a compiled gradient that takes positions in the row, which a row program takes as numbers.
fn has_positions(op: &OpDef) -> bool {
    let is_position = |i: &Input| i.core == Core::Scalar && !matches!(i.dtype, DTypeRule::Generic(_));
    matches!((&op.backward, &op.body), (Backward::Program(_), Body::Cell(_))) && op.inputs.iter().any(is_position)
}

impl Key {
    fn of(
        op: &OpDef,
        attrs: &[Attr],
        dtypes: impl Iterator<Item = Option<DType>>,
        needs: impl Fn(usize) -> bool,
    ) -> Key {
        let static_part = |(a, value): (&crate::op::def::Attribute, &Attr)| match (a.kind, value) {
            (AttrKind::Float, Attr::Float(_)) => Attr::Float(0.0),
            _ => value.clone(),
        };
        let attrs = op.attrs.iter().zip(attrs).map(static_part).collect();
        let (given, wrt) = (Places::default(), Places::default());
        let mut key = Key { attrs, given, wrt, is_complex: false, is_narrow: false };
        for (i, dtype) in dtypes.enumerate() {
            let Some(dtype) = dtype else { continue };
            key.given.set(i);
            if needs(i) {
                key.wrt.set(i);
            }
            key.is_complex |= dtype.is_complex();
            key.is_narrow |= dtype.compute() != dtype;
        }
        key
    }

    pub fn is_given(&self, input: usize) -> bool {
        self.given.contains(input)
    }

    pub fn needs(&self, input: usize) -> bool {
        self.wrt.contains(input)
    }
}

/// A copy of an op starts with an empty cache.
impl Clone for Gradients {
    fn clone(&self) -> Self {
        Gradients::new()
    }
}

impl std::fmt::Debug for Gradients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gradients")
    }
}
