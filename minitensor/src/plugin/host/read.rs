//! Reads ops from the tables of a plugin, without trust: detects and reports every fault that can be detected safely.

use std::borrow::Cow;
use std::sync::Arc;

use super::calls::LoadedOp;
use super::check;
use crate::attr::Attr;
use crate::clause;
use crate::error::{Error, Result, counted};
use crate::op::variants::Choice;
use crate::op::*;
use crate::plugin::abi::{self, backward, body, most, slice};
use crate::tensor::Shape;

/// The ops that a plugin registers. A table is read once, even if it is also the gradient of another op.
#[derive(Default)]
pub struct Ops(Vec<(*const abi::Op, OpRef)>);

/// The limit of nested gradients.
const DEEPEST: usize = 4;

impl Ops {
    /// Reads and adds an op.
    ///
    /// # Safety
    /// It is null, or points to a table that is valid as the ABI requires. The table and everything it points to live for ever.
    pub unsafe fn add(&mut self, op: *const abi::Op) -> Result<()> {
        if self.0.iter().any(|(known, _)| *known == op) {
            return Ok(());
        }
        // SAFETY: by the contract of this function.
        let read = unsafe { read(op, DEEPEST) }?;
        if let Some((_, other)) = self.0.iter().find(|(_, other)| other.name == read.name) {
            return Err(Error::value(format!("op '{}' is registered twice", other.name)));
        }
        self.0.push((op, read));
        Ok(())
    }

    /// All ops that were added.
    pub fn into_list(self) -> Vec<OpRef> {
        self.0.into_iter().map(|(_, op)| op).collect()
    }
}

/// A table, if its size is one that it may have.
///
/// # Safety
/// The pointer is null, or to a table that is valid as the ABI requires and lives for ever. Its first field is its size.
pub unsafe fn table<T>(pointer: *const T, what: &str) -> Result<&'static T> {
    // SAFETY: by the contract of this function.
    unsafe {
        size(pointer, size_of::<T>(), what)?;
        // A pointer that is not null is valid.
        Ok(&*pointer)
    }
}

/// The table of an op. The fields that a minor version of the ABI has added are zero in the table of an older plugin.
///
/// # Safety
/// As for [`table`].
unsafe fn table_of_op(pointer: *const abi::Op) -> Result<&'static abi::Op> {
    // SAFETY: by the contract of this function, and zero is a value of every field.
    unsafe {
        let size = size(pointer, std::mem::offset_of!(abi::Op, properties), "an op")?;
        if size >= size_of::<abi::Op>() {
            return Ok(&*pointer);
        }
        let mut extended = Box::new(std::mem::MaybeUninit::<abi::Op>::zeroed());
        std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), extended.as_mut_ptr().cast::<u8>(), size);
        Ok(Box::leak(extended).assume_init_ref())
    }
}

/// The size of a table, which is at least `least` bytes.
///
/// # Safety
/// As for [`table`].
unsafe fn size<T>(table: *const T, least: usize, what: &str) -> Result<usize> {
    // SAFETY: by the contract of this function.
    let size = unsafe { table.cast::<usize>().as_ref() };
    let size = *size.ok_or_else(|| Error::value(format!("{what} is a null pointer")))?;
    if size < least || size > 1 << 16 {
        return Err(Error::value(format!(
            "the table of {what} has {}, expected at least {least}",
            counted(size, "byte")
        )));
    }
    Ok(size)
}

/// # Safety
/// As for [`Ops::add`].
unsafe fn read(op: *const abi::Op, depth: usize) -> Result<OpRef> {
    // SAFETY: by the contract of this function.
    unsafe {
        let table = table_of_op(op)?;
        let name = table.name.get(most::NAME).map_err(|e| e.context("the name of an op"))?;
        if name.is_empty() {
            return Err(Error::value("an op has no name"));
        }
        Reader { table, name }.op(depth).map_err(|e| e.context(format!("op '{name}'")))
    }
}

/// A table, and the name of its op.
pub struct Reader {
    pub table: &'static abi::Op,
    pub name: &'static str,
}

impl Reader {
    /// # Safety
    /// As for [`Ops::add`].
    unsafe fn op(&self, depth: usize) -> Result<OpRef> {
        let t = self.table;
        let counts =
            [("inputs", t.n_inputs), ("attrs", t.n_attrs), ("outputs", t.n_outputs), ("generics", t.n_generics)];
        if let Some((what, n)) = counts.iter().find(|(_, n)| !(0..=most::PARTS as i32).contains(n)) {
            return Err(Error::value(format!("invalid number of {what}: {n}")));
        }
        // SAFETY: by the contract of this function.
        unsafe {
            let inputs = self.list(t.inputs, t.n_inputs, "inputs", |i: &abi::Input| self.input(i))?;
            let attrs = self.list(t.attrs, t.n_attrs, "attrs", |a: &abi::Attr| self.attr(a))?;
            let outputs = self.list(t.outputs, t.n_outputs, "outputs", |o: &abi::Output| self.output(o))?;
            let generics = self.list(t.generics, t.n_generics, "generics", |g: &abi::Generic| self.generic(g))?;
            let aliases = slice(t.aliases, t.n_aliases, most::PARTS, "aliases")?.iter();
            let aliases = aliases.map(|a| a.get(most::NAME).map_err(|e| e.context("the name of an alias")));
            let mut op = OpDef {
                name: self.name.into(),
                aliases: aliases.map(|a| a.map(Cow::Borrowed)).collect::<Result<_>>()?,
                doc: t.doc.get(most::DOC).map_err(|e| e.context("its doc"))?.into(),
                inputs,
                attrs,
                outputs,
                generics,
                shape: ShapeRule::Inferred,
                predicates: Cow::Borrowed(&[]),
                axis: self.axis()?,
                combine: self.combine()?,
                properties: List::Borrowed(&[]),
                body: Body::Tensor(|_| Err(Error::runtime("the op has no body"))),
                backward: Backward::NotNeeded,
                kernels: KernelTable::new(),
                since: t.since,
                location: Location {
                    file: t.file.line(most::FILE).map_err(|e| e.context("its file"))?.into(),
                    line: t.line,
                },
            };
            check::defaults(&mut op)?;
            self.set_shape(&mut op)?;
            op.check_defaults()?;
            let properties = t.properties.get(most::CLAUSE).map_err(|e| e.context("its properties"))?;
            op.properties = clause::properties(&op, properties)?;
            self.columns(&op)?;
            check::parts(&op, self.table.body)?;
            self.set_body(&mut op)?;
            self.set_backward(&mut op, depth)?;
            Ok(OpRef::Shared(Arc::new(op)))
        }
    }

    /// # Safety
    /// As for [`Ops::add`].
    unsafe fn set_shape(&self, op: &mut OpDef) -> Result<()> {
        // SAFETY: by the contract of this function.
        let text = unsafe { self.table.shape.get(most::CLAUSE) }.map_err(|e| e.context("its shape"))?;
        op.shape = if self.table.body == body::ELEMENTS { ShapeRule::Broadcast } else { ShapeRule::Inferred };
        if !text.is_empty() {
            clause::shape(op, text)?.apply_to(op);
        }
        match (&op.shape, self.table.body) {
            (ShapeRule::Core(_), body::CELLS | body::ARRAYS | body::TENSORS) => Ok(()),
            (ShapeRule::Broadcast, body::ELEMENTS) | (ShapeRule::Inferred, body::ARRAYS | body::TENSORS) => Ok(()),
            (_, body::CELLS) => Err(Error::value("a body of cells needs a shape, such as '(x: [.., n]) -> [.., n]'")),
            (ShapeRule::Core(_), _) => {
                Err(Error::value("a body of elements must not have a shape, because its inputs broadcast"))
            }
            (_, other) => Err(Error::value(format!("unknown kind of body {other}"))),
        }
    }

    /// # Safety
    /// As for [`Ops::add`].
    unsafe fn set_body(&self, op: &mut OpDef) -> Result<()> {
        let t = self.table;
        // SAFETY: by the contract of this function.
        let (kernels, loaded) = unsafe { (slice(t.kernels, t.n_kernels, most::KERNELS, "kernels")?, LoadedOp::new(t)) };
        let program = t.program.map(|_| ProgramFn::Loaded(loaded));
        let is_null = |kernel: &abi::Kernel| {
            // SAFETY: both variants of the union are nullable function pointers, so either may be read.
            unsafe { if t.body == body::CELLS { kernel.run.cells.is_none() } else { kernel.run.elements.is_none() } }
        };
        if [body::ELEMENTS, body::CELLS].contains(&t.body) && !kernels.is_empty() {
            if kernels.iter().any(is_null) {
                return Err(Error::value("a kernel is a null pointer"));
            }
            check::kernels(op, loaded)?;
        }
        if t.body == body::CELLS && t.program.is_some() {
            check::program_of_rows(op)?;
        }
        op.body = match t.body {
            body::ELEMENTS if kernels.is_empty() && t.program.is_some() && !Choice::exists(op) && !has_integers(op) => {
                let made = check::program_op(op, loaded.program(op, &check::placeholders(op))?)?;
                op.kernels = made.kernels.clone();
                made.body.clone()
            }
            body::ELEMENTS | body::CELLS if kernels.is_empty() && t.program.is_some() => {
                op.body = if t.body == body::ELEMENTS { Body::Element(program) } else { Body::Cell(program) };
                if t.body == body::ELEMENTS && op.inputs.iter().any(|input| input.mutated) {
                    return Err(Error::value("a program does not change its inputs, so it needs kernels"));
                }
                op.kernels = op.loop_of_program().map_or_else(KernelTable::new, KernelTable::cpu);
                return example_of_program(op, loaded);
            }
            body::ELEMENTS | body::CELLS if kernels.is_empty() => return Err(Error::value("it has no kernels")),
            body::ELEMENTS | body::CELLS => {
                op.kernels = KernelTable::cpu(Kernels::Loaded(loaded));
                if t.body == body::ELEMENTS { Body::Element(program) } else { Body::Cell(program) }
            }
            _ if t.call.is_none() => return Err(Error::value("its 'call' is a null pointer")),
            body::ARRAYS if t.infer.is_none() && !matches!(op.shape, ShapeRule::Core(_)) => {
                return Err(Error::value("a body over arrays needs 'infer' or a shape"));
            }
            body::ARRAYS => {
                let kernel: ArrayKernel = Arc::new(move |call| loaded.run_arrays(call));
                op.kernels = KernelTable::cpu(Kernels::Arrays(vec![(vec![], kernel)]));
                Body::Arrays(loaded)
            }
            _ => {
                let run = Arc::new(move |call: &Call<'_>| loaded.tensors(call));
                Body::Dynamic(Dynamic { run, is_interpreted: false })
            }
        };
        Ok(())
    }

    /// # Safety
    /// As for [`Ops::add`].
    unsafe fn set_backward(&self, op: &mut OpDef, depth: usize) -> Result<()> {
        let t = self.table;
        // SAFETY: by the contract of this function.
        let (text, loaded) =
            unsafe { (t.backward.get(most::CLAUSE).map_err(|e| e.context("its backward"))?, LoadedOp::new(t)) };
        // SAFETY: by the contract of this function.
        let list = |list: *const u32, n: u32, count: i32, what: &str| unsafe {
            let items = slice(list, n as usize, most::PARTS, what)?
                .iter()
                .map(|i| u8::try_from(*i).ok().filter(|i| i32::from(*i) < count));
            let items: Option<Vec<u8>> = items.collect();
            items
                .map(Cow::Owned)
                .ok_or_else(|| Error::value(format!("'{what}' contains a position that is out of range")))
        };
        op.backward = match t.backward_kind {
            backward::NONE if text.is_empty() => {
                Backward::None(format!("'{}' is defined without a gradient", self.name).into())
            }
            backward::NONE => Backward::None(text.into()),
            backward::NOT_NEEDED => Backward::NotNeeded,
            backward::FORMULA => clause::formula(op, Mode::Reverse, text)?,
            backward::JVP_FORMULA => clause::formula(op, Mode::Forward, text)?,
            backward::PROGRAM if t.program.is_some() => Backward::Program(Gradients::new()),
            backward::PROGRAM => {
                return Err(Error::value("its gradient is derived from its program, but it has no program"));
            }
            backward::VJP if std::ptr::eq(t.vjp, t) => {
                return Err(Error::value("its gradient must not be the op itself"));
            }
            backward::VJP if depth == 0 => {
                return Err(Error::value("the gradients of its gradient are nested too deeply"));
            }
            backward::VJP => {
                // SAFETY: by the contract of this function.
                let vjp = unsafe { read(t.vjp, depth - 1) }.map_err(|e| e.context("its gradient"))?;
                let wrt: List<u8> = list(t.wrt, t.n_wrt, t.n_inputs, "wrt")?;
                check::vjp(op, &vjp, wrt.len())?;
                Backward::Derived(Derived { vjp, wrt, gradients: Gradients::new() })
            }
            backward::FUNCTION | backward::JVP_FUNCTION if t.gradient.is_none() => {
                return Err(Error::value("its 'gradient' is a null pointer"));
            }
            kind @ (backward::FUNCTION | backward::JVP_FUNCTION) => Backward::Formula(Formula {
                mode: if kind == backward::FUNCTION { Mode::Reverse } else { Mode::Forward },
                run: BackwardBody::Shared(Arc::new(move |call| loaded.gradient(call))),
                saved_inputs: list(t.saved_inputs, t.n_saved_inputs, t.n_inputs, "saved_inputs")?,
                saved_outputs: list(t.saved_outputs, t.n_saved_outputs, t.n_outputs, "saved_outputs")?,
                without: list(t.without, t.n_without, t.n_inputs, "without")?,
            }),
            backward::COMPOSITE if t.body == body::TENSORS => Backward::Composite,
            backward::COMPOSITE => {
                return Err(Error::value("a gradient by the ops of the body requires a body over tensors"));
            }
            other => return Err(Error::value(format!("unknown kind of gradient {other}"))),
        };
        Ok(())
    }
}

/// Converts sizes of dimensions. Fails if one is negative.
pub fn sizes(given: &[i64]) -> Result<Shape> {
    match given.iter().find(|d| **d < 0) {
        Some(size) => Err(Error::value(format!("the size of a dimension must not be negative, got {size}"))),
        None => Ok(given.iter().map(|d| *d as usize).collect()),
    }
}

/// Whether a program converts integers to its numbers, or numbers to integers.
fn has_integers(op: &OpDef) -> bool {
    let is_integer = |dtype| matches!(dtype, DTypeRule::Fixed(dtype) if dtype.is_integer());
    op.inputs.iter().any(|i| is_integer(i.dtype)) || op.outputs.iter().any(|o| is_integer(o.dtype))
}

/// The program of a call must fit the op. A body may refuse the attributes of the example.
fn example_of_program(op: &OpDef, loaded: LoadedOp) -> Result<()> {
    let example = Choice::example(op);
    let optional = op.inputs.iter().zip(&example.given).filter(|(input, _)| input.arity == Arity::Optional);
    let attrs: Vec<Attr> = example.attrs.iter().cloned().chain(optional.map(|(_, given)| Attr::Bool(*given))).collect();
    let Ok(json) = loaded.json(&attrs) else { return Ok(()) };
    let program = loaded.read_program(op, &json)?;
    example.check(op, &program, &op.program_arguments()).map_err(|e| e.context("its program"))
}
