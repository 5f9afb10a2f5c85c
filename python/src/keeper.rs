//! Keepers: what a function object of Python holds on to. A keeper is a module, so that the function looks and pickles like any
//! builtin. CPython lets go of it at the very end of a function, so that it may hold the function's definition.

use std::ffi::c_void;
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::Result;
use crate::function::Function;
use crate::trampoline::Definition;

/// What a function object keeps.
pub struct Kept {
    /// An `Arc` as it is without its counts, which a call has no use for.
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
        // SAFETY: it was made by `Arc::into_raw`.
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

/// A keeper, to be the `__self__` of a function in that module. Its state is what is kept.
pub fn new<'py>(module: &Bound<'py, PyModule>, content: Kept) -> Result<Bound<'py, PyAny>> {
    let py = module.py();
    let spec = py.import("types")?.getattr("SimpleNamespace")?.call0()?;
    spec.setattr("name", module.name()?)?;
    let def = &raw mut KEEPER;
    // SAFETY: a definition without slots; executing it makes the state, of zeros, which nobody has seen before it is written.
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
    // SAFETY: as the caller promises.
    unsafe { ffi::PyModule_GetState(keeper).cast() }
}

/// Whether it is a keeper.
///
/// # Safety
/// It is null or an object, and the interpreter is attached.
pub unsafe fn is_one(object: *mut ffi::PyObject) -> bool {
    // SAFETY: a module is asked for its definition.
    unsafe { !object.is_null() && ffi::PyModule_Check(object) != 0 && ffi::PyModule_GetDef(object) == &raw mut KEEPER }
}

/// The function that a keeper keeps, for as long as it is there.
///
/// # Safety
/// It is a keeper.
#[inline]
pub unsafe fn function<'a>(keeper: *mut ffi::PyObject) -> &'a Function {
    // SAFETY: as the caller promises.
    unsafe { &*(*kept(keeper)).function }
}

unsafe extern "C" fn free_kept(keeper: *mut c_void) {
    // SAFETY: CPython frees a module with a state once, and [`new`] has written it.
    unsafe { kept(keeper.cast()).drop_in_place() }
}
