//! Calls of the functions of a plugin: kernels, bodies over whole tensors, gradients, programs.

use std::collections::BTreeSet;
use std::ffi::c_void;

use minitensor_kernels::program::Program;
use smallvec::SmallVec;

use super::check;
use super::read::sizes;
use super::tensor::{Borrowed, take_back};
use crate::attr::Attr;
use crate::autograd::BackwardCall;
use crate::dtype::DType;
use crate::error::{Error, Result, counted};
use crate::op::{Arity, Backward, Call, CellArg, KernelCall, Mode, OpDef, Output};
use crate::plugin::abi::{self, Str, arity, core, most};
use crate::plugin::ffi::{PANICKED, checked};
use crate::tensor::{Shape, Tensor};

/// Few ops have more than three attributes, and moving a larger array costs more than a kernel of a few elements.
type Values = SmallVec<[abi::Value; 3]>;

#[inline(always)]
fn values(attrs: &[Attr]) -> Values {
    let mut values = Values::new();
    attrs.iter().for_each(|attr| values.push(abi::Value::of(attr)));
    values
}

/// The metadata of an absent optional input.
const NOTHING: abi::Meta = abi::Meta { dtype: 0, ndim: -1, shape: [0; abi::MAX_NDIM] };

/// A call without arguments.
fn empty_call(context: *const c_void, n_inputs: usize, attrs: &[abi::Value], n_outputs: usize) -> abi::Call {
    abi::Call {
        struct_size: size_of::<abi::Call>(),
        host: &raw const super::services::HOST,
        context,
        n_inputs: n_inputs as i32,
        n_attrs: attrs.len() as i32,
        n_outputs: n_outputs as i32,
        reserved: 0,
        input_arrays: std::ptr::null(),
        output_arrays: std::ptr::null(),
        inputs: std::ptr::null(),
        attrs: attrs.as_ptr(),
        sink: std::ptr::null_mut(),
        give: None,
        stream: std::ptr::null_mut(),
    }
}

/// Calls a function of a plugin over arrays. `context` is that of its table.
pub fn run_on_arrays(run: abi::CallFn, context: *const c_void, call: &KernelCall<'_>) -> Result<()> {
    let (inputs, outputs) = (Borrowed::new(call.inputs.iter().copied()), Borrowed::new(call.outputs.iter().copied()));
    let arrays = [inputs.arrays(), outputs.arrays()];
    let pointer = |array: &Option<abi::Array>| array.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let pointers = arrays.each_ref().map(|arrays| arrays.iter().map(pointer).collect::<Vec<_>>());
    let values = values(call.attrs);
    let call = abi::Call {
        input_arrays: pointers[0].as_ptr(),
        output_arrays: pointers[1].as_ptr(),
        stream: call.stream,
        ..empty_call(context, call.inputs.len(), &values, call.outputs.len())
    };
    // SAFETY: the function of the plugin is called as the ABI requires.
    checked(|sink| unsafe { run(&call, sink) })
}

/// The checked table of an op of a plugin. The table lives for ever.
#[derive(Clone, Copy)]
pub struct LoadedOp(&'static abi::Op);

// SAFETY: it is a constant of the plugin. The ABI requires that its functions may be called on any thread.
unsafe impl Send for LoadedOp {}
// SAFETY: as above.
unsafe impl Sync for LoadedOp {}

impl std::fmt::Debug for LoadedOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoadedOp({})", self.name())
    }
}

impl LoadedOp {
    /// # Safety
    /// The table and all its pointers are valid as the ABI requires, and live for ever. `read` checks what can be checked.
    pub unsafe fn new(op: &'static abi::Op) -> LoadedOp {
        LoadedOp(op)
    }

    fn name(&self) -> &'static str {
        // SAFETY: the name was checked when the table was read.
        unsafe { self.0.name.get(most::NAME) }.unwrap_or_default()
    }

    /// Adds the name of the op to an error.
    #[cold]
    fn context(&self, error: Error) -> Error {
        let name = format!("op '{}'", self.name());
        if error.message().starts_with(&name) { error } else { error.context(name) }
    }

    /// As [`LoadedOp::context`]. A panic may be due to optional inputs that are not given, so the error names those.
    #[cold]
    fn context_of_call(&self, error: Error, is_given: impl Fn(usize) -> bool) -> Error {
        let count = usize::try_from(self.0.n_inputs).unwrap_or(0);
        // SAFETY: the list of inputs and their names were checked when the table was read.
        let inputs = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.0.inputs, count) } };
        let is_absent = |(i, input): &(usize, &abi::Input)| input.arity == arity::OPTIONAL && !is_given(*i);
        // SAFETY: as above.
        let name = |(_, input): (usize, &abi::Input)| unsafe { input.name.get(most::NAME) }.unwrap_or_default();
        let absent: Vec<&str> = inputs.iter().enumerate().filter(is_absent).map(name).collect();
        if absent.is_empty() || !error.message().contains(PANICKED) {
            return self.context(error);
        }
        let absent: Vec<String> = absent.iter().map(|name| format!("'{name}'")).collect();
        let what = if absent.len() == 1 { "optional input" } else { "optional inputs" };
        self.context(Error::runtime(format!("{} (called without the {what} {})", error.message(), absent.join(", "))))
    }

    /// The number of kernels.
    pub fn count_kernels(&self) -> usize {
        self.0.n_kernels
    }

    /// The kernel for these dtypes.
    #[inline]
    pub fn find(&self, dtypes: &[DType]) -> Option<&'static abi::Kernel> {
        // SAFETY: the list of kernels was checked when the table was read.
        let kernels = unsafe { std::slice::from_raw_parts(self.0.kernels, self.0.n_kernels) };
        let is_for =
            |kernel: &&abi::Kernel| dtypes.iter().zip(kernel.dtypes).all(|(dtype, n)| abi::number(*dtype) == n);
        let mut found = kernels.iter().filter(is_for);
        match dtypes {
            [_, _, others @ ..] if !others.is_empty() => found.nth(self.place(others)?),
            _ => found.next(),
        }
    }

    /// The position of a kernel among those with the same dtypes of the first two variables, which have all combinations of the
    /// others in order.
    fn place(&self, others: &[DType]) -> Option<usize> {
        let Ok(count) = usize::try_from(self.0.n_generics) else { return None };
        // SAFETY: the lists of dtypes were checked when the table was read.
        let generics = unsafe { std::slice::from_raw_parts(self.0.generics, count) };
        generics.iter().skip(2).zip(others).try_fold(0, |place, (generic, dtype)| {
            // SAFETY: as above.
            let numbers = unsafe { std::slice::from_raw_parts(generic.dtypes, generic.n_dtypes) };
            let dtypes: BTreeSet<DType> = numbers.iter().flat_map(|n| abi::dtype(*n)).map(DType::compute).collect();
            Some(place * dtypes.len() + dtypes.iter().position(|own| own == dtype)?)
        })
    }

    /// Whether the kernels take neighbouring cells as the columns of a table.
    pub fn takes_columns(&self) -> bool {
        let count = usize::try_from(self.0.n_inputs).unwrap_or(0);
        // SAFETY: the list of inputs was checked when the table was read.
        count > 0 && unsafe { std::slice::from_raw_parts(self.0.inputs, count) }.iter().any(|i| i.core == core::COLUMNS)
    }

    /// Computes `n` elements.
    ///
    /// # Safety
    /// Every pointer is valid for `n` contiguous elements of the dtypes of the kernel.
    pub unsafe fn run_elements(
        &self,
        kernel: &abi::Kernel,
        attrs: &[Attr],
        n: usize,
        inputs: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<()> {
        let values = values(attrs);
        // SAFETY: reading the table checked that `elements` is set. The pointers are valid by the contract of this function.
        checked(|sink| unsafe {
            let run = kernel.run.elements.unwrap_unchecked();
            run(kernel.context, values.as_ptr(), n as i64, inputs.as_ptr().cast(), outputs.as_ptr().cast(), sink)
        })
        .map_err(|error| self.context(error))
    }

    /// Computes `cells` cells.
    ///
    /// # Safety
    /// Every argument has `cells` cores of the dtype, rank and layout that the kernel was chosen for.
    pub unsafe fn run_cells(
        &self,
        kernel: &abi::Kernel,
        attrs: &[Attr],
        args: &[CellArg<'_>],
        cells: usize,
    ) -> Result<()> {
        let values = values(attrs);
        let cell = |arg: &CellArg<'_>| abi::Cell {
            data: arg.data.cast(),
            step: arg.step as i64,
            is_large: arg.is_large.into(),
            ndim: arg.shape.len(),
            shape: arg.shape.as_ptr(),
            strides: arg.strides.as_ptr(),
        };
        let args: SmallVec<[abi::Cell; 6]> = args.iter().map(cell).collect();
        // SAFETY: reading the table checked that `cells` is set. The pointers are valid by the contract of this function.
        checked(|sink| unsafe {
            let run = kernel.run.cells.unwrap_unchecked();
            run(kernel.context, values.as_ptr(), args.as_ptr(), cells as i64, sink)
        })
        .map_err(|error| self.context_of_call(error, |i| !args[i].data.is_null()))
    }

    /// The program, which the plugin provides as JSON.
    pub fn program(&self, op: &OpDef, attrs: &[Attr]) -> Result<Program> {
        let optional = |i: &usize| op.inputs[*i].arity == Arity::Optional;
        let is_given = |i: usize| {
            let flag = op.own_attrs(op.attrs.len()) + (0..i).filter(optional).count();
            attrs.get(flag) != Some(&Attr::Bool(false))
        };
        let json = self.json(attrs).map_err(|error| self.context_of_call(error.context("its program"), is_given))?;
        self.read_program(op, &json)
    }

    /// Reads the text of a program of the op.
    pub fn read_program(&self, op: &OpDef, json: &str) -> Result<Program> {
        let program = Program::from_json(json).map_err(|e| Error::value(e.to_string()));
        let program = program.and_then(|program| check::program_names(op, &program).map(|()| program));
        program.map_err(|error| self.context(error.context("its program")))
    }

    /// The text of the program.
    pub fn json(&self, attrs: &[Attr]) -> Result<String> {
        unsafe extern "C" fn keep(json: *mut c_void, given: Str) {
            // SAFETY: the context is `json` below. The ABI requires the text to be valid for this call.
            unsafe { *json.cast::<Result<String>>() = given.get(abi::most::PROGRAM).map(str::to_owned) }
        }
        let values = values(attrs);
        let mut json: Result<String> = Ok(String::new());
        let sink = std::ptr::from_mut(&mut json).cast();
        let write = self.0.program.ok_or_else(|| Error::runtime("the op has no program"))?;
        // SAFETY: the function of the plugin is called as the ABI requires.
        checked(|error| unsafe { write(self.0.context, values.as_ptr(), values.len() as i32, sink, keep, error) })
            .and(json)
    }

    /// Runs a body over whole tensors. It borrows the inputs and creates the outputs.
    pub fn tensors(&self, call: &Call<'_>) -> Result<Vec<Tensor>> {
        unsafe extern "C" fn keep(outputs: *mut c_void, tensor: *mut abi::Tensor) {
            // SAFETY: the context is the list below. The ABI requires the plugin to transfer a handle that it holds, or null.
            unsafe { (*outputs.cast::<Vec<Option<Tensor>>>()).push(take_back(tensor)) }
        }
        let mut outputs: Vec<Option<Tensor>> = Vec::new();
        let (borrowed, values) = (Borrowed::new(call.inputs().iter().copied()), values(call.attrs()));
        let abi_call = abi::Call {
            inputs: borrowed.as_ptr(),
            sink: std::ptr::from_mut(&mut outputs).cast(),
            give: Some(keep),
            ..empty_call(self.0.context, call.inputs().len(), &values, call.op().outputs.len())
        };
        self.run(&abi_call).map_err(|error| self.context_of_call(error, |i| call.inputs()[i].is_some()))?;
        let all: Option<Vec<Tensor>> = outputs.into_iter().collect();
        let expected = call.op().outputs.len();
        let all = all.ok_or_else(|| self.context(Error::runtime("its body returned a null pointer as an output")))?;
        if all.len() != expected && !call.op().gives_list() {
            let why = format!("its body returned {}, expected {expected}", counted(all.len(), "output"));
            return Err(self.context(Error::runtime(why)));
        }
        Ok(all)
    }

    /// Runs a body over arrays, which writes to allocated outputs.
    pub fn run_arrays(&self, call: &KernelCall<'_>) -> Result<()> {
        let run = self.0.call.ok_or_else(|| Error::runtime("the op has no body"))?;
        run_on_arrays(run, self.0.context, call).map_err(|error| self.context(error))
    }

    /// Whether the plugin infers the shapes and dtypes of the outputs. Otherwise the shape clause does.
    pub fn infers(&self) -> bool {
        self.0.infer.is_some()
    }

    fn run(&self, call: &abi::Call) -> Result<()> {
        let run = self.0.call.ok_or_else(|| Error::runtime("the op has no body"))?;
        // SAFETY: the function of the plugin is called as the ABI requires.
        checked(|sink| unsafe { run(call, sink) })
    }

    fn meta(&self, shape: &[i64], dtype: DType) -> Result<abi::Meta> {
        if shape.len() > abi::MAX_NDIM {
            let why = format!("takes tensors of at most {} dimensions, got {}", abi::MAX_NDIM, shape.len());
            return Err(self.context(Error::value(why)));
        }
        let mut meta = abi::Meta { dtype: abi::number(dtype), ndim: shape.len() as i32, shape: [0; abi::MAX_NDIM] };
        meta.shape[..shape.len()].copy_from_slice(shape);
        Ok(meta)
    }

    /// The shapes and dtypes of the outputs by the inference function of the plugin.
    pub fn infer(&self, call: &Call<'_>) -> Result<Vec<(Shape, DType)>> {
        let infer = self.0.infer.ok_or_else(|| Error::runtime("the op has no inference"))?;
        let of = |t: &Option<&Tensor>| match t {
            Some(t) => self.meta(&t.shape().iter().map(|d| *d as i64).collect::<Vec<_>>(), t.dtype()),
            None => Ok(NOTHING),
        };
        let inputs: Vec<abi::Meta> = call.inputs().iter().map(of).collect::<Result<_>>()?;
        let mut outputs = vec![NOTHING; call.op().outputs.len()];
        let values = values(call.attrs());
        let counts = (inputs.len() as i32, values.len() as i32, outputs.len() as i32);
        // SAFETY: the function of the plugin is called as the ABI requires.
        checked(|sink| unsafe {
            let (given, out) = (inputs.as_ptr(), outputs.as_mut_ptr());
            infer(self.0.context, given, counts.0, values.as_ptr(), counts.1, out, counts.2, sink)
        })
        .map_err(|error| self.context(error))?;
        let read = |(output, meta): (&Output, &abi::Meta)| {
            let wrong = |why: String| {
                self.context(Error::runtime(format!(
                    "its inference returned an invalid result: {why} (output '{}')",
                    output.name
                )))
            };
            let ndim = usize::try_from(meta.ndim).ok().filter(|n| *n <= abi::MAX_NDIM);
            let ndim = ndim.ok_or_else(|| wrong(format!("invalid number of dimensions {}", meta.ndim)))?;
            let shape = sizes(&meta.shape[..ndim]).map_err(|e| wrong(e.message().to_owned()))?;
            Ok((shape, abi::dtype(meta.dtype).map_err(|e| wrong(e.message().to_owned()))?))
        };
        call.op().outputs.iter().zip(&outputs).map(read).collect()
    }

    /// Runs a gradient, or a `jvp`, that is a function of the plugin.
    pub fn gradient(&self, call: &BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> {
        let run = self.0.gradient.ok_or_else(|| Error::runtime("the op has no gradient"))?;
        let (n, outputs) = (call.num_inputs(), call.num_outputs());
        let formula = match &call.op().backward {
            Backward::Formula(formula) => formula,
            _ => return Err(Error::runtime("the gradient of the op is not a function")),
        };
        let saved = |i: usize| formula.saved_inputs.contains(&(i.min(call.op().inputs.len() - 1) as u8));
        let mut inputs = Vec::new();
        for i in 0..n {
            inputs.push(if call.is_given(i) && saved(i) { call.optional_input(i)? } else { None });
        }
        let mut results = Vec::new();
        for k in 0..outputs {
            results.push(if formula.saved_outputs.contains(&(k as u8)) { Some(call.output(k)?) } else { None });
        }
        let cotangent = |k: usize| call.cotangent_if_any(k).map(|_| call.cotangent(k)).transpose();
        let (given, count): (Result<Vec<_>>, usize) = match formula.mode {
            Mode::Reverse => ((0..outputs).map(cotangent).collect(), n),
            Mode::Forward => ((0..n).map(|i| call.tangent(i).map(Some)).collect(), outputs),
        };
        let given = given?;
        let input_metas = (0..n).map(|i| match call.is_given(i) {
            true => self.meta(&call.shape(i), call.dtype(i)),
            false => Ok(NOTHING),
        });
        let input_metas: Vec<abi::Meta> = input_metas.collect::<Result<_>>()?;
        let output_metas = (0..outputs).map(|k| self.meta(&call.output_shape(k)?, call.output_dtype(k)));
        let output_metas: Vec<abi::Meta> = output_metas.collect::<Result<_>>()?;
        let needs: Vec<u8> = (0..n).map(|i| call.needs(i).into()).collect();
        let (names, dims): (Vec<Str>, Vec<i64>) = call.dims().map(|(name, size)| (Str::of(name), size)).unzip();
        let borrowed = [&inputs, &results, &given].map(|list| Borrowed::new(list.iter().map(Option::as_ref)));
        let values = values(call.attrs());
        let mut gradients = vec![std::ptr::null_mut(); count];
        let abi_call = abi::Gradient {
            struct_size: size_of::<abi::Gradient>(),
            host: &raw const super::services::HOST,
            context: self.0.gradient_context,
            n_inputs: n as i32,
            n_attrs: values.len() as i32,
            n_outputs: outputs as i32,
            n_dims: dims.len() as i32,
            input_metas: input_metas.as_ptr(),
            output_metas: output_metas.as_ptr(),
            inputs: borrowed[0].as_ptr(),
            outputs: borrowed[1].as_ptr(),
            cotangents: borrowed[2].as_ptr(),
            needs: needs.as_ptr(),
            attrs: values.as_ptr(),
            dim_names: names.as_ptr(),
            dims: dims.as_ptr(),
            gradients: gradients.as_mut_ptr(),
        };
        // SAFETY: the function of the plugin is called as the ABI requires.
        let done = checked(|sink| unsafe { run(&abi_call, sink) });
        // SAFETY: the plugin transfers the handles that it sets, even if it fails afterwards. All others are null.
        let gradients = gradients.into_iter().map(|handle| unsafe { take_back(handle) }).collect();
        done.map(|()| gradients).map_err(|error| self.context(error))
    }
}
