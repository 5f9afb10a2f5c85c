//! Formatting of tensors: elements are aligned, and large tensors are abbreviated.

use std::fmt::{self, Write};

use super::{Device, Tensor};
use crate::dtype::{DType, Kind};

/// A tensor with more elements is abbreviated.
const THRESHOLD: usize = 1000;
/// The number of elements that an abbreviated axis shows at either end.
const EDGE: usize = 3;
/// If more elements than this remain, as with many short axes, none is shown.
const MOST: usize = 10_000;
/// The maximum width of a line.
const WIDTH: usize = 88;

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, dtype, device) = (self.shape(), self.dtype(), self.device());
        // The calls that a lazy tensor results from may fail.
        let Ok(elements) = self.expect_values().and_then(|()| self.detach().to_device(Device::Cpu)) else {
            return write!(f, "tensor(..., shape={shape}, dtype={dtype}, device='{device}')");
        };
        let mut notes = String::new();
        if !matches!(dtype, DType::F32 | DType::I64 | DType::Bool) || self.numel() == 0 {
            write!(notes, ", dtype={dtype}")?;
        }
        if device != Device::Cpu {
            write!(notes, ", device='{device}'")?;
        }
        let body = elements.body("tensor(".len());
        if self.numel() == 0 && self.ndim() != 1 || body == "[...]" {
            write!(notes, ", shape={shape}")?;
        }
        match self.grad_fn_name() {
            Some(name) => write!(notes, ", grad_fn=<{name}>")?,
            None if self.requires_grad() => notes.push_str(", requires_grad=True"),
            None => {}
        }
        let last = body.rsplit('\n').next().unwrap_or("").len();
        let break_line = !notes.is_empty() && last + notes.len() > WIDTH;
        let notes = if break_line { notes.replacen(", ", ",\n       ", 1) } else { notes };
        write!(f, "tensor({body}{notes})")
    }
}

impl Tensor {
    /// The elements in brackets. Lines after the first start at column `indent`.
    pub fn body(&self, indent: usize) -> String {
        if self.numel() == 0 {
            return "[]".to_owned();
        }
        let Some(cells) = Cells::new(self) else { return "[...]".to_owned() };
        let mut out = String::new();
        cells.write(&mut out, 0, &mut 0, indent);
        out
    }
}

/// The shown elements, as text padded to the same width.
struct Cells {
    texts: Vec<String>,
    /// For each axis: the numbers of elements before and after the dots. The second is 0 if the axis is not abbreviated.
    axes: Vec<(usize, usize)>,
}

impl Cells {
    /// `None` if the abbreviated tensor still has more than [`MOST`] elements.
    fn new(tensor: &Tensor) -> Option<Cells> {
        let shorten = tensor.numel() > THRESHOLD;
        let axes: Vec<(usize, usize)> =
            tensor.shape().iter().map(|n| if shorten && *n > 2 * EDGE { (EDGE, EDGE) } else { (*n, 0) }).collect();
        if axes.iter().map(|(front, back)| front + back).product::<usize>() > MOST {
            return None;
        }
        let mut shown = tensor.detach();
        for (axis, (front, back)) in axes.iter().enumerate() {
            if *back > 0 {
                shown = shown.ends(axis, *front, *back);
            }
        }
        let mut texts = texts(&shown);
        let width = texts.iter().map(|t| t.chars().count()).max().unwrap_or(0);
        texts.iter_mut().for_each(|t| *t = format!("{t:>width$}"));
        Some(Cells { texts, axes })
    }

    fn write(&self, out: &mut String, axis: usize, next: &mut usize, indent: usize) {
        if axis == self.axes.len() {
            out.push_str(&self.texts[*next]);
            *next += 1;
            return;
        }
        let (front, back) = self.axes[axis];
        let innermost = axis + 1 == self.axes.len();
        let mut column = indent + axis + 1;
        out.push('[');
        for i in 0..front + back {
            if i > 0 {
                self.separate(out, axis, indent, &mut column, innermost);
            }
            if i == front && back > 0 {
                out.push_str("...");
                self.separate(out, axis, indent, &mut column, innermost);
            }
            self.write(out, axis + 1, next, indent);
        }
        out.push(']');
    }

    fn separate(&self, out: &mut String, axis: usize, indent: usize, column: &mut usize, innermost: bool) {
        let width = self.texts.first().map_or(0, |t| t.chars().count()) + 2;
        out.push(',');
        *column += width;
        let start = " ".repeat(indent + axis + 1);
        if !innermost {
            let blank = "\n".repeat(self.axes.len() - axis - 1);
            let _ = write!(out, "{blank}{start}");
        } else if *column + width > WIDTH {
            *column = indent + axis + 1;
            let _ = write!(out, "\n{start}");
        } else {
            out.push(' ');
        }
    }
}

impl Tensor {
    /// A copy of the first `front` and the last `back` elements along an axis.
    fn ends(&self, axis: usize, front: usize, back: usize) -> Tensor {
        let mut shape = self.shape().clone();
        shape.dims_mut()[axis] = front + back;
        let (size, axis) = (self.shape()[axis], axis as i64);
        let parts = [(0, front, 0), (size - back, back, front)];
        let copy = Tensor::empty(shape, self.dtype(), self.device());
        let Ok(copy) = copy else { return self.detach() };
        for (from, count, to) in parts {
            if let (Ok(source), Ok(target)) =
                (self.slice_view(axis, from, count, 1), copy.slice_view(axis, to, count, 1))
            {
                // The tensor is on the CPU, where copies do not fail.
                let _ = target.copy_from(&source);
            }
        }
        copy
    }
}

fn texts(tensor: &Tensor) -> Vec<String> {
    match tensor.dtype().kind() {
        Kind::Bool => tensor
            .to_vec::<bool>()
            .unwrap_or_default()
            .iter()
            .map(|v| if *v { "True" } else { "False" }.into())
            .collect(),
        Kind::Signed | Kind::Unsigned => with_dtype!(tensor.dtype(), T => {
            tensor.to_vec::<T>().unwrap_or_default().iter().map(|v| v.to_string()).collect()
        }),
        Kind::Float => floats(&numbers(tensor, DType::F64)),
        Kind::Complex => {
            let parts =
                tensor.cast(DType::C128).and_then(|t| t.to_vec::<num_complex::Complex<f64>>()).unwrap_or_default();
            let re = floats(&parts.iter().map(|z| z.re).collect::<Vec<_>>());
            let im = floats(&parts.iter().map(|z| z.im).collect::<Vec<_>>());
            re.iter()
                .zip(&im)
                .map(|(r, i)| if i.starts_with('-') { format!("{r}{i}j") } else { format!("{r}+{i}j") })
                .collect()
        }
    }
}

fn numbers(tensor: &Tensor, dtype: DType) -> Vec<f64> {
    tensor.cast(dtype).and_then(|t| t.to_vec::<f64>()).unwrap_or_default()
}

/// Formats with four digits after the point, whole numbers as `1.`, and very large or small numbers in scientific notation.
fn floats(values: &[f64]) -> Vec<String> {
    let finite = || values.iter().filter(|v| v.is_finite());
    let largest = finite().fold(0.0f64, |m, v| m.max(v.abs()));
    let smallest = finite().filter(|v| **v != 0.0).fold(f64::INFINITY, |m, v| m.min(v.abs()));
    let whole = finite().all(|v| v.fract() == 0.0);
    let scientific = largest >= 1e8 || (!whole && (smallest < 1e-4 || largest / smallest > 1e6));
    let show = |v: &f64| match v {
        v if v.is_nan() => "nan".to_string(),
        v if v.is_infinite() => if *v > 0.0 { "inf" } else { "-inf" }.to_string(),
        v if scientific => {
            let text = format!("{v:.4e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        v if whole => format!("{v:.0}."),
        v => format!("{v:.4}"),
    };
    values.iter().map(show).collect()
}
