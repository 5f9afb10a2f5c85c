//! [`Function`]: an op as a Python function. A call binds its arguments by position or by interned keyword, without a
//! look-up and without an allocation other than the result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minitensor::op::{Arg, Arity, Outputs, Role, slots};
use minitensor::testing::Sample;
use minitensor::{Attr, AttrKind, Error, OpRef, dispatch, registry};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::error::{Raised, Result};
use crate::keeper::{self, Kept};
use crate::operand::{self, Operand, Operands, arguments};
use crate::scalar::Number;
use crate::tensor::PyTensor;
use crate::trampoline::{Definition, enter};
use crate::{attr, describe, release};

/// An op that Python can call.
pub struct Function {
    pub op: OpRef,
    /// The interned names of the parameters: tensors, then attributes.
    names: Vec<Py<PyString>>,
    returns: Returns,
    /// The number of tensors that form a complete call, if it is small.
    plain: Option<usize>,
    /// The attributes of such a call.
    defaults: Vec<Attr>,
    /// The index of the attribute for each parameter after the tensors.
    attr_order: SmallVec<[usize; 8]>,
    /// False if the op has been unregistered at any time.
    live: AtomicBool,
}

/// The kind of a call's result.
enum Returns {
    /// The input at this position, which was modified in place.
    Changed(usize),
    Nothing,
    One,
    Tuple,
    /// A namedtuple class.
    Named(Py<PyAny>),
}

/// The arguments by parameter: borrowed objects; null if not given.
type Slots = [*mut ffi::PyObject];

/// Ops with more parameters than this bind them on the heap.
const INLINE: usize = 16;

/// Ops with at most this number of tensors have a fast path.
const FEW: usize = 4;

impl Function {
    /// Creates the function of an op.
    pub fn new(py: Python<'_>, op: OpRef) -> Result<Arc<Function>> {
        let names = op.parameters().map(|n| PyString::intern(py, n).unbind()).collect();
        let returned: Vec<&str> =
            op.outputs.iter().filter(|o| o.role == Role::Returned).map(|o| o.name.as_ref()).collect();
        let changed: Vec<usize> = (0..op.inputs.len()).filter(|i| op.inputs[*i].mutated).collect();
        let returns = match (returned.as_slice(), changed.as_slice()) {
            ([], [one]) => Returns::Changed(*one),
            ([], _) => Returns::Nothing,
            _ if op.gives_list() => Returns::Tuple,
            ([_], _) => Returns::One,
            (names, _) => {
                let make = py.import("minitensor._results")?.getattr("result_class")?;
                let class = make.call1((op.name.as_ref(), class_name(&op.name), names.to_vec()))?;
                Returns::Named(class.unbind())
            }
        };
        let defaults: Vec<Attr> = op.attrs.iter().filter_map(|a| a.default.clone()).collect();
        let is_plain = op.inputs.len() <= FEW
            && op.inputs.iter().all(|i| i.arity == Arity::One)
            && defaults.len() == op.attrs.len()
            && matches!(returns, Returns::One);
        let plain = is_plain.then_some(op.inputs.len());
        let attr_order = op.attr_order();
        Ok(Arc::new(Function { op, names, returns, plain, defaults, attr_order, live: AtomicBool::new(true) }))
    }

    /// Marks the op as unregistered: later calls raise an error unless it is registered again.
    pub fn retire(&self) {
        self.live.store(false, Ordering::Relaxed);
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
            || format!("the op '{name}' of this function was replaced by another; take the function from mt.ops anew");
        let gone = || format!("op '{name}' was unregistered");
        let is_replaced = registry::get(name).is_ok();
        let reason = registry::reason(name).unwrap_or_else(|| if is_replaced { again() } else { gone() });
        Err(Error::runtime(reason).into())
    }

    /// The Python function object, in a module.
    pub fn object<'py>(self: Arc<Self>, module: &Bound<'py, PyModule>, name: &str) -> Result<Bound<'py, PyAny>> {
        let signature = describe::text_signature(&self.op, name, "");
        let definition = Definition::new(name, &signature, &self.op, call_function)?;
        let def = definition.as_ptr();
        let keeper = keeper::new(module, Kept::new(self, definition))?;
        // SAFETY: the keeper owns the definition, and the function owns the keeper; the name is a string.
        Ok(unsafe {
            let name = module.name()?;
            Bound::from_owned_ptr_or_err(module.py(), ffi::PyCFunction_NewEx(def, keeper.as_ptr(), name.as_ptr()))?
        })
    }

    /// The namedtuple class of the result, if it is a namedtuple.
    pub fn result_class<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match &self.returns {
            Returns::Named(class) => Some(class.bind(py).clone()),
            _ => None,
        }
    }

    /// The op of a function object that [`Function::object`] made.
    pub fn op_of(object: &Bound<'_, PyAny>) -> Option<OpRef> {
        // SAFETY: `is_one` accepts null and any object, and `function` is called on keepers only.
        unsafe {
            let is_function = ffi::PyCFunction_Check(object.as_ptr()) != 0;
            let keeper = if is_function { ffi::PyCFunction_GetSelf(object.as_ptr()) } else { std::ptr::null_mut() };
            keeper::is_one(keeper).then(|| keeper::function(keeper).op.clone())
        }
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
        if !self.live.load(Ordering::Relaxed) {
            self.check_registered()?;
        }
        if keywords.is_null()
            && self.plain == Some(n)
            // SAFETY: `args` has `n` objects.
            && let Some(result) = unsafe { self.call_plain(py, args, n) }
        {
            return result;
        }
        // SAFETY: the caller's contract.
        unsafe { self.with_slots(py, args, n, keywords, |slots| self.run(py, slots)) }
    }

    /// The fast path for the most common call: positional tensors only.
    #[inline]
    unsafe fn call_plain<'py>(
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
            let output = release::call_one(py, &self.op, &few[..n], &self.defaults)?;
            Ok(Bound::new(py, PyTensor::from(output))?.into_any())
        };
        Some(call())
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
            let mut operands = self.operands(py, slots)?;
            let args = arguments(&mut operands)?;
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
        unsafe { self.with_slots(py, args, n, keywords, bind) }
    }

    /// Assigns the arguments to parameters.
    #[inline]
    unsafe fn with_slots<R>(
        &self,
        py: Python<'_>,
        args: *const *mut ffi::PyObject,
        n: usize,
        keywords: *mut ffi::PyObject,
        then: impl FnOnce(&Slots) -> Result<R>,
    ) -> Result<R> {
        let count = self.names.len();
        let (mut inline, mut heap) = ([std::ptr::null_mut(); INLINE], Vec::new());
        let slots: &mut Slots = if count <= INLINE {
            &mut inline[..count]
        } else {
            heap.resize(count, std::ptr::null_mut());
            &mut heap
        };
        let mut gathered = None;
        if n <= count && !self.is_spread(py, args, n) {
            // SAFETY: `args` has `n` objects.
            (0..n).for_each(|i| slots[i] = unsafe { *args.add(i) });
        } else {
            // SAFETY: as above.
            gathered = Some(unsafe { self.gather(py, args, n, slots)? });
        }
        if !keywords.is_null() {
            // SAFETY: the caller's contract.
            unsafe { self.bind_keywords(py, args, n, keywords, slots)? };
        }
        let result = then(slots);
        drop(gathered);
        result
    }

    #[inline]
    fn run<'py>(&self, py: Python<'py>, slots: &Slots) -> Result<Bound<'py, PyAny>> {
        let attrs = self.attrs(py, slots)?;
        let mut few = [Arg::None; FEW];
        let outputs = match self.plain(py, slots, &mut few) {
            Some(args) => release::call(py, &self.op, args, || dispatch(&self.op, args, &attrs))?,
            None => {
                let mut operands = self.operands(py, slots)?;
                let args = arguments(&mut operands)?;
                release::call(py, &self.op, &args, || dispatch(&self.op, &args, &attrs))?
            }
        };
        self.wrap(py, outputs, slots)
    }

    /// The inputs of a call, if they are few tensors and nothing else.
    #[inline]
    fn plain<'b, 'a>(&self, py: Python<'_>, slots: &'a Slots, few: &'b mut [Arg<'a>; FEW]) -> Option<&'b [Arg<'a>]> {
        let count = self.op.inputs.len();
        if count > few.len() {
            return None;
        }
        for (i, slot) in few.iter_mut().enumerate().take(count) {
            let object = at(py, slots, i)?;
            *slot = Arg::Tensor(object.cast_exact::<PyTensor>().ok()?.get().core().ok()?);
        }
        Some(&few[..count])
    }

    fn operands<'a>(&self, py: Python<'_>, slots: &'a Slots) -> Result<Operands<'a>> {
        let mut operands = Operands::new();
        for (i, input) in self.op.inputs.iter().enumerate() {
            let given = at(py, slots, i).filter(|o| input.arity != Arity::Optional || !o.is_none());
            match (given, input.arity) {
                (Some(list), Arity::Variadic) => operand::read_list(&self.op, &input.name, &list, &mut operands)?,
                (Some(object), _) => match Operand::read(object)? {
                    Some(operand) => operands.push(operand),
                    None => return Err(operand::not_a_tensor(&self.op, &input.name, "a tensor", &object)),
                },
                (None, Arity::Optional) => operands.push(Operand::None),
                (None, _) => return Err(self.op.missing(&input.name).into()),
            }
        }
        Ok(operands)
    }

    #[inline]
    fn attrs(&self, py: Python<'_>, slots: &Slots) -> Result<SmallVec<[Attr; 4]>> {
        let mut attrs = smallvec![Attr::None; self.op.attrs.len()];
        for (parameter, index) in self.attr_order.iter().enumerate() {
            attrs[*index] = match at(py, slots, self.op.inputs.len() + parameter) {
                Some(value) => attr::read(&self.op, *index, &value)?,
                None => self.op.default_attr(*index)?,
            };
        }
        Ok(attrs)
    }

    #[inline]
    fn wrap<'py>(&self, py: Python<'py>, outputs: Outputs, slots: &Slots) -> Result<Bound<'py, PyAny>> {
        match &self.returns {
            Returns::One => Ok(Bound::new(py, PyTensor::from(outputs.single()))?.into_any()),
            Returns::Nothing => Ok(py.None().into_bound(py)),
            Returns::Changed(i) => Ok(at(py, slots, *i).map_or_else(|| py.None().into_bound(py), |o| o.to_owned())),
            Returns::Tuple => Ok(tuple(py, outputs)?.into_any()),
            Returns::Named(class) => Ok(class.bind(py).call1(tuple(py, outputs)?)?),
        }
    }

    /// True if the tensors of a variadic input are passed as separate arguments instead of a list.
    #[inline]
    fn is_spread(&self, py: Python<'_>, args: *const *mut ffi::PyObject, n: usize) -> bool {
        let variadic = self.op.inputs.last().is_some_and(|i| i.arity == Arity::Variadic);
        let first = self.op.inputs.len().wrapping_sub(1);
        // SAFETY: `args` has `n` objects.
        variadic && n > first && unsafe { Borrowed::from_ptr(py, *args.add(first)) }.is_instance_of::<PyTensor>()
    }

    /// `f(a, b, c)` for a variadic input, `reshape(x, 2, 3)` for a list of integers: separate arguments are collected
    /// in a tuple, which the caller keeps until the call has ended.
    #[cold]
    unsafe fn gather<'py>(
        &self,
        py: Python<'py>,
        args: *const *mut ffi::PyObject,
        n: usize,
        slots: &mut Slots,
    ) -> Result<Bound<'py, PyTuple>> {
        // SAFETY: `args` has `n` objects.
        let objects: Vec<Bound<'_, PyAny>> =
            (0..n).map(|i| unsafe { Bound::from_borrowed_ptr(py, *args.add(i)) }).collect();
        let first = self.op.inputs.len();
        let (from, until) = if self.is_spread(py, args, n) {
            let tensors = objects[first - 1..].iter().take_while(|o| o.is_instance_of::<PyTensor>()).count();
            (first - 1, first - 1 + tensors)
        } else if self.attr_order.first().is_some_and(|i| self.op.attrs[*i].kind == AttrKind::Ints)
            && n > first
            && objects[first..].iter().all(|o| o.is_instance_of::<PyInt>())
        {
            (first, n)
        } else {
            (n, n)
        };
        if from == until || from + 1 + n - until > slots.len() {
            return Err(minitensor::op::slots(&self.op, n, &[])
                .err()
                .unwrap_or_else(|| Error::type_("too many arguments"))
                .into());
        }
        let tuple = PyTuple::new(py, &objects[from..until])?;
        objects[..from].iter().enumerate().for_each(|(i, o)| slots[i] = o.as_ptr());
        slots[from] = tuple.as_ptr();
        objects[until..].iter().enumerate().for_each(|(i, o)| slots[from + 1 + i] = o.as_ptr());
        Ok(tuple)
    }

    unsafe fn bind_keywords(
        &self,
        py: Python<'_>,
        args: *const *mut ffi::PyObject,
        n: usize,
        keywords: *mut ffi::PyObject,
        slots: &mut Slots,
    ) -> Result<()> {
        // SAFETY: `keywords` is a tuple of strings.
        let keywords = unsafe { Borrowed::from_ptr(py, keywords).cast_unchecked::<PyTuple>() };
        for (k, keyword) in keywords.iter_borrowed().enumerate() {
            let same = |name: &Py<PyString>| name.as_ptr() == keyword.as_ptr();
            let at = self.names.iter().position(same).or_else(|| {
                let equal = |name: &Py<PyString>| keyword.eq(name.bind(py)).unwrap_or(false);
                self.names.iter().position(equal)
            });
            match at.filter(|at| slots[*at].is_null()) {
                // SAFETY: a value for each keyword follows the positional arguments.
                Some(at) => slots[at] = unsafe { *args.add(n + k) },
                None => return Err(self.refuse_keywords(n, &keywords)),
            }
        }
        Ok(())
    }

    #[cold]
    fn refuse_keywords(&self, n: usize, keywords: &Bound<'_, PyTuple>) -> Raised {
        let names: Vec<String> = keywords.iter().map(|k| k.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match slots(&self.op, n.min(self.names.len()), &names) {
            Err(error) => error.into(),
            Ok(_) => Error::type_(format!("op '{}': an argument is given twice", self.op.name)).into(),
        }
    }
}

unsafe extern "C" fn call_function(
    keeper: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    n: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: `keeper` is the `__self__` of the function, made by [`keeper::new`]; Python calls with the interpreter
    // attached and `n` arguments.
    unsafe {
        let function = keeper::function(keeper);
        enter(&function.op, |py| function.call(py, args, n as usize, keywords))
    }
}

/// The argument of a parameter.
#[inline]
fn at<'a, 'py>(py: Python<'py>, slots: &'a Slots, i: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
    // SAFETY: every slot is null or an object that the caller of the function holds until the call has ended.
    (!slots[i].is_null()).then(|| unsafe { Borrowed::from_ptr(py, slots[i]) })
}

fn tuple(py: Python<'_>, outputs: Outputs) -> Result<Bound<'_, PyTuple>> {
    let tensors: Vec<_> =
        outputs.into_vec().into_iter().map(|t| Bound::new(py, PyTensor::from(t))).collect::<PyResult<_>>()?;
    Ok(PyTuple::new(py, tensors)?)
}

/// `layer_norm` → `LayerNormResult`.
fn class_name(op: &str) -> String {
    let words = op.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let camel = words.map(|w| w[..1].to_uppercase() + &w[1..]);
    camel.chain(["Result".to_owned()]).collect()
}
