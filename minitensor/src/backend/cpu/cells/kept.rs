//! Plans of small calls, kept for the next call of the same op on tensors of the same layouts: to find the plan of a
//! small call takes longer than to compute it.

use std::cell::RefCell;
use std::ptr;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use super::call::{Call, Results};
use super::plan::Plan;
use crate::attr::Attr;
use crate::backend::Wanted;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::call::dtype_rule::DTypes;
use crate::op::{OpDef, OpRef, Role};
use crate::precision::is_wide;
use crate::tensor::{Device, Shape, Strides, Tensor};

/// The number of plans that a thread keeps.
const PLANS: usize = 64;
/// The most elements of a tensor in a small call.
const SMALL: usize = 4096;

thread_local! {
    /// The plans. It is empty before the first one. Static memory of threads is scarce.
    static KEPT: RefCell<Vec<Option<Box<Kept>>>> = const { RefCell::new(Vec::new()) };
}

/// A call, as far as its plan depends on it, and the plan.
struct Kept {
    op: Handle,
    attrs: SmallVec<[Attr; 4]>,
    dtypes: DTypes,
    /// Whether half results are stored as `float32`.
    is_wide: bool,
    inputs: SmallVec<[Option<(DType, Shape, Strides)>; 4]>,
    outputs: SmallVec<[Option<(DType, Shape)>; 1]>,
    plan: Plan,
}

/// An op that may be gone. Its address is not used again as long as the handle lives.
enum Handle {
    Static(&'static OpDef),
    Shared(Weak<OpDef>),
}

impl Handle {
    fn new(op: &OpRef) -> Handle {
        match op {
            OpRef::Static(op) => Handle::Static(op),
            OpRef::Shared(op) => Handle::Shared(Arc::downgrade(op)),
        }
    }

    fn address(&self) -> *const OpDef {
        match self {
            Handle::Static(op) => ptr::from_ref(*op),
            Handle::Shared(op) => op.as_ptr(),
        }
    }
}

/// The position of the plan of a call.
fn position(op: &OpRef, inputs: &[Option<&Tensor>]) -> usize {
    let mix = |hash: usize, value: usize| (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as usize);
    let sizes = inputs.iter().flatten().flat_map(|t| t.shape().iter().copied().chain([t.dtype() as usize]));
    sizes.fold(mix(0, ptr::from_ref::<OpDef>(op) as usize), mix) >> (usize::BITS - PLANS.ilog2())
}

impl Kept {
    fn is_of(
        &self,
        op: &OpRef,
        inputs: &[Option<&Tensor>],
        attrs: &[Attr],
        dtypes: &DTypes,
        wanted: Wanted<'_>,
    ) -> bool {
        let is_same = |(kept, t): (&Option<(DType, Shape, Strides)>, &Option<&Tensor>)| match (kept, t) {
            (Some((dtype, shape, strides)), Some(t)) => {
                *dtype == t.dtype() && shape == t.shape() && strides[..] == *t.strides()
            }
            (kept, t) => kept.is_none() && t.is_none(),
        };
        ptr::eq(self.op.address(), &raw const **op)
            && self.dtypes == *dtypes
            && self.is_wide == is_wide()
            && self.inputs.len() == inputs.len()
            && self.inputs.iter().zip(inputs).all(is_same)
            && self.attrs.len() == attrs.len()
            && self.attrs.iter().zip(attrs).all(|(a, b)| is_same_attribute(a, b))
            && self.outputs.iter().enumerate().all(|(k, output)| wanted.has(k) == output.is_some())
    }

    fn run(&mut self, inputs: &[Option<&Tensor>], attrs: &[Attr], op: &OpRef) -> Result<Results> {
        let empty = |(dtype, shape): &(DType, Shape)| Tensor::empty(shape.clone(), *dtype, Device::Cpu);
        let results: Results =
            self.outputs.iter().map(|output| output.as_ref().map(empty).transpose()).collect::<Result<_>>()?;
        let tensors = inputs.iter().copied().chain(results.iter().map(Option::as_ref));
        for (operand, t) in self.plan.operands.iter_mut().zip(tensors) {
            if let (Some(operand), Some(t)) = (operand, t) {
                operand.data = t.data_ptr();
            }
        }
        self.plan.run(op, attrs)?;
        Ok(results)
    }
}

/// Whether two attributes are the same. Unlike numbers, 0 and −0 differ.
fn is_same_attribute(a: &Attr, b: &Attr) -> bool {
    let bits = |x: &f64| x.to_bits();
    match (a, b) {
        (Attr::Float(a), Attr::Float(b)) => bits(a) == bits(b),
        (Attr::Floats(a), Attr::Floats(b)) => a.iter().map(bits).eq(b.iter().map(bits)),
        _ => a == b,
    }
}

/// Computes a call by its plan, if one was kept.
pub fn run(
    op: &OpRef,
    inputs: &[Option<&Tensor>],
    attrs: &[Attr],
    dtypes: &DTypes,
    wanted: Wanted<'_>,
) -> Option<Result<Results>> {
    let at = position(op, inputs);
    // The place is empty while the plan runs, since a kernel may call ops.
    let take = |kept: &RefCell<Vec<Option<Box<Kept>>>>| {
        let mut all = kept.borrow_mut();
        all.get_mut(at)?.take_if(|kept| kept.is_of(op, inputs, attrs, dtypes, wanted))
    };
    // There are no plans once the thread is ending.
    let mut kept = KEPT.try_with(take).ok()??;
    let results = kept.run(inputs, attrs, op);
    put(at, kept);
    Some(results)
}

fn put(at: usize, kept: Box<Kept>) {
    let _ = KEPT.try_with(|all| {
        let mut all = all.borrow_mut();
        all.resize_with(PLANS, || None);
        // The last plan is dropped after the loan.
        all[at].replace(kept)
    });
}

/// Keeps the plan of a call if the call is small, and another one of these layouts would have the same plan.
pub fn keep(op: &OpRef, call: &Call<'_>, results: &Results, plan: Plan, wanted: Wanted<'_>) {
    let is_small = |t: &Tensor| t.numel() <= SMALL && t.device() == Device::Cpu;
    let is_fit = !wanted.has_places()
        && !op.attrs.iter().any(|attr| attr.kind.is_tuned())
        && op.outputs.iter().all(|output| !matches!(output.role, Role::Mutates(_)))
        && call.inputs.iter().flatten().copied().chain(results.iter().flatten()).all(is_small);
    if !is_fit {
        return;
    }
    let layout = |t: &Tensor| (t.dtype(), t.shape().clone(), Strides::from_slice(t.strides()));
    let kept = Kept {
        op: Handle::new(op),
        attrs: call.attrs.iter().cloned().collect(),
        dtypes: call.dtypes.clone(),
        is_wide: is_wide(),
        inputs: call.inputs.iter().map(|t| t.map(layout)).collect(),
        outputs: results.iter().map(|t| t.as_ref().map(|t| (t.dtype(), t.shape().clone()))).collect(),
        plan,
    };
    put(position(op, call.inputs), Box::new(kept));
}
