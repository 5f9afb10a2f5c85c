//! The streams of an exchange by `__dlpack__`, as the Python array API standard numbers them: 1 is CUDA's legacy default stream,
//! 2 the default stream of a thread, and a larger number the address of a stream.

use minitensor::{Device, Error};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::error::{Exception, Result};
use crate::runtime::gil;
use crate::runtime::stream::Stream;

/// The number of our current stream for a producer.
pub fn number(stream: Stream) -> usize {
    stream.number().max(1)
}

/// Makes the memory of a tensor safe for the stream of a consumer. All that we submitted has ended then, unless it was
/// submitted to the same stream, or the consumer forbids to wait by -1.
pub fn hand_over(py: Python<'_>, device: Device, consumer: Option<&Bound<'_, PyAny>>) -> Result<()> {
    let Some(own) = Stream::current(device) else {
        return match consumer {
            Some(_) => Err(PyBufferError::new_err("a tensor on the CPU has no stream; pass stream=None").into()),
            None => Ok(()),
        };
    };
    let number = match consumer {
        None => 1,
        Some(number) => number.extract::<i64>().map_err(|_| {
            Error::type_(format!("__dlpack__: stream must be an integer or None, got {}", number.get_type()))
        })?,
    };
    let theirs = match number {
        -1 => return Ok(()),
        1.. => Stream::new(device, number as usize),
        _ => {
            return Err(PyBufferError::new_err(format!(
                "__dlpack__: stream={number} is not a stream; pass 1 for the legacy default stream, 2 for the default stream of \
                 the thread, or the address of a stream"
            ))
            .into());
        }
    };
    if theirs != own {
        gil::detach(py, || own.wait())?;
    }
    Ok(())
}

/// Our work on memory of another library. The library may use the memory again once this is dropped.
pub struct Work(Stream);

impl Work {
    /// The work on the current stream. `None` if the device has no streams.
    pub fn on(device: Device) -> Option<Work> {
        Stream::current(device).map(Work)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Err(error) = self.0.wait() {
            Python::try_attach(|py| Exception::from(error).0.write_unraisable(py, None));
        }
    }
}
