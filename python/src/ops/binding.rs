//! [`Binding`]: assigns the arguments of a Python call to the parameters of an op.

use minitensor::op::{self, Arity};
use minitensor::{AttrKind, Error, OpDef};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};
use smallvec::SmallVec;

use crate::bridge::class::Class;
use crate::error::{Exception, Result};
use crate::tensor::class::PyTensor;

/// The arguments by parameter: borrowed objects; null if not given.
pub type Slots = [*mut ffi::PyObject];

/// Ops with more parameters than this bind them on the heap.
const INLINE: usize = 16;

/// The parameters of an op.
pub struct Binding {
    /// The interned names: tensors, then attributes.
    names: Vec<Py<PyString>>,
    /// The index of the attribute for each parameter after the tensors.
    pub attr_order: SmallVec<[usize; 8]>,
}

impl Binding {
    pub fn new(py: Python<'_>, op: &OpDef) -> Binding {
        let names = op.parameters().map(|n| PyString::intern(py, n).unbind()).collect();
        Binding { names, attr_order: op.attr_order() }
    }

    /// The names of the parameters.
    pub fn names(&self) -> &[Py<PyString>] {
        &self.names
    }

    /// Assigns the arguments to parameters, and calls `then` with them.
    ///
    /// # Safety
    /// As CPython's vector calls: `args` has `n` objects, then one for each name in the tuple `keywords`, if not null.
    #[inline]
    pub unsafe fn with_slots<R>(
        &self,
        py: Python<'_>,
        op: &OpDef,
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
        let mut collected = None;
        if n <= count && !is_spread(op, py, args, n) {
            // SAFETY: `args` has `n` objects.
            (0..n).for_each(|i| slots[i] = unsafe { *args.add(i) });
        } else {
            // SAFETY: as above.
            collected = Some(unsafe { self.collect(py, op, args, n, slots)? });
        }
        if !keywords.is_null() {
            // SAFETY: the caller's contract.
            unsafe { self.bind_keywords(py, op, args, n, keywords, slots)? };
        }
        let result = then(slots);
        drop(collected);
        result
    }

    /// `f(a, b, c)` for a variadic input, `reshape(x, 2, 3)` for a list of integers: separate arguments are collected
    /// in a tuple, which the caller keeps until the call has ended.
    #[cold]
    unsafe fn collect<'py>(
        &self,
        py: Python<'py>,
        op: &OpDef,
        args: *const *mut ffi::PyObject,
        n: usize,
        slots: &mut Slots,
    ) -> Result<Bound<'py, PyTuple>> {
        // SAFETY: `args` has `n` objects.
        let objects: Vec<Bound<'_, PyAny>> =
            (0..n).map(|i| unsafe { Bound::from_borrowed_ptr(py, *args.add(i)) }).collect();
        let first = op.inputs.len();
        let (from, until) = if is_spread(op, py, args, n) {
            let tensors = objects[first - 1..].iter().take_while(|o| is_tensor(o)).count();
            (first - 1, first - 1 + tensors)
        } else if self.attr_order.first().is_some_and(|i| op.attrs[*i].kind == AttrKind::Ints)
            && n > first
            && objects[first..].iter().all(|o| o.is_instance_of::<PyInt>())
        {
            (first, n)
        } else {
            (n, n)
        };
        if from == until || from + 1 + n - until > slots.len() {
            return Err(op::slots(op, n, &[]).err().unwrap_or_else(|| Error::type_("too many arguments")).into());
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
        op: &OpDef,
        args: *const *mut ffi::PyObject,
        n: usize,
        keywords: *mut ffi::PyObject,
        slots: &mut Slots,
    ) -> Result<()> {
        // SAFETY: `keywords` is a tuple of strings.
        let keywords = unsafe { Borrowed::from_ptr(py, keywords).cast_unchecked::<PyTuple>() };
        for (k, keyword) in keywords.iter_borrowed().enumerate() {
            let same = |name: &Py<PyString>| name.as_ptr() == keyword.as_ptr();
            let index = self.names.iter().position(same).or_else(|| {
                let equal = |name: &Py<PyString>| keyword.eq(name.bind(py)).unwrap_or(false);
                self.names.iter().position(equal)
            });
            match index.filter(|i| slots[*i].is_null()) {
                // SAFETY: a value for each keyword follows the positional arguments.
                Some(i) => slots[i] = unsafe { *args.add(n + k) },
                None => return Err(self.refuse_keywords(op, n, &keywords)),
            }
        }
        Ok(())
    }

    #[cold]
    fn refuse_keywords(&self, op: &OpDef, n: usize, keywords: &Bound<'_, PyTuple>) -> Exception {
        let names: Vec<String> = keywords.iter().map(|k| k.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match op::slots(op, n.min(self.names.len()), &names) {
            Err(error) => error.into(),
            Ok(_) => Error::type_(format!("op '{}': an argument is passed twice", op.name)).into(),
        }
    }
}

/// True if the tensors of a variadic input are passed as separate arguments instead of a list.
#[inline]
fn is_spread(op: &OpDef, py: Python<'_>, args: *const *mut ffi::PyObject, n: usize) -> bool {
    let variadic = op.inputs.last().is_some_and(|i| i.arity == Arity::Variadic);
    let first = op.inputs.len().wrapping_sub(1);
    if !variadic || n <= first {
        return false;
    }
    // SAFETY: `args` has `n` objects.
    let object = unsafe { Borrowed::from_ptr(py, *args.add(first)) };
    is_tensor(&object)
}

/// True for a tensor or an array.
fn is_tensor(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyTensor>() || Class::of(object).is_ok_and(|class| class.is_array())
}

/// The argument of a parameter.
#[inline]
pub fn argument<'a, 'py>(py: Python<'py>, slots: &'a Slots, i: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
    // SAFETY: every slot is null or an object that the caller of the function holds until the call has ended.
    (!slots[i].is_null()).then(|| unsafe { Borrowed::from_ptr(py, slots[i]) })
}
