//! Keepers own the data of a Python function object. A keeper is a module, so that the function looks and pickles like
//! a builtin. CPython releases it at the very end of a function's lifetime, so it may own the function's definition.

use std::ffi::c_void;
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::Result;
use crate::function::Function;
use crate::trampoline::Definition;

/// The data of a function object.
pub struct Kept {
    /// The pointer of an `Arc`, so that a call needs no access to its counts.
    function: *const Function,
    _definition: Box<Definition>,
}

impl Kept {
    pub fn new(function: Arc<Function>, definition: Box<Definition>) -> Kept {
        Kept { function: Arc::into_raw(function), _definition: definition }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: `Arc::into_raw` made the pointer.
        drop(unsafe { Arc::from_raw(self.function) });
    }
}

static mut KEEPER: ffi::PyModuleDef = ffi::PyModuleDef {
    m_base: ffi::PyModuleDef_HEAD_INIT,
    m_name: c"minitensor.ops".as_ptr(),
    m_doc: std::ptr::null(),
    m_size: size_of::<Kept>() as ffi::Py_ssize_t,
    m_methods: std::ptr::null_mut(),
    m_slots: &raw mut NO_SLOTS,
    m_traverse: None,
    m_clear: None,
    m_free: Some(free_kept),
};
static mut NO_SLOTS: ffi::PyModuleDef_Slot = ffi::PyModuleDef_Slot { slot: 0, value: std::ptr::null_mut() };

/// Creates a keeper, the `__self__` of a function in that module. Its state is `content`.
pub fn new<'py>(module: &Bound<'py, PyModule>, content: Kept) -> Result<Bound<'py, PyAny>> {
    let py = module.py();
    let spec = py.import("types")?.getattr("SimpleNamespace")?.call0()?;
    spec.setattr("name", module.name()?)?;
    let def = &raw mut KEEPER;
    // SAFETY: the definition has no slots. Executing it creates the state, filled with zeros, and no code reads it
    // before it is written.
    unsafe {
        let keeper = Bound::from_owned_ptr_or_err(py, ffi::PyModule_FromDefAndSpec(def, spec.as_ptr()))?;
        if ffi::PyModule_ExecDef(keeper.as_ptr(), def) != 0 {
            return Err(PyErr::fetch(py).into());
        }
        kept(keeper.as_ptr()).write(content);
        Ok(keeper)
    }
}

/// The state of a keeper.
#[inline]
unsafe fn kept(keeper: *mut ffi::PyObject) -> *mut Kept {
    // SAFETY: the caller's contract.
    unsafe { ffi::PyModule_GetState(keeper).cast() }
}

/// True if the object is a keeper.
///
/// # Safety
/// It is null or an object, and the interpreter is attached.
pub unsafe fn is_one(object: *mut ffi::PyObject) -> bool {
    // SAFETY: `PyModule_GetDef` is called on a module only.
    unsafe { !object.is_null() && ffi::PyModule_Check(object) != 0 && ffi::PyModule_GetDef(object) == &raw mut KEEPER }
}

/// The function that a keeper owns, for the keeper's lifetime.
///
/// # Safety
/// It is a keeper.
#[inline]
pub unsafe fn function<'a>(keeper: *mut ffi::PyObject) -> &'a Function {
    // SAFETY: the caller's contract.
    unsafe { &*(*kept(keeper)).function }
}

unsafe extern "C" fn free_kept(keeper: *mut c_void) {
    // SAFETY: CPython frees a module with a state once, and [`new`] has written it.
    unsafe { kept(keeper.cast()).drop_in_place() }
}
