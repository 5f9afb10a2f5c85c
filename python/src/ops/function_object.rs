//! Python function objects of ops. Such an object is a builtin function. Its `__self__` is a module, the *state module*,
//! so that the function looks and pickles like a builtin. CPython releases the `__self__` at the very end of a function's
//! lifetime, so its state may own the function's definition.

use std::ffi::c_void;
use std::sync::Arc;

use minitensor::OpRef;
use pyo3::ffi;
use pyo3::prelude::*;

use super::docstring;
use super::function::Function;
use super::method_def::{FastCall, MethodDef, enter};
use crate::error::Result;

/// The function that a function object calls.
#[derive(Clone, Copy)]
pub enum Call {
    /// Calls the op.
    Op,
    /// Computes on arrays of any library.
    Arrays,
    /// Computes on tensors of PyTorch without PyTorch's dispatcher.
    Undispatched,
    /// Returns its arguments by name.
    Binding,
}

impl Call {
    fn entry(self) -> FastCall {
        match self {
            Call::Op => call_function,
            Call::Arrays => call_array_function,
            Call::Undispatched => call_undispatched_function,
            Call::Binding => call_binding,
        }
    }
}

/// The Python function object, in a module.
pub fn new<'py>(
    function: Arc<Function>,
    module: &Bound<'py, PyModule>,
    name: &str,
    call: Call,
) -> Result<Bound<'py, PyAny>> {
    let signature = docstring::text_signature(&function.op, name, "");
    let definition = MethodDef::new(name, &signature, &function.op, call.entry())?;
    let def = definition.as_ptr();
    let state = new_state(module, State::new(function, definition))?;
    // SAFETY: the state owns the definition, and the function object owns the state; the name is a string.
    Ok(unsafe {
        let name = module.name()?;
        Bound::from_owned_ptr_or_err(module.py(), ffi::PyCFunction_NewEx(def, state.as_ptr(), name.as_ptr()))?
    })
}

/// The op of a function object that [`new`] made.
pub fn op_of(object: &Bound<'_, PyAny>) -> Option<OpRef> {
    // SAFETY: `is_state` accepts null and any object, and `function_of` is called on state modules only.
    unsafe {
        let is_function = ffi::PyCFunction_Check(object.as_ptr()) != 0;
        let state = if is_function { ffi::PyCFunction_GetSelf(object.as_ptr()) } else { std::ptr::null_mut() };
        is_state(state).then(|| function_of(state).op.clone())
    }
}

/// A C function that Python calls, which calls the op of `$function` with the arguments of `$call`.
macro_rules! entry {
    ($name:ident, |$function:ident, $py:ident, $args:ident, $n:ident, $keywords:ident| $call:expr) => {
        unsafe extern "C" fn $name(
            state: *mut ffi::PyObject,
            $args: *const *mut ffi::PyObject,
            n: ffi::Py_ssize_t,
            $keywords: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            let $n = n as usize;
            // SAFETY: `state` is the `__self__` of the function, made by [`new_state`]; Python calls with the interpreter
            // attached and `n` arguments.
            unsafe {
                let $function = function_of(state);
                enter(&$function.op, |$py| $call)
            }
        }
    };
    ($name:ident, $method:ident) => {
        entry!($name, |function, py, args, n, keywords| {
            function.with_slots(py, args, n, keywords, |slots| function.$method(py, slots))
        });
    };
}
entry!(call_function, |function, py, args, n, keywords| function.call(py, args, n, keywords));
entry!(call_array_function, call_arrays);
entry!(call_undispatched_function, call_undispatched);
entry!(call_binding, bind);

/// The state of a function object.
struct State {
    /// The pointer of an `Arc`, so that a call needs no access to its counts.
    function: *const Function,
    _definition: Box<MethodDef>,
}

impl State {
    fn new(function: Arc<Function>, definition: Box<MethodDef>) -> State {
        State { function: Arc::into_raw(function), _definition: definition }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: `Arc::into_raw` made the pointer.
        drop(unsafe { Arc::from_raw(self.function) });
    }
}

static mut STATE_MODULE: ffi::PyModuleDef = ffi::PyModuleDef {
    m_base: ffi::PyModuleDef_HEAD_INIT,
    m_name: c"minitensor.ops".as_ptr(),
    m_doc: std::ptr::null(),
    m_size: size_of::<State>() as ffi::Py_ssize_t,
    m_methods: std::ptr::null_mut(),
    m_slots: &raw mut NO_SLOTS,
    m_traverse: None,
    m_clear: None,
    m_free: Some(free_state),
};
static mut NO_SLOTS: ffi::PyModuleDef_Slot = ffi::PyModuleDef_Slot { slot: 0, value: std::ptr::null_mut() };

/// Creates the state module of a function in that module.
fn new_state<'py>(module: &Bound<'py, PyModule>, state: State) -> Result<Bound<'py, PyAny>> {
    let py = module.py();
    let spec = py.import("types")?.getattr("SimpleNamespace")?.call0()?;
    spec.setattr("name", module.name()?)?;
    let def = &raw mut STATE_MODULE;
    // SAFETY: the definition has no slots. Executing it creates the state, filled with zeros, and no code reads it
    // before it is written.
    unsafe {
        let state_module = Bound::from_owned_ptr_or_err(py, ffi::PyModule_FromDefAndSpec(def, spec.as_ptr()))?;
        if ffi::PyModule_ExecDef(state_module.as_ptr(), def) != 0 {
            return Err(PyErr::fetch(py).into());
        }
        state_of(state_module.as_ptr()).write(state);
        Ok(state_module)
    }
}

/// The state in a state module.
#[inline]
unsafe fn state_of(module: *mut ffi::PyObject) -> *mut State {
    // SAFETY: the caller's contract.
    unsafe { ffi::PyModule_GetState(module).cast() }
}

/// True if the object is a state module.
///
/// # Safety
/// It is null or an object, and the interpreter is attached.
unsafe fn is_state(object: *mut ffi::PyObject) -> bool {
    // SAFETY: `PyModule_GetDef` is called on a module only.
    unsafe {
        !object.is_null() && ffi::PyModule_Check(object) != 0 && ffi::PyModule_GetDef(object) == &raw mut STATE_MODULE
    }
}

/// The function in a state module, which lives as long as the module.
///
/// # Safety
/// It is a state module.
#[inline]
unsafe fn function_of<'a>(module: *mut ffi::PyObject) -> &'a Function {
    // SAFETY: the caller's contract.
    unsafe { &*(*state_of(module)).function }
}

unsafe extern "C" fn free_state(module: *mut c_void) {
    // SAFETY: CPython frees a module with a state once, and [`new_state`] has written it.
    unsafe { state_of(module.cast()).drop_in_place() }
}
