//! [`Class`]: how objects of a class take part in a call. It is determined once for each class.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use minitensor::Error;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::library::Library;
use crate::error::Result;
use crate::tensor::interchange::exchange::ExchangeApi;

/// How objects of a class take part in a call.
#[derive(Default)]
pub struct Class {
    /// The library of the arrays.
    pub library: Option<Library>,
    /// The function of a bridge that calls an op on such objects, given its name and its arguments by name.
    pub bridge: Option<Py<PyAny>>,
    /// True for a subclass of NumPy's arrays. NumPy's functions return arrays of the same class.
    pub wraps: bool,
    /// Why such arrays are not accepted.
    refusal: Option<String>,
}

/// The number of classes after which the results are forgotten.
const CAPACITY: usize = 256;

/// The results by the address of the class, which each entry keeps alive. The lock is held only with the interpreter attached and
/// while no Python code runs, so it is free during a fork.
static CLASSES: Mutex<Option<Classes>> = Mutex::new(None);
type Classes = HashMap<usize, (Py<PyType>, Arc<Class>)>;

impl Class {
    /// The class of an object.
    pub fn of(object: &Bound<'_, PyAny>) -> Result<Arc<Class>> {
        let class = object.get_type();
        let address = class.as_ptr().addr();
        let known = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known.as_ref().and_then(|known| known.get(&address)) {
            return Ok(found.clone());
        }
        drop(known);
        let found = Arc::new(Class::determine(&class)?);
        let mut known = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
        let all = known.get_or_insert_default();
        let old = if all.len() < CAPACITY { HashMap::new() } else { std::mem::take(all) };
        all.insert(address, (class.unbind(), found.clone()));
        // Freeing a class may run Python code.
        drop(known);
        drop(old);
        Ok(found)
    }

    /// True for arrays of a library or of a bridge.
    pub fn is_array(&self) -> bool {
        self.library.is_some() || self.bridge.is_some()
    }

    /// The library of an object, or an error if its arrays are not accepted.
    pub fn library(&self) -> Result<Option<Library>> {
        match &self.refusal {
            Some(refusal) => Err(Error::type_(refusal.clone()).into()),
            None => Ok(self.library),
        }
    }

    #[cold]
    fn determine(class: &Bound<'_, PyType>) -> Result<Class> {
        let py = class.py();
        let bridge = py.import("minitensor._bridges")?.getattr("find")?.call1((class,))?;
        let mut found = Class { bridge: (!bridge.is_none()).then(|| bridge.unbind()), ..Class::default() };
        if let Some(api) = ExchangeApi::of(class) {
            found.library = Some(Library::Exchange(api));
            return Ok(found);
        }
        if found.bridge.is_some() && is_tensor_of_pytorch(class)? {
            found.library = Some(Library::PyTorch);
            return Ok(found);
        }
        if !class.hasattr("__array_interface__")? {
            return Ok(found);
        }
        found.library = Some(Library::NumPy);
        let array = py.import("numpy")?.getattr("ndarray")?;
        if class.is_subclass(&array)? && !class.is(&array) {
            found.wraps = true;
            let own = class.getattr("__array_ufunc__")?;
            if !own.is(&array.getattr("__array_ufunc__")?) {
                found.refusal = Some(format!(
                    "an array of the class {} computes with its own rules, which ops do not know; pass np.asarray(x)",
                    class.fully_qualified_name()?
                ));
            }
        }
        Ok(found)
    }
}

fn is_tensor_of_pytorch(class: &Bound<'_, PyType>) -> Result<bool> {
    let modules = class.py().import("sys")?.getattr("modules")?;
    match modules.get_item("torch") {
        Ok(torch) => Ok(class.is_subclass(&torch.getattr("Tensor")?)?),
        Err(_) => Ok(false),
    }
}
