//! [`Library`]: the library of an array that is not a tensor of ours.

use minitensor::kernels::team;
use minitensor::{Device, Tensor};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::class::Class;
use super::threads;
use crate::error::Result;
use crate::runtime::stream::{self, Stream, has_streams};
use crate::tensor::class::PyTensor;
use crate::tensor::interchange::copy::Copy;
use crate::tensor::interchange::dlpack::{self, Order};
use crate::tensor::interchange::exchange::ExchangeApi;
use crate::tensor::interchange::ndarray::Api;
use crate::tensor::interchange::numpy;

/// A library whose arrays become tensors and back, over the same memory.
#[derive(Clone, Copy)]
pub enum Library {
    /// NumPy.
    NumPy,
    /// A library with DLPack's exchange API, such as PyTorch since 2.10.
    Exchange(&'static ExchangeApi),
    /// An older PyTorch, whose tensors are exchanged as DLPack capsules.
    PyTorch,
}

/// The functions of an older PyTorch that make a capsule of a tensor, and a tensor of an object with `__dlpack__`.
struct Capsules {
    export: Py<PyAny>,
    import: Py<PyAny>,
}

impl Capsules {
    fn get(py: Python<'_>) -> Result<&'static Capsules> {
        static CAPSULES: PyOnceLock<Capsules> = PyOnceLock::new();
        Ok(CAPSULES.get_or_try_init(py, || -> PyResult<Capsules> {
            let module = py.import("torch.utils.dlpack")?;
            let function = |name| module.getattr(name).map(Bound::unbind);
            Ok(Capsules { export: function("to_dlpack")?, import: function("from_dlpack")? })
        })?)
    }

    /// A tensor over the memory of a tensor of PyTorch. Its functions do not check for lazy conjugates and negatives.
    fn tensor(object: &Bound<'_, PyAny>) -> Result<Tensor> {
        let py = object.py();
        let plain = object.call_method0("resolve_conj")?.call_method0("resolve_neg")?;
        dlpack::consume(&Capsules::get(py)?.export.bind(py).call1((plain,))?, Order::Shared, true)
    }
}

impl Library {
    /// True for an array of NumPy that is no instance of a subclass: the most common argument.
    #[inline]
    pub fn is_plain_array(object: &Bound<'_, PyAny>) -> bool {
        Api::loaded(object.py()).is_some_and(|api| api.is_array(object))
    }

    /// The library of an array; `None` for other objects, and for tensors of ours.
    pub fn of(object: &Bound<'_, PyAny>) -> Result<Option<Library>> {
        if object.is_instance_of::<PyTensor>() {
            return Ok(None);
        }
        if Library::is_plain_array(object) {
            return Ok(Some(Library::NumPy));
        }
        match Class::of(object)?.library()? {
            // An object may have NumPy's protocol although its class does not.
            None => Ok(numpy::is_numpy(object)?.then_some(Library::NumPy)),
            found => Ok(found),
        }
    }

    /// A tensor over the memory of an array of this library. Arrays of NumPy whose layout is not supported are copied if `copy`
    /// admits it.
    pub fn tensor(self, object: &Bound<'_, PyAny>, copy: Copy) -> Result<Tensor> {
        match self {
            Library::NumPy => numpy::from_numpy(object, copy),
            Library::Exchange(api) => api.tensor(object),
            Library::PyTorch => Capsules::tensor(object),
        }
    }

    /// As [`Library::tensor`], for an array that the bridge of its framework has not checked.
    pub fn checked_tensor(self, object: &Bound<'_, PyAny>, copy: Copy) -> Result<Tensor> {
        match self {
            Library::NumPy => numpy::from_numpy(object, copy),
            Library::Exchange(_) | Library::PyTorch => dlpack::import(object, None),
        }
    }

    /// Computes on the threads of the library, until the result is dropped. On a device, its current stream becomes ours: we compute
    /// in the order of the library, and nothing waits.
    pub fn enter<'a>(self, py: Python<'_>, tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<Entered> {
        let device = tensors.into_iter().map(Tensor::device).find(|device| *device != Device::Cpu);
        Ok(match (device.filter(|device| has_streams(*device)), self) {
            (Some(device), _) => Entered { _stream: self.stream(py, device)?.map(Stream::enter), ..Entered::default() },
            (None, Library::Exchange(api)) => Entered { _threads: threads::enter(api), ..Entered::default() },
            (None, _) => Entered::default(),
        })
    }

    /// The current stream of a device; `None` if the library has no streams.
    fn stream(self, py: Python<'_>, device: Device) -> Result<Option<Stream>> {
        Ok(match self {
            Library::NumPy => None,
            Library::Exchange(api) => api.stream(py, device)?,
            Library::PyTorch => {
                let stream = py.import("torch.cuda")?.call_method1("current_stream", (device.index(),))?;
                Some(Stream::new(device, stream.getattr("cuda_stream")?.extract()?))
            }
        })
    }

    /// An array of this library over the memory of a tensor.
    pub fn array<'py>(self, py: Python<'py>, tensor: Tensor) -> Result<Bound<'py, PyAny>> {
        match self {
            Library::NumPy => PyTensor::numpy(&Bound::new(py, PyTensor::from(tensor))?),
            // The results of a bridged op are contiguous, whatever the layout of its inputs.
            Library::Exchange(api) => api.object(py, tensor.contiguous()?),
            Library::PyTorch => {
                let tensor = Bound::new(py, PyTensor::from(tensor.contiguous()?))?;
                Ok(Capsules::get(py)?.import.bind(py).call1((tensor,))?)
            }
        }
    }
}

/// The threads and the stream of a library, which are ours until it is dropped.
#[must_use]
#[derive(Default)]
pub struct Entered {
    _stream: Option<stream::Entered>,
    _threads: Option<team::Entered>,
}

/// Copies the results that share memory with an input or with each other: other libraries do not know that they do.
pub fn separate<'a>(inputs: impl Iterator<Item = &'a Tensor> + Clone, outputs: &mut [Tensor]) -> Result<()> {
    for k in 0..outputs.len() {
        let (before, rest) = outputs.split_at_mut(k);
        let is_shared = |other: &Tensor| other.shares_storage(&rest[0]);
        if inputs.clone().any(is_shared) || before.iter().any(is_shared) {
            rest[0] = rest[0].copied()?;
        }
    }
    Ok(())
}
