//! [`Guard`]: the Python objects that a graph depends on.

use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyWeakrefReference};

use crate::tensor::class::PyTensor;

/// Objects in containers, to compare with those that are there later. Tensors are not kept.
#[pyclass(name = "_Guard", module = "minitensor")]
#[derive(Default)]
pub struct Guard {
    places: Vec<(Place, Expected)>,
    sizes: Vec<(Py<PyAny>, usize)>,
    /// Sets, and what they contain.
    sets: Vec<(Py<PyAny>, Py<PyAny>)>,
}

/// A place in a container.
enum Place {
    Key(Py<PyDict>, Py<PyAny>),
    /// A key of a mapping that is not a dict, such as the attributes of a class.
    KeyOfOther(Py<PyAny>, Py<PyAny>),
    Index(Py<PyList>, usize),
    /// A variable of an enclosing function.
    Cell(Py<PyAny>),
}

enum Expected {
    Object(Py<PyAny>),
    Tensor(Py<PyWeakrefReference>),
}

impl Place {
    /// The object there, if there is one. An empty cell has `None`.
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match self {
            Place::Key(dict, key) => dict.bind(py).get_item(key)?,
            Place::KeyOfOther(mapping, key) => mapping.bind(py).get_item(key).ok(),
            Place::Index(list, at) => list.bind(py).get_item(*at).ok(),
            Place::Cell(cell) => match cell.bind(py).getattr(pyo3::intern!(py, "cell_contents")) {
                Err(error) if error.is_instance_of::<PyValueError>(py) => Some(py.None().into_bound(py)),
                content => Some(content?),
            },
        })
    }
}

impl Guard {
    fn expect(&mut self, place: Place, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let expected = match object.cast::<PyTensor>() {
            Ok(_) => Expected::Tensor(PyWeakrefReference::new(object)?.unbind()),
            Err(_) => Expected::Object(object.clone().unbind()),
        };
        self.places.push((place, expected));
        Ok(())
    }
}

#[pymethods]
impl Guard {
    #[new]
    fn new() -> Guard {
        Guard::default()
    }

    /// Adds the object that a container has at a key.
    fn add(&mut self, container: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let place = if let Ok(dict) = container.cast::<PyDict>() {
            Place::Key(dict.clone().unbind(), key.clone().unbind())
        } else if let Ok(list) = container.cast::<PyList>() {
            Place::Index(list.clone().unbind(), key.extract()?)
        } else {
            Place::KeyOfOther(container.clone().unbind(), key.clone().unbind())
        };
        self.expect(place, object)
    }

    /// Adds the object in a cell.
    fn add_cell(&mut self, cell: Py<PyAny>, object: &Bound<'_, PyAny>) -> PyResult<()> {
        self.expect(Place::Cell(cell), object)
    }

    /// Adds the size of a container.
    fn add_size(&mut self, container: &Bound<'_, PyAny>) -> PyResult<()> {
        self.sizes.push((container.clone().unbind(), container.len()?));
        Ok(())
    }

    /// Adds a set, and a copy of it.
    fn add_set(&mut self, set: Py<PyAny>, copy: Py<PyAny>) {
        self.sets.push((set, copy));
    }

    /// Whether everything is as before.
    pub fn holds(&self, py: Python<'_>) -> PyResult<bool> {
        for (place, expected) in &self.places {
            let is_same = match (place.object(py)?, expected) {
                (Some(now), Expected::Object(before)) => now.is(before),
                (Some(now), Expected::Tensor(before)) => {
                    before.bind(py).upgrade().is_some_and(|before| now.is(&before))
                }
                (None, _) => false,
            };
            if !is_same {
                return Ok(false);
            }
        }
        for (container, size) in &self.sizes {
            if container.bind(py).len()? != *size {
                return Ok(false);
            }
        }
        for (set, copy) in &self.sets {
            if !set.bind(py).eq(copy)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (place, expected) in &self.places {
            match place {
                Place::Key(dict, key) => (visit.call(dict)?, visit.call(key)?),
                Place::KeyOfOther(mapping, key) => (visit.call(mapping)?, visit.call(key)?),
                Place::Index(list, _) => (visit.call(list)?, ()),
                Place::Cell(cell) => (visit.call(cell)?, ()),
            };
            match expected {
                Expected::Object(object) => visit.call(object)?,
                Expected::Tensor(reference) => visit.call(reference)?,
            }
        }
        self.sizes.iter().try_for_each(|(container, _)| visit.call(container))?;
        self.sets.iter().try_for_each(|(set, copy)| visit.call(set).and_then(|()| visit.call(copy)))
    }

    fn __clear__(&mut self) {
        *self = Guard::default();
    }
}

pub fn install(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Guard>()
}
