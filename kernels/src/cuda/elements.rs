//! [`ElementKernel`]: the kernel of a program over elements.

use std::fmt::Write;

use super::Source;
use super::lines::{Line, Lines, Type, Value};
use crate::program::Program;

/// The threads of a block.
const THREADS: u32 = 256;

/// An input or output of a kernel over elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The type of its numbers in memory.
    pub memory: Type,
    /// The distance between neighbours along the last dimension.
    pub inner: Inner,
}

/// The distance between the elements of an operand along the last dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inner {
    /// 1.
    Contiguous,
    /// 0: one number for all.
    Single,
    /// Any other.
    Strided,
}

/// How a kernel computes the elements of operands that are broadcast to one shape.
///
/// Its argument is a struct of 64-bit fields: the number of elements along the last dimension, the number of groups of
/// [`vector`](ElementKernel::vector) elements, and the sizes of the dimensions, of which the last counts groups; then for each
/// operand its address, and its strides in elements, the last for a group; then the uniforms, by their bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementKernel {
    /// The type of the numbers that it computes.
    pub compute: Type,
    /// The number of dimensions, at least 1.
    pub rank: usize,
    /// The number of neighbouring elements that a thread computes together. If there are several dimensions, the size of the last is a
    /// multiple of it. Operands that are strided along the last dimension require 1.
    pub vector: usize,
    /// Whether the number of groups fits in 32 bits.
    pub is_small: bool,
    /// The inputs that are given.
    pub inputs: Vec<Option<Operand>>,
    /// The outputs that are wanted.
    pub outputs: Vec<Option<Operand>>,
}

impl ElementKernel {
    /// Its source for a program whose inputs at the positions `masks` are truth values. `None` if there is none.
    pub fn source(&self, program: &Program, masks: &[usize]) -> Option<Source> {
        let lines = Lines::of(program, self.compute, masks)?;
        let mut text = String::new();
        self.write(&lines, program.uniforms().len(), &mut text).ok()?;
        Some(Source { text, threads: THREADS, is_split: false })
    }

    /// The operands that exist, with the names of their addresses.
    fn operands(&self) -> impl Iterator<Item = (String, Operand, bool)> {
        let named = |letter: char, is_output: bool, all: &[Option<Operand>]| {
            let all = all.iter().enumerate().filter_map(|(k, operand)| Some((k, (*operand)?)));
            all.map(|(k, operand)| (format!("{letter}{k}"), operand, is_output)).collect::<Vec<_>>()
        };
        named('x', false, &self.inputs).into_iter().chain(named('y', true, &self.outputs))
    }

    fn write(&self, lines: &Lines, uniforms: usize, text: &mut String) -> std::fmt::Result {
        let (rank, vector) = (self.rank, self.vector);
        writeln!(text, "typedef struct {{\n  i64 length, groups, sizes[{rank}];")?;
        for (name, operand, is_output) in self.operands() {
            let constant = if is_output { "" } else { "const " };
            writeln!(text, "  {constant}{} *{name};\n  i64 {name}_strides[{rank}];", operand.memory.name())?;
        }
        (0..uniforms).try_for_each(|k| writeln!(text, "  u64 u{k};"))?;
        writeln!(text, "}} Arguments;\n")?;
        self.write_element(lines, text)?;
        writeln!(text, "KERNEL({THREADS}) {{")?;
        let index = if self.is_small { "u32" } else { "u64" };
        writeln!(
            text,
            "  for (i64 group = BLOCK * {THREADS} + THREAD; group < a.groups; group += BLOCKS * {THREADS}) {{"
        )?;
        self.operands().try_for_each(|(name, ..)| writeln!(text, "    i64 {name}_at = 0;"))?;
        writeln!(text, "    {index} left = ({index})group;")?;
        for d in (0..rank).rev() {
            let (place, step) = match d {
                0 => ("left".to_owned(), String::new()),
                _ => (format!("(left % ({index})a.sizes[{d}])"), format!("    left /= ({index})a.sizes[{d}];\n")),
            };
            for (name, ..) in self.operands() {
                writeln!(text, "    {name}_at += (i64){place} * a.{name}_strides[{d}];")?;
            }
            text.push_str(&step);
        }
        let call = |argument: &dyn Fn(&str, Operand, bool) -> String| {
            let all: Vec<String> = self.operands().map(|(name, o, is_output)| argument(&name, o, is_output)).collect();
            format!("element(&a, {});", all.join(", "))
        };
        if vector == 1 {
            let one = |name: &str, _: Operand, is_output: bool| match is_output {
                true => format!("&a.{name}[{name}_at]"),
                false => format!("a.{name}[{name}_at]"),
            };
            writeln!(text, "    {}\n  }}\n}}", call(&one))?;
            return Ok(());
        }
        if rank == 1 {
            // The last group may have fewer elements.
            let one = |name: &str, operand: Operand, is_output: bool| match (is_output, operand.inner) {
                (true, _) => format!("&a.{name}[{name}_at + j]"),
                (false, Inner::Single) => format!("a.{name}[{name}_at]"),
                (false, _) => format!("a.{name}[{name}_at + j]"),
            };
            writeln!(text, "    if ((group + 1) * {vector} > a.length) {{")?;
            writeln!(text, "      for (i64 j = 0; group * {vector} + j < a.length; j++) {}", call(&one))?;
            writeln!(text, "      continue;\n    }}")?;
        }
        for (name, operand, is_output) in self.operands() {
            let memory = operand.memory.name();
            match (is_output, operand.inner) {
                (true, _) => writeln!(text, "    {memory}x{vector} {name};")?,
                (false, Inner::Single) => writeln!(text, "    const {memory} {name} = a.{name}[{name}_at];")?,
                (false, _) => writeln!(
                    text,
                    "    const {memory}x{vector} {name} = *(const {memory}x{vector} *)(a.{name} + {name}_at);"
                )?,
            }
        }
        let one = |name: &str, operand: Operand, is_output: bool| match (is_output, operand.inner) {
            (true, _) => format!("&{name}.at[j]"),
            (false, Inner::Single) => name.to_owned(),
            (false, _) => format!("{name}.at[j]"),
        };
        writeln!(text, "    UNROLL for (int j = 0; j < {vector}; j++) {}", call(&one))?;
        for (name, operand, _) in self.operands().filter(|(_, _, is_output)| *is_output) {
            writeln!(text, "    *({0}x{vector} *)(a.{name} + {name}_at) = {name};", operand.memory.name())?;
        }
        writeln!(text, "  }}\n}}")
    }

    /// The function of one element.
    fn write_element(&self, lines: &Lines, text: &mut String) -> std::fmt::Result {
        let parameter = |(name, operand, is_output): (String, Operand, bool)| {
            format!("{} {}{name}", operand.memory.name(), if is_output { "*" } else { "" })
        };
        let parameters: Vec<String> = self.operands().map(parameter).collect();
        writeln!(text, "DEVICE void element(const Arguments *a, {}) {{", parameters.join(", "))?;
        for (at, line) in lines.all.iter().enumerate() {
            let value = match &line.value {
                Value::Input(k) => match self.inputs[*k] {
                    Some(operand) => loaded(operand.memory, line, &format!("x{k}")),
                    None => "0".into(),
                },
                Value::Uniform(k) => uniform(line, &format!("a->u{k}")),
                Value::Expression(text) => text.clone(),
                Value::Reduced(_) | Value::Position | Value::Count => return Err(std::fmt::Error),
            };
            writeln!(text, "  const {} v{at} = {value};", line.c_type)?;
        }
        for ((k, output), id) in self.outputs.iter().enumerate().zip(&lines.outputs) {
            if let Some(output) = output {
                writeln!(text, "  *y{k} = {};", stored(output.memory, &lines.all[*id], *id))?;
            }
        }
        writeln!(text, "}}\n")
    }
}

/// A number of memory as the value of a line.
pub(super) fn loaded(memory: Type, line: &Line, name: &str) -> String {
    format!("{}_to_{}({name})", memory.name(), line.c_type)
}

/// The value of a line as a number of memory.
pub(super) fn stored(memory: Type, line: &Line, id: usize) -> String {
    let (float, value) = float_of(line, id);
    format!("{float}_to_{}({value})", memory.name())
}

/// The type of a line, and its value. Bits become the float that they are.
pub(super) fn float_of(line: &Line, id: usize) -> (&'static str, String) {
    match (line.is_bits, line.c_type) {
        (true, "u32") => ("f32", format!("of_f32_bits(v{id})")),
        (true, _) => ("f64", format!("of_f64_bits(v{id})")),
        (false, c_type) => (c_type, format!("v{id}")),
    }
}

/// A uniform, by its bits, as the value of a line.
pub(super) fn uniform(line: &Line, bits: &str) -> String {
    match line.c_type {
        "f32" => format!("of_f32_bits((u32){bits})"),
        "f64" => format!("of_f64_bits({bits})"),
        c_type => format!("({c_type}){bits}"),
    }
}
