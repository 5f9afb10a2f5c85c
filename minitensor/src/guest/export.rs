//! Converts definitions to tables of the ABI, and provides the functions in the tables. A table is made once and never freed.

use std::ffi::c_void;

use smallvec::SmallVec;

use super::backward_call::BackwardCall;
use crate::attr::{Attr, AttrKind};
use crate::dtype::DType;
use crate::error::{Error, Result, counted};
use crate::op::*;
use crate::plugin::abi::{
    self, ErrorSink, Host, KernelFn, Str, arity, backward, body, combine, core, kind, role, rule,
};
use crate::plugin::ffi::{catch, checked};
use crate::tensor::Tensor;

/// Registers an op with the host.
///
/// # Safety
/// The host is the caller of the `init` that is in progress.
pub unsafe fn register(host: *const Host, op: &'static abi::Op) -> Result<()> {
    // SAFETY: by the contract of this function.
    checked(|sink| unsafe { ((*host).register_op)(host, op, sink) })
}

/// All definitions of this library.
pub fn definitions() -> impl Iterator<Item = &'static OpDef> {
    inventory::iter::<OpEntry>.into_iter().map(|entry| entry.op)
}

fn keep<T>(items: Vec<T>) -> *const T {
    Vec::leak(items).as_ptr()
}

fn kept<T>(item: T) -> *const c_void {
    std::ptr::from_ref(Box::leak(Box::new(item))).cast()
}

fn text(text: &str) -> Str {
    Str::of(String::leak(text.to_owned()))
}

/// Makes the table of an op.
pub fn table(op: &'static OpDef) -> &'static abi::Op {
    let shape = if let ShapeRule::Core(rule) = &op.shape { rule.text.as_ref() } else { "" };
    let conditions: Vec<&str> = op.predicates.iter().map(|p| p.text.as_ref()).collect();
    let conditions = if conditions.is_empty() { String::new() } else { format!("where {}", conditions.join(", ")) };
    let aliases: Vec<Str> = op.aliases.iter().map(|alias| Str::of(alias)).collect();
    let is_of_columns = matches!(compiled(op), Some(Kernels::Columns(_)));
    let mut table = abi::Op {
        name: Str::of(&op.name),
        doc: Str::of(&op.doc),
        n_aliases: aliases.len(),
        aliases: keep(aliases),
        since: op.since,
        line: op.location.line,
        file: Str::of(&op.location.file),
        n_inputs: op.inputs.len() as i32,
        n_attrs: op.attrs.len() as i32,
        n_outputs: op.outputs.len() as i32,
        n_generics: op.generics.len() as i32,
        inputs: keep(op.inputs.iter().map(|i| input(i, is_of_columns)).collect()),
        attrs: keep(op.attrs.iter().map(attribute).collect()),
        outputs: keep(op.outputs.iter().map(|o| output(o, is_of_columns)).collect()),
        generics: keep(op.generics.iter().map(generic).collect()),
        shape: text(format!("{shape} {conditions}").trim()),
        axis: op.axis.map_or(0, |axis| i32::from(axis.attr) + 1),
        keepdims: op.axis.and_then(|axis| axis.keepdims).map_or(0, |k| i32::from(k) + 1),
        many_axes: op.axis.is_some_and(|axis| axis.many).into(),
        properties: text(&op.properties_text()),
        combine: op.combine.map_or(combine::NONE, |combine| combine.number() as u32 + 1),
        context: std::ptr::from_ref(op).cast(),
        ..EMPTY
    };
    set_body(op, &mut table);
    set_backward(op, &mut table);
    Box::leak(Box::new(table))
}

const EMPTY: abi::Op = abi::Op {
    struct_size: size_of::<abi::Op>(),
    name: Str::EMPTY,
    doc: Str::EMPTY,
    aliases: std::ptr::null(),
    n_aliases: 0,
    since: 0,
    line: 0,
    file: Str::EMPTY,
    inputs: std::ptr::null(),
    attrs: std::ptr::null(),
    outputs: std::ptr::null(),
    generics: std::ptr::null(),
    n_inputs: 0,
    n_attrs: 0,
    n_outputs: 0,
    n_generics: 0,
    shape: Str::EMPTY,
    axis: 0,
    keepdims: 0,
    many_axes: 0,
    body: 0,
    context: std::ptr::null(),
    kernels: std::ptr::null(),
    n_kernels: 0,
    call: None,
    infer: None,
    program: None,
    backward_kind: backward::NONE,
    n_wrt: 0,
    backward: Str::EMPTY,
    vjp: std::ptr::null(),
    wrt: std::ptr::null(),
    gradient: None,
    gradient_context: std::ptr::null(),
    saved_inputs: std::ptr::null(),
    saved_outputs: std::ptr::null(),
    without: std::ptr::null(),
    n_saved_inputs: 0,
    n_saved_outputs: 0,
    n_without: 0,
    combine: combine::NONE,
    cuda: Str::EMPTY,
    properties: Str::EMPTY,
};

fn dtype_rule(of: DTypeRule) -> (u32, u32, u32) {
    match of {
        DTypeRule::Generic(g) => (rule::GENERIC, g.into(), 0),
        DTypeRule::Fixed(dtype) => (rule::FIXED, 0, abi::number(dtype)),
        DTypeRule::Attr(a) => (rule::FROM_ATTR, a.into(), 0),
        DTypeRule::Any => (rule::ANY, 0, 0),
    }
}

/// The compiled kernels of an op of this library.
fn compiled(op: &OpDef) -> Option<&'static Kernels> {
    let entry = inventory::iter::<OpEntry>.into_iter().find(|entry| std::ptr::eq(entry.op, op));
    entry.and_then(|entry| entry.kernels.as_ref())
}

fn core_code(of: Core, is_of_columns: bool) -> u32 {
    match of {
        Core::Scalar => core::SCALAR,
        Core::Slice if is_of_columns => core::COLUMNS,
        Core::Slice => core::SLICE,
        Core::View => core::VIEW,
    }
}

fn input(input: &'static Input, is_of_columns: bool) -> abi::Input {
    let (dtype_rule, dtype_index, dtype) = dtype_rule(input.dtype);
    let arity = match input.arity {
        Arity::One => arity::ONE,
        Arity::Optional => arity::OPTIONAL,
        Arity::Variadic => arity::VARIADIC,
    };
    let (name, core, is_mutated) = (Str::of(&input.name), core_code(input.core, is_of_columns), input.mutated.into());
    abi::Input { name, arity, core, dtype_rule, dtype_index, dtype, is_mutated }
}

fn output(output: &'static Output, is_of_columns: bool) -> abi::Output {
    let (dtype_rule, dtype_index, dtype) = dtype_rule(output.dtype);
    let (role, input) = match output.role {
        Role::Returned => (role::RETURNED, 0),
        Role::Saved => (role::SAVED, 0),
        Role::Mutates(i) => (role::MUTATES, i.into()),
    };
    abi::Output {
        name: Str::of(&output.name),
        role,
        input,
        core: core_code(output.core, is_of_columns),
        dtype_rule,
        dtype_index,
        dtype,
    }
}

fn generic(generic: &'static Generic) -> abi::Generic {
    let dtypes: Vec<u32> = generic.dtypes.iter().map(abi::number).collect();
    abi::Generic { name: Str::of(&generic.name), n_dtypes: dtypes.len(), dtypes: keep(dtypes) }
}

fn attribute(attr: &'static Attribute) -> abi::Attr {
    let (kind, words): (u32, &[&str]) = match attr.kind {
        AttrKind::Bool => (kind::BOOL, &[]),
        AttrKind::Int => (kind::INT, &[]),
        AttrKind::Size => (kind::SIZE, &[]),
        AttrKind::Float => (kind::FLOAT, &[]),
        AttrKind::Str => (kind::STR, &[]),
        AttrKind::Enum(words) => (kind::WORD, words),
        AttrKind::Ints => (kind::INTS, &[]),
        AttrKind::Floats => (kind::FLOATS, &[]),
        AttrKind::DType => (kind::DTYPE, &[]),
        AttrKind::Tuned(_) => (kind::TUNED, &[]),
    };
    let default = match attr.kind {
        AttrKind::Tuned(candidates) => Some(&*Box::leak(Box::new(Attr::Ints(candidates.into())))),
        _ => attr.default.as_ref(),
    };
    abi::Attr {
        name: Str::of(&attr.name),
        kind,
        is_optional: attr.optional.into(),
        has_default: attr.default.is_some().into(),
        reserved: 0,
        value: default.map_or(abi::Value::NONE, abi::Value::of),
        n_words: words.len(),
        words: keep(words.iter().map(|word| Str::of(word)).collect()),
    }
}

/// A kernel of this library, with the number of its arguments of each sort.
struct Compiled<F> {
    run: F,
    attrs: usize,
    inputs: usize,
    outputs: usize,
}

fn kernels<F: Copy>(op: &'static OpDef, find: fn(&[DType]) -> Option<F>, trampoline: KernelFn) -> Vec<abi::Kernel> {
    let optional = op.inputs.iter().filter(|input| input.arity == Arity::Optional).count();
    // Kernels of cells detect an absent input by its null pointer.
    let flags = if matches!(op.body, Body::Element(_)) { optional } else { 0 };
    let (attrs, inputs, outputs) = (op.attrs.len() + flags, op.inputs.len(), op.outputs.len());
    let kernel = |dtypes: Vec<DType>| {
        let context = kept(Compiled { run: find(&dtypes)?, attrs, inputs, outputs });
        let mut numbers = [0; 2];
        dtypes.iter().zip(&mut numbers).for_each(|(dtype, number)| *number = abi::number(*dtype));
        Some(abi::Kernel { dtypes: numbers, run: trampoline, context })
    };
    op.schema().kernels().into_iter().filter_map(kernel).collect()
}

fn set_body(op: &'static OpDef, table: &mut abi::Op) {
    let kernels = match compiled(op) {
        Some(Kernels::Elements(find)) => kernels(op, *find, KernelFn { elements: Some(elements) }),
        Some(Kernels::Cells(find) | Kernels::Columns(find)) => kernels(op, *find, KernelFn { cells: Some(cells) }),
        None => Vec::new(),
    };
    let (code, program) = match &op.body {
        Body::Element(program) => (body::ELEMENTS, program.as_ref()),
        Body::Cell(program) => (body::CELLS, program.as_ref()),
        Body::Tensor(_) | Body::Dynamic(_) => (body::TENSORS, None),
    };
    table.body = code;
    table.n_kernels = kernels.len();
    table.kernels = keep(kernels);
    table.program = program.map(|_| write_program as abi::ProgramFn);
    table.call = (code == body::TENSORS).then_some(call as abi::CallFn);
}

fn set_backward(op: &'static OpDef, table: &mut abi::Op) {
    let numbers = |list: &[u8]| (keep(list.iter().map(|i| u32::from(*i)).collect()), list.len() as u32);
    match &op.backward {
        Backward::None(why) => (table.backward_kind, table.backward) = (backward::NONE, Str::of(why)),
        Backward::NotNeeded => table.backward_kind = backward::NOT_NEEDED,
        Backward::Program(_) => table.backward_kind = backward::PROGRAM,
        Backward::Composite => table.backward_kind = backward::COMPOSITE,
        Backward::Derived(derived) => {
            let vjp: &'static OpDef = &derived.vjp;
            (table.backward_kind, table.vjp) = (backward::VJP, self::table(vjp));
            (table.wrt, table.n_wrt) = numbers(&derived.wrt);
        }
        Backward::Formula(formula) => {
            table.backward_kind = match formula.mode {
                Mode::Reverse => backward::FUNCTION,
                Mode::Forward => backward::JVP_FUNCTION,
            };
            table.gradient = Some(gradient as abi::GradientFn);
            table.gradient_context = std::ptr::from_ref(op).cast();
            (table.saved_inputs, table.n_saved_inputs) = numbers(&formula.saved_inputs);
            (table.saved_outputs, table.n_saved_outputs) = numbers(&formula.saved_outputs);
            (table.without, table.n_without) = numbers(&formula.without);
        }
    }
}

type Attrs = SmallVec<[Attr; 3]>;

/// # Safety
/// `values` is valid for reads of `n` values.
#[inline(always)]
unsafe fn attrs(values: *const abi::Value, n: usize) -> Result<Attrs> {
    let mut attrs = Attrs::new();
    // SAFETY: by the contract of this function.
    for value in unsafe { abi::slice(values, n, abi::most::LIST, "attrs") }? {
        // SAFETY: by the contract of this function.
        attrs.push(unsafe { value.get() }?);
    }
    Ok(attrs)
}

unsafe extern "C" fn elements(
    context: *const c_void,
    values: *const abi::Value,
    n: i64,
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    error: *mut ErrorSink,
) -> i32 {
    // SAFETY: the context is that of the kernel. The host provides one pointer for each input and output of the op.
    unsafe {
        catch(error, || {
            let kernel = &*context.cast::<Compiled<ElementKernel>>();
            let inputs = std::slice::from_raw_parts(inputs.cast(), kernel.inputs);
            let outputs = std::slice::from_raw_parts(outputs.cast(), kernel.outputs);
            (kernel.run)(&attrs(values, kernel.attrs)?, n as usize, inputs, outputs)
        })
    }
}

unsafe extern "C" fn cells(
    context: *const c_void,
    values: *const abi::Value,
    args: *const abi::Cell,
    n: i64,
    error: *mut ErrorSink,
) -> i32 {
    // SAFETY: as for elements.
    unsafe {
        catch(error, || {
            let kernel = &*context.cast::<Compiled<CellKernel>>();
            let arg = |cell: &abi::Cell| {
                Ok(CellArg {
                    data: cell.data.cast(),
                    step: cell.step as isize,
                    is_large: cell.is_large != 0,
                    shape: abi::slice(cell.shape, cell.ndim, abi::most::DIMS, "shape")?,
                    strides: abi::slice(cell.strides, cell.ndim, abi::most::DIMS, "strides")?,
                })
            };
            let args = std::slice::from_raw_parts(args, kernel.inputs + kernel.outputs).iter().map(arg);
            let args: SmallVec<[CellArg<'_>; 6]> = args.collect::<Result<_>>()?;
            (kernel.run)(&attrs(values, kernel.attrs)?, &args, n as usize)
        })
    }
}

/// # Safety
/// The context is that of a table made from a definition.
unsafe fn definition(context: *const c_void) -> &'static OpDef {
    // SAFETY: by the contract of this function. Definitions live for ever.
    unsafe { &*context.cast::<OpDef>() }
}

unsafe extern "C" fn write_program(
    context: *const c_void,
    values: *const abi::Value,
    n: i32,
    sink: *mut c_void,
    give: abi::GiveFn,
    error: *mut ErrorSink,
) -> i32 {
    // SAFETY: the host calls this function as the ABI requires.
    unsafe {
        catch(error, || {
            let op = definition(context);
            let write =
                if let Body::Element(program) | Body::Cell(program) = &op.body { program.as_ref() } else { None };
            let write = write.ok_or_else(|| Error::runtime("the op has no program"))?;
            let json = write.call(op, &attrs(values, n as usize)?)?.to_json();
            give(sink, Str::of(&json));
            Ok(())
        })
    }
}

unsafe extern "C" fn call(call: *const abi::Call, error: *mut ErrorSink) -> i32 {
    // SAFETY: the host calls this function as the ABI requires.
    unsafe {
        catch(error, || {
            let call = &*call;
            let op = definition(call.context);
            let handles = abi::slice(call.inputs, call.n_inputs as usize, abi::most::LIST, "inputs")?.iter();
            let inputs: Vec<Option<Tensor>> =
                handles.map(|handle| Tensor::from_lent(*handle)).collect::<Result<_>>()?;
            let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
            let attrs = attrs(call.attrs, call.n_attrs as usize)?;
            let given = Call { op, inputs: &inputs, attrs: &attrs };
            let outputs = match &op.body {
                Body::Tensor(body) => body(&given)?,
                Body::Dynamic(body) => (body.run)(&given)?,
                _ => return Err(Error::runtime("the op has no body over tensors")),
            };
            let give = call.give.ok_or_else(|| {
                Error::runtime("the host passed a null pointer as the function that receives the outputs")
            })?;
            outputs.into_iter().for_each(|output| give(call.sink, output.into_handle()));
            Ok(())
        })
    }
}

unsafe extern "C" fn gradient(call: *const abi::Gradient, error: *mut ErrorSink) -> i32 {
    // SAFETY: the host calls this function as the ABI requires.
    unsafe {
        catch(error, || {
            let call = &*call;
            let op = definition(call.context);
            let Backward::Formula(formula) = &op.backward else {
                return Err(Error::runtime("the gradient of the op is not a function"));
            };
            let gradients = formula.run.call(&BackwardCall::new(op, call)?)?;
            let (count, what, of) = match formula.mode {
                Mode::Reverse => (call.n_inputs as usize, "gradient", "input"),
                Mode::Forward => (call.n_outputs as usize, "jvp", "output"),
            };
            if gradients.len() != count && (!gradients.is_empty() || formula.mode == Mode::Forward) {
                let (got, n) = (counted(gradients.len(), "tensor"), counted(count, of));
                return Err(Error::runtime(format!("its {what} returned {got}, expected one for each of {n}")));
            }
            for (k, gradient) in gradients.into_iter().enumerate() {
                *call.gradients.add(k) = gradient.map_or(std::ptr::null_mut(), Tensor::into_handle);
            }
            Ok(())
        })
    }
}
