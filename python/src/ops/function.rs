//! [`Function`]: a call of an op from Python. It binds its arguments by position or by interned keyword, without a
//! lookup and without an allocation other than the result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minitensor::autograd::is_grad_enabled;
use minitensor::op::{Arg, Arity, Input, Outputs};
use minitensor::testing::Sample;
use minitensor::{Attr, Error, OpRef, Tensor, dispatch, registry};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::{SmallVec, smallvec};

use super::array_args::{Arrays, is_number};
use super::attr;
use super::binding::{Binding, Slots, argument};
use super::returns::Returns;
use super::tensor_arg::{self, TensorArg, TensorArgs, arguments};
use super::undispatched::Undispatched;
use crate::bridge::library::{self, Entered, Library};
use crate::error::Result;
use crate::runtime::call;
use crate::tensor::class::PyTensor;
use crate::tensor::interchange::ndarray::Api;
use crate::tensor::interchange::number::{self, Number};

/// Ops with at most this number of tensors have a fast path.
pub(super) const FEW: usize = 4;

/// An op that Python can call.
pub struct Function {
    pub op: OpRef,
    binding: Binding,
    pub(super) returns: Returns,
    /// The number of tensors that form a complete call, if it is small.
    plain: Option<usize>,
    /// The attributes of such a call.
    defaults: Vec<Attr>,
    /// False if the op has been unregistered at any time.
    is_live: AtomicBool,
}

impl Function {
    /// Creates the function of an op.
    pub fn new(py: Python<'_>, op: OpRef) -> Result<Arc<Function>> {
        let returns = Returns::of(py, &op)?;
        let defaults: Vec<Attr> = op.attrs.iter().filter_map(|a| a.default.clone()).collect();
        let is_plain = op.inputs.len() <= FEW
            && op.inputs.iter().all(|i| i.arity == Arity::One)
            && defaults.len() == op.attrs.len()
            && matches!(returns, Returns::One);
        let plain = is_plain.then_some(op.inputs.len());
        let binding = Binding::new(py, &op);
        Ok(Arc::new(Function { op, binding, returns, plain, defaults, is_live: AtomicBool::new(true) }))
    }

    /// Marks the op as unregistered: later calls raise an error unless it is registered again.
    pub fn retire(&self) {
        self.is_live.store(false, Ordering::Relaxed);
    }

    /// False if the op has been unregistered at any time.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Relaxed)
    }

    /// An error if the op isn't registered.
    #[inline]
    fn check_live(&self) -> Result<()> {
        if self.is_live() { Ok(()) } else { self.check_registered() }
    }

    /// Returns an error that explains why the op isn't registered.
    #[cold]
    #[inline(never)]
    fn check_registered(&self) -> Result<()> {
        if registry::has(&self.op) {
            return Ok(());
        }
        let name = &self.op.name;
        let again =
            || format!("op '{name}' of this function was replaced by another op; get its function from mt.ops again");
        let gone = || format!("op '{name}' was unregistered");
        let is_replaced = registry::get(name).is_ok();
        let reason = registry::reason(name).unwrap_or_else(|| if is_replaced { again() } else { gone() });
        Err(Error::runtime(reason).into())
    }

    /// The namedtuple class of the result, if it is a namedtuple.
    pub fn result_class<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.returns.class(py)
    }

    /// Calls the op.
    ///
    /// # Safety
    /// As CPython's vector calls: `args` has `n` objects, then one for each name in the tuple `keywords`, if not null.
    #[inline]
    pub unsafe fn call<'py>(
        &self,
        py: Python<'py>,
        args: *const *mut ffi::PyObject,
        n: usize,
        keywords: *mut ffi::PyObject,
    ) -> Result<Bound<'py, PyAny>> {
        self.check_live()?;
        if keywords.is_null() && self.plain == Some(n) {
            // SAFETY: `args` has `n` objects.
            if let Some(result) = unsafe { self.call_with_tensors(py, args, n) } {
                return result;
            }
            // SAFETY: as above.
            if let Some(result) = unsafe { self.call_with_arrays(py, args, n) }.transpose() {
                return result;
            }
        }
        // SAFETY: the caller's contract.
        unsafe { self.binding.with_slots(py, &self.op, args, n, keywords, |slots| self.run(py, slots)) }
    }

    /// Binds the arguments of a call of a registered op.
    ///
    /// # Safety
    /// As [`Function::call`].
    pub unsafe fn with_slots<R>(
        &self,
        py: Python<'_>,
        args: *const *mut ffi::PyObject,
        n: usize,
        keywords: *mut ffi::PyObject,
        then: impl FnOnce(&Slots) -> Result<R>,
    ) -> Result<R> {
        self.check_live()?;
        // SAFETY: the caller's contract.
        unsafe { self.binding.with_slots(py, &self.op, args, n, keywords, then) }
    }

    /// Calls the op on arrays of a library. The results are arrays of the same library.
    pub fn call_arrays<'py>(&self, py: Python<'py>, slots: &Slots) -> Result<Bound<'py, PyAny>> {
        match Arrays::among(py, &self.op, slots)? {
            Some(arrays) => self.run_arrays(py, slots, &arrays),
            None => self.run_tensors(py, slots),
        }
    }

    /// Calls the op on tensors of PyTorch without PyTorch's dispatcher. The result is None if autograd must record the call, and
    /// NotImplemented if the dispatcher must see it.
    pub fn call_undispatched<'py>(&self, py: Python<'py>, slots: &Slots) -> Result<Bound<'py, PyAny>> {
        Ok(match self.run_undispatched(py, slots)? {
            Undispatched::Computed(result) => result,
            Undispatched::Recorded => py.None().into_bound(py),
            Undispatched::Dispatched => py.NotImplemented().into_bound(py),
        })
    }

    /// The arguments of a call by name; absent ones are not included.
    pub fn bind<'py>(&self, py: Python<'py>, slots: &Slots) -> Result<Bound<'py, PyAny>> {
        Ok(self.keywords(py, slots)?.into_any())
    }

    /// The fast path for the most common call: positional tensors only.
    #[inline]
    unsafe fn call_with_tensors<'py>(
        &self,
        py: Python<'py>,
        args: *const *mut ffi::PyObject,
        n: usize,
    ) -> Option<Result<Bound<'py, PyAny>>> {
        let mut few = [Arg::None; FEW];
        for (i, arg) in few.iter_mut().enumerate().take(n) {
            // SAFETY: `args` has `n` objects, which the caller holds until the call has ended.
            let object = unsafe { Borrowed::from_ptr(py, *args.add(i)) };
            *arg = Arg::Tensor(object.cast_exact::<PyTensor>().ok()?.get().core().ok()?);
        }
        let call = || {
            let output = call::call_one(py, &self.op, &few[..n], &self.defaults)?;
            Ok(Bound::new(py, PyTensor::from(output))?.into_any())
        };
        Some(call())
    }

    /// The fast path for NumPy: positional arrays and numbers only.
    #[inline]
    unsafe fn call_with_arrays<'py>(
        &self,
        py: Python<'py>,
        args: *const *mut ffi::PyObject,
        n: usize,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let Some(api) = Api::loaded(py) else { return Ok(None) };
        let mut tensors: SmallVec<[Tensor; FEW]> = SmallVec::new();
        let mut numbers = [None; FEW];
        for (i, number) in numbers.iter_mut().enumerate().take(n) {
            // SAFETY: `args` has `n` objects, which the caller holds until the call has ended.
            let object = unsafe { Borrowed::from_ptr(py, *args.add(i)) };
            match api.tensor(&object)? {
                Some(tensor) => tensors.push(tensor),
                None if !is_number(&object) => return Ok(None),
                None => match number::read(&object)? {
                    Some(Number::Real(real)) => *number = Some(real),
                    _ => return Ok(None),
                },
            }
        }
        if tensors.is_empty() {
            return Ok(None);
        }
        let mut next = tensors.iter();
        let mut few = [Arg::None; FEW];
        for (arg, number) in few.iter_mut().zip(numbers).take(n) {
            *arg = number.map_or_else(|| next.next().map_or(Arg::None, Arg::Tensor), Arg::Number);
        }
        let mut output = [call::call_one(py, &self.op, &few[..n], &self.defaults)?];
        library::separate(tensors.iter(), &mut output)?;
        let [output] = output;
        Library::NumPy.array(py, output).map(Some)
    }

    /// The arguments of a call in the form that an op check requires.
    ///
    /// # Safety
    /// As [`Function::call`].
    pub unsafe fn sample(
        &self,
        py: Python<'_>,
        args: *const *mut ffi::PyObject,
        n: usize,
        keywords: *mut ffi::PyObject,
    ) -> Result<Sample> {
        let bind = |slots: &Slots| {
            let mut tensors = self.tensors(py, slots, false)?;
            let args = arguments(&mut tensors)?;
            let tensor = |a: &Arg<'_>| match a {
                Arg::None => Ok(None),
                Arg::Tensor(t) => Ok(Some((*t).clone())),
                Arg::Number(n) => Number::Real(*n).tensor(Number::Real(*n).dtype()).map(Some),
            };
            Ok(Sample {
                inputs: args.iter().map(tensor).collect::<Result<_>>()?,
                attrs: self.attrs(py, slots)?.into_vec(),
            })
        };
        // SAFETY: the caller's contract.
        unsafe { self.binding.with_slots(py, &self.op, args, n, keywords, bind) }
    }

    #[inline]
    fn run<'py>(&self, py: Python<'py>, slots: &Slots) -> Result<Bound<'py, PyAny>> {
        let mut few = [Arg::None; FEW];
        if let Some(args) = self.plain(py, slots, &mut few) {
            let attrs = self.attrs(py, slots)?;
            let outputs = call::call(py, &self.op, args, || dispatch(&self.op, args, &attrs))?;
            return self.returns.wrap(py, outputs, slots, |t| tensor_object(py, t));
        }
        match Arrays::among(py, &self.op, slots)? {
            Some(Arrays { bridge: Some(call), .. }) => match self.run_undispatched(py, slots)? {
                Undispatched::Computed(result) => Ok(result),
                _ => Ok(call.call1((self.op.name.as_ref(), self.keywords(py, slots)?))?),
            },
            Some(arrays) => self.run_arrays(py, slots, &arrays),
            None => self.run_tensors(py, slots),
        }
    }

    /// A call with tensors and numbers, and perhaps arrays.
    fn run_tensors<'py>(&self, py: Python<'py>, slots: &Slots) -> Result<Bound<'py, PyAny>> {
        let (outputs, _) = self.outputs(py, slots, None)?;
        self.returns.wrap(py, outputs, slots, |t| tensor_object(py, t))
    }

    /// A call with arrays of a library and numbers. Without arrays, the results are tensors.
    fn run_arrays<'py>(&self, py: Python<'py>, slots: &Slots, arrays: &Arrays<'py>) -> Result<Bound<'py, PyAny>> {
        let Some(library) = arrays.library else { return self.run_tensors(py, slots) };
        let (outputs, _entered) = self.outputs(py, slots, Some(library))?;
        self.returns.wrap(py, outputs, slots, |t| arrays.wrap(library.array(py, t)?))
    }

    /// The outputs of a call. If they become arrays of a library, they are computed on its threads or its stream until the second result
    /// is dropped.
    fn outputs(&self, py: Python<'_>, slots: &Slots, library: Option<Library>) -> Result<(Outputs, Entered)> {
        let attrs = self.attrs(py, slots)?;
        let mut tensors = self.tensors(py, slots, library.is_some())?;
        self.check_changes(&tensors)?;
        let owned: SmallVec<[Tensor; 4]> = tensors.iter().filter_map(TensorArg::imported).collect();
        let entered = library.map_or(Ok(Entered::default()), |library| library.enter(py, &owned))?;
        let args = arguments(&mut tensors)?;
        let mut outputs = call::call(py, &self.op, &args, || dispatch(&self.op, &args, &attrs))?;
        if !owned.is_empty() {
            library::separate(owned.iter(), outputs.as_mut_slice())?;
        }
        Ok((outputs, entered))
    }

    /// An error if an array is changed in place by a tensor that requires a gradient: an array has no history.
    fn check_changes(&self, tensors: &[TensorArg<'_>]) -> Result<()> {
        let is_array =
            |(input, tensor): (&Input, &TensorArg<'_>)| input.mutated && matches!(tensor, TensorArg::Owned(_));
        if !is_grad_enabled() || !self.op.inputs.iter().zip(tensors).any(is_array) {
            return Ok(());
        }
        let requires_grad = |tensor: &TensorArg<'_>| match tensor {
            TensorArg::Tensor(t) => t.requires_grad(),
            TensorArg::Owned(t) => t.requires_grad(),
            _ => false,
        };
        if tensors.iter().any(requires_grad) {
            return Err(Error::runtime(format!(
                "op '{}' changes an array in place by a tensor that requires a gradient, which would be lost; detach() the tensor",
                self.op.name
            ))
            .into());
        }
        Ok(())
    }

    /// The arguments of a call by name.
    fn keywords<'py>(&self, py: Python<'py>, slots: &Slots) -> Result<Bound<'py, PyDict>> {
        let keywords = PyDict::new(py);
        for (i, name) in self.binding.names().iter().enumerate() {
            if let Some(object) = argument(py, slots, i) {
                keywords.set_item(name, object)?;
            }
        }
        Ok(keywords)
    }

    /// The inputs of a call, if they are few tensors and nothing else.
    #[inline]
    fn plain<'b, 'a>(&self, py: Python<'_>, slots: &'a Slots, few: &'b mut [Arg<'a>; FEW]) -> Option<&'b [Arg<'a>]> {
        let count = self.op.inputs.len();
        if count > few.len() {
            return None;
        }
        for (i, slot) in few.iter_mut().enumerate().take(count) {
            let object = argument(py, slots, i)?;
            *slot = Arg::Tensor(object.cast_exact::<PyTensor>().ok()?.get().core().ok()?);
        }
        Some(&few[..count])
    }

    /// The tensors of a call; `of_arrays` if its results become arrays.
    fn tensors<'a>(&self, py: Python<'_>, slots: &'a Slots, of_arrays: bool) -> Result<TensorArgs<'a>> {
        let mut tensors = TensorArgs::new();
        for (i, input) in self.op.inputs.iter().enumerate() {
            let given = argument(py, slots, i).filter(|o| input.arity != Arity::Optional || !o.is_none());
            match (given, input.arity) {
                (Some(list), Arity::Variadic) => {
                    tensor_arg::read_list(&self.op, &input.name, &list, of_arrays, &mut tensors)?
                }
                (Some(object), _) => {
                    let read = match (input.mutated, of_arrays) {
                        (true, _) => TensorArg::read_changed(object, of_arrays),
                        (false, true) => TensorArg::read_array(object),
                        (false, false) => TensorArg::read(object),
                    };
                    match read.map_err(|e| tensor_arg::of_input(&self.op, &input.name, e, py))? {
                        Some(arg) => tensors.push(arg),
                        None => return Err(tensor_arg::not_a_tensor(&self.op, &input.name, "a tensor", &object)),
                    }
                }
                (None, Arity::Optional) => tensors.push(TensorArg::None),
                (None, _) => return Err(self.op.missing(&input.name).into()),
            }
        }
        Ok(tensors)
    }

    #[inline]
    pub(super) fn attrs(&self, py: Python<'_>, slots: &Slots) -> Result<SmallVec<[Attr; 4]>> {
        let mut attrs = smallvec![Attr::None; self.op.attrs.len()];
        for (parameter, index) in self.binding.attr_order.iter().enumerate() {
            attrs[*index] = match argument(py, slots, self.op.inputs.len() + parameter) {
                Some(value) => attr::read(&self.op, *index, &value)?,
                None => self.op.default_attr(*index)?,
            };
        }
        Ok(attrs)
    }
}

/// A tensor as a Python object.
#[inline]
fn tensor_object(py: Python<'_>, tensor: Tensor) -> Result<Bound<'_, PyAny>> {
    Ok(Bound::new(py, PyTensor::from(tensor))?.into_any())
}
