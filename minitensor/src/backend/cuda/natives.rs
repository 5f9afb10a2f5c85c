//! Ops whose definitions are loops of the CPU, in CUDA C. Most are one expression for each element.

use std::sync::Arc;

use minitensor_kernels::cuda::Source;

use super::CUDA;
use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{ArrayKernel, KernelCall, KernelEntry, Kernels};
use crate::tensor::Tensor;

/// The threads of a block.
const THREADS: u32 = 256;
/// Definitions that these kernels share.
const SHARED: &str = include_str!("natives.cu");

/// The C type of elements.
#[derive(Clone, Copy)]
pub(super) enum Elements {
    /// They are only copied: an unsigned integer of their size.
    Bits,
    /// They are computed with.
    Numbers,
}

/// A field of the argument of a kernel.
pub(super) enum Field<'a> {
    Number(i64),
    /// The address of the elements of a tensor, which is made contiguous.
    Elements(&'a Tensor),
    /// The address of the indices of a tensor.
    Index(&'a Tensor),
    /// The address of the `uint64` elements of a tensor.
    Words(&'a Tensor),
    /// The address of the status, which a kernel sets if an index is out of range.
    Status,
}
use Field::{Elements as E, Index, Number as N, Status};
use Shared::Elements as Each;

fn c_type(dtype: DType, elements: Elements) -> Option<&'static str> {
    match elements {
        Elements::Numbers => super::type_of(dtype).map(|t| t.name()),
        Elements::Bits => match dtype.size() {
            1 => Some("u8"),
            2 => Some("u16"),
            4 => Some("u32"),
            8 => Some("u64"),
            _ => None,
        },
    }
}

/// What the threads of a kernel share among them.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Shared {
    /// Elements: each thread takes one, `i`.
    Elements,
    /// Rows: each block takes one, `row`.
    Rows,
}

/// Runs a kernel whose body writes to `out`. `fields` are the other fields of its argument, with their names. There are `count` elements or
/// rows.
pub(super) fn run(
    call: &KernelCall<'_>,
    (shared, count): (Shared, usize),
    elements: Elements,
    fields: &[(&str, Field<'_>)],
    out: &Tensor,
    body: &str,
) -> Result<()> {
    let Some(x) = call.inputs[0] else { return Ok(()) };
    let device = CUDA.device(out.device().index())?;
    let none = || {
        Error::not_implemented(format!(
            "op '{}' has no kernel for {} on device 'cuda'; copy its inputs with to('cpu')",
            call.op.name,
            x.dtype()
        ))
    };
    let c_type = c_type(x.dtype(), elements).ok_or_else(none)?;
    let (mut declared, mut argument, mut kept) = (String::from("i64 all; "), vec![count as u64], Vec::new());
    for (name, field) in fields {
        let (c, value) = match field {
            Field::Number(value) => ("i64 ".to_owned(), *value as u64),
            Field::Status => ("u64 *".to_owned(), device.status()? as u64),
            Field::Elements(t) | Field::Index(t) | Field::Words(t) => {
                let c = match field {
                    Field::Index(_) => "i64",
                    Field::Words(_) => "u64",
                    _ => c_type,
                };
                let t = t.contiguous()?;
                let address = t.data_ptr().expose_provenance() as u64;
                kept.push(t);
                (format!("{c} *"), address)
            }
        };
        declared += &format!("{c}{name}; ");
        argument.push(value);
    }
    argument.push(out.data_ptr().expose_provenance() as u64);
    let result = if out.dtype() == x.dtype() { Some(c_type) } else { super::type_of(out.dtype()).map(|t| t.name()) };
    let result = result.ok_or_else(none)?;
    let (each, threads) = match shared {
        Shared::Elements => ("EACH(i, a.all)", THREADS as usize),
        Shared::Rows => ("for (i64 row = BLOCK; row < a.all; row += BLOCKS)", 1),
    };
    let text = format!(
        "#define T {c_type}\n{SHARED}\ntypedef struct {{ {declared}{result} *out; }} Arguments;\n\
         KERNEL({THREADS}) {{ {each} {{ {body} }} }}\n"
    );
    if count == 0 {
        return Ok(());
    }
    let function = device.load(Source { text, threads: THREADS, is_split: false })?;
    let blocks = count.div_ceil(threads).min(1 << 20) as u32;
    // SAFETY: the argument has the fields of the kernel. The tensors are contiguous, and are freed after the kernel has run, since they
    // are freed on its stream.
    unsafe { device.driver().launch(function, blocks, THREADS, &argument, device.stream()) }
}

/// The size of a tensor along its last axis.
pub(super) fn last(t: &Tensor) -> i64 {
    t.shape().last().map_or(1, |n| *n as i64)
}

fn input<'a>(call: &KernelCall<'a>, k: usize) -> Result<&'a Tensor> {
    call.inputs[k].ok_or_else(|| Error::runtime(format!("op '{}' needs its input {k}", call.op.name)))
}

fn output<'a>(call: &KernelCall<'a>, k: usize) -> Result<&'a Tensor> {
    call.outputs[k].ok_or_else(|| Error::runtime(format!("op '{}' needs its output {k}", call.op.name)))
}

fn integer(call: &KernelCall<'_>, k: usize) -> i64 {
    if let Attr::Int(value) = call.attrs[k] { value } else { 0 }
}

/// An error if there are indices into nothing. Others are checked by the device, which reads element 0 instead of one that is out of range.
fn check_size(call: &KernelCall<'_>, index: &Tensor, size: i64) -> Result<()> {
    match size == 0 && index.numel() > 0 {
        true => Err(Error::index(format!("op '{}': an index is out of range for size 0", call.op.name))),
        false => Ok(()),
    }
}

fn gather(call: &KernelCall<'_>) -> Result<()> {
    let (x, index) = (input(call, 0)?, input(call, 1)?);
    check_size(call, index, last(x))?;
    let fields = [("n", N(last(x))), ("m", N(last(index))), ("status", Status), ("x", E(x)), ("index", Index(index))];
    let body = "a.out[i] = a.x[i / a.m * a.n + wrapped(a.index[i], a.n, a.status)];";
    run(call, (Each, index.numel()), Elements::Bits, &fields, output(call, 0)?, body)
}

fn scatter(call: &KernelCall<'_>) -> Result<()> {
    let (x, index, out) = (input(call, 0)?, input(call, 1)?, output(call, 0)?);
    check_size(call, index, last(out))?;
    let fields = [("n", N(last(out))), ("m", N(last(index))), ("status", Status), ("x", E(x)), ("index", Index(index))];
    let body = "ADD(&a.out[i / a.m * a.n + wrapped(a.index[i], a.n, a.status)], a.x[i]);";
    run(call, (Each, index.numel()), Elements::Numbers, &fields, output(call, 0)?, body)
}

fn take_rows(call: &KernelCall<'_>) -> Result<()> {
    let (table, index) = (input(call, 0)?, input(call, 1)?);
    check_size(call, index, table.shape()[0] as i64)?;
    let fields = [
        ("rows", N(table.shape()[0] as i64)),
        ("width", N(last(table))),
        ("status", Status),
        ("x", E(table)),
        ("index", Index(index)),
    ];
    let body = "a.out[i] = a.x[wrapped(a.index[i / a.width], a.rows, a.status) * a.width + i % a.width];";
    run(call, (Each, output(call, 0)?.numel()), Elements::Bits, &fields, output(call, 0)?, body)
}

fn scatter_rows(call: &KernelCall<'_>) -> Result<()> {
    let (x, index, out) = (input(call, 0)?, input(call, 1)?, output(call, 0)?);
    check_size(call, index, out.shape()[0] as i64)?;
    let fields = [
        ("rows", N(out.shape()[0] as i64)),
        ("width", N(last(x))),
        ("status", Status),
        ("x", E(x)),
        ("index", Index(index)),
    ];
    let body = "ADD(&a.out[wrapped(a.index[i / a.width], a.rows, a.status) * a.width + i % a.width], a.x[i]);";
    run(call, (Each, x.numel()), Elements::Numbers, &fields, output(call, 0)?, body)
}

fn wrap(call: &KernelCall<'_>) -> Result<()> {
    let index = input(call, 0)?;
    check_size(call, index, integer(call, 0))?;
    let fields = [("size", N(integer(call, 0))), ("status", Status), ("index", Index(index))];
    run(
        call,
        (Each, index.numel()),
        Elements::Numbers,
        &fields,
        output(call, 0)?,
        "a.out[i] = wrapped(a.index[i], a.size, a.status);",
    )
}

fn one_hot(call: &KernelCall<'_>) -> Result<()> {
    let index = input(call, 0)?;
    check_size(call, index, integer(call, 0))?;
    let fields = [("classes", N(integer(call, 0))), ("status", Status), ("index", Index(index))];
    let body = "a.out[i * a.classes + position(a.index[i], a.classes, a.status)] = 1;";
    run(call, (Each, index.numel()), Elements::Numbers, &fields, output(call, 0)?, body)
}

fn triangle(call: &KernelCall<'_>, is_kept: &str) -> Result<()> {
    let x = input(call, 0)?;
    let rows = x.shape()[x.ndim() - 2] as i64;
    let fields = [("rows", N(rows)), ("columns", N(last(x))), ("k", N(integer(call, 0))), ("x", E(x))];
    let body = format!("i64 row = i / a.columns % a.rows, column = i % a.columns; if ({is_kept}) a.out[i] = a.x[i];");
    run(call, (Each, x.numel()), Elements::Bits, &fields, output(call, 0)?, &body)
}

fn tril(call: &KernelCall<'_>) -> Result<()> {
    triangle(call, "column - row <= a.k")
}

fn triu(call: &KernelCall<'_>) -> Result<()> {
    triangle(call, "column - row >= a.k")
}

fn uniform(call: &KernelCall<'_>) -> Result<()> {
    let (key, out) = (input(call, 0)?, output(call, 0)?);
    if key.shape()[..] != [2] {
        return Err(Error::value(format!("a key has two elements, the seed and a counter; got shape {}", key.shape())));
    }
    let number = super::type_of(out.dtype()).map_or("", |t| t.name());
    let body = format!("a.out[i] = uniform_{number}(random_word(a.key[0], a.key[1] + (u64)i / 2, i % 2));");
    run(call, (Each, out.numel()), Elements::Numbers, &[("key", Field::Words(key))], out, &body)
}

/// The dtypes of numbers that are added by atomic instructions.
const ADDED: &[DType] = &[DType::F32, DType::F64, DType::I32, DType::I64, DType::U32, DType::U64];
/// All dtypes, as they are in memory.
const ANY: &[DType] = &[];

fn kernels(dtypes: &[DType], run: fn(&KernelCall<'_>) -> Result<()>) -> Kernels {
    let run: ArrayKernel = Arc::new(run);
    Kernels::Arrays(match dtypes {
        [] => vec![(vec![], run)],
        dtypes => dtypes.iter().map(|dtype| (vec![*dtype], run.clone())).collect(),
    })
}

macro_rules! natives {
    ($($name:literal $dtypes:ident $run:path;)*) => {$(
        inventory::submit! { KernelEntry { op: $name, device: "cuda", kernels: || kernels($dtypes, $run) } }
    )*};
}
natives! {
    "cumsum" ADDED super::order::cumsum;
    "sort" ANY super::order::sort;
    "topk" ANY super::order::sort;
    "linalg::matrix_product" ANY super::matmul::multiply;
    "gather" ANY gather;
    "scatter" ADDED scatter;
    "indexing::take_rows" ANY take_rows;
    "scatter_rows" ADDED scatter_rows;
    "indexing::wrap" ANY wrap;
    "one_hot" ANY one_hot;
    "random::uniform" ANY uniform;
    "tril" ANY tril;
    "triu" ANY triu;
}
