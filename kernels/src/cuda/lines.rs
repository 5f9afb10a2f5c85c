//! [`Lines`]: a program as C expressions.

use std::cell::RefCell;
use std::fmt::Write;

use smallvec::SmallVec;

use crate::code::{Condition, Form, Format, Node, Number, Op, Rounding, Width, push, record};
use crate::number::scalar::{Const, Float};
use crate::program::{Instruction, Primitive, Program, Scalar, ScalarValue, Storage, ValueType};
use crate::row::Reduction;

/// The type of a number in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Type {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl Type {
    /// Its name in [`PRELUDE`](super::PRELUDE).
    pub fn name(self) -> &'static str {
        match self {
            Type::Bool => "truth",
            Type::I8 => "i8",
            Type::I16 => "i16",
            Type::I32 => "i32",
            Type::I64 => "i64",
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::U32 => "u32",
            Type::U64 => "u64",
            Type::F16 => "f16",
            Type::BF16 => "bf16",
            Type::F32 => "f32",
            Type::F64 => "f64",
        }
    }

    /// Its size in bytes.
    pub fn size(self) -> usize {
        match self {
            Type::Bool | Type::I8 | Type::U8 => 1,
            Type::I16 | Type::U16 | Type::F16 | Type::BF16 => 2,
            Type::I32 | Type::U32 | Type::F32 => 4,
            Type::I64 | Type::U64 | Type::F64 => 8,
        }
    }
}

/// What a line computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An element of the input at this position: a number of the program, or the truth value of a mask.
    Input(usize),
    /// The uniform at this position.
    Uniform(usize),
    /// The result of the reduction at this position.
    Reduced(usize),
    /// The position of the element in its row.
    Position,
    /// The number of elements of the row.
    Count,
    /// An expression of earlier lines, whose names are `v` and their numbers.
    Expression(String),
}

/// A value of a program.
#[derive(Clone, Debug)]
pub struct Line {
    pub value: Value,
    /// The type of its variable.
    pub c_type: &'static str,
    /// Whether its integer is the bits of a float.
    pub is_bits: bool,
    /// The lines that it uses.
    pub operands: SmallVec<[usize; 3]>,
}

/// A program as lines of C, each of which uses earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    pub all: Vec<Line>,
    /// The lines that are the outputs.
    pub outputs: Vec<usize>,
    /// The reductions, with the lines that they reduce.
    pub reductions: Vec<(Reduction, usize)>,
}

impl Lines {
    /// The lines of a program that computes in a type. The inputs at the positions `masks` are truth values. `None` if the type lacks a
    /// function of the program, or if the program has a function of whole rows or a running reduction.
    pub fn of(program: &Program, compute: Type, masks: &[usize]) -> Option<Lines> {
        let is_unknown = |instruction: &Instruction| match instruction {
            Instruction::Row(..) => true,
            Instruction::Reduce(reduction, _) => reduction.is_running(),
            _ => false,
        };
        if program.instructions().iter().any(is_unknown) {
            return None;
        }
        match compute {
            Type::F32 => of_floats::<f32>(program, masks),
            Type::F64 => of_floats::<f64>(program, masks),
            Type::F16 | Type::BF16 => None,
            _ => of_integers(program, compute, masks),
        }
    }

    fn add(&mut self, value: Value, c_type: &'static str, operands: SmallVec<[usize; 3]>) {
        self.all.push(Line { value, c_type, is_bits: false, operands });
    }
}

/// The lines of a program of floats, from its machine form.
fn of_floats<N: Format + Float>(program: &Program, masks: &[usize]) -> Option<Lines>
where
    Number<N>: Scalar<Mask = Condition>,
{
    let leaf = |op| push(op, N::WIDTH, &[]);
    let (count, uniforms) = (program.outputs().len(), program.uniforms().len() as u32);
    // Values that are no uniforms follow them.
    let (others, reductions) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let form = record(|| {
        let inputs: Vec<_> = (0..program.inputs().len())
            .map(|k| Number::<N>::of_node(leaf(Op::Input(k as u32, Storage::Own))))
            .collect();
        let given: Vec<_> = (0..uniforms).map(|k| Number::<N>::of_node(leaf(Op::Uniform(k)))).collect();
        let other = |value: Value| {
            let at = uniforms + others.borrow().len() as u32;
            others.borrow_mut().push(value);
            Some(ScalarValue::Number(Number::<N>::of_node(leaf(Op::Uniform(at)))))
        };
        let values = program.at_but(&inputs, &given, |at, before| match &program.instructions()[at] {
            // An input of truth values is read by this function only.
            Instruction::Apply(Primitive::Truthy, x) => {
                let Instruction::Input(k) = program.instructions()[x[0].at()] else { return None };
                let is_mask = masks.contains(&(k as usize));
                is_mask.then(|| ScalarValue::Mask(Condition(leaf(Op::Test(k)))))
            }
            Instruction::Reduce(reduction, x) => {
                let mut reductions = reductions.borrow_mut();
                reductions.push((*reduction, before[x.at()].number()?.0));
                other(Value::Reduced(reductions.len() - 1))
            }
            Instruction::Position => other(Value::Position),
            Instruction::Count => other(Value::Count),
            _ => None,
        })?;
        let node = |value: &ScalarValue<Number<N>>| match value {
            ScalarValue::Number(x) => x.0,
            ScalarValue::Mask(m) => m.0,
        };
        Some(values.iter().map(node).chain(reductions.borrow().iter().map(|(_, id)| *id)).collect())
    })?;
    let (others, reductions) = (others.into_inner(), reductions.into_inner());
    let mut lines = Lines::default();
    for node in &form.nodes {
        let operands = node.operands().iter().map(|id| *id as usize).collect();
        let value = match node.op {
            Op::Input(k, _) | Op::Test(k) => Value::Input(k as usize),
            Op::Uniform(k) if k < uniforms => Value::Uniform(k as usize),
            Op::Uniform(k) => others[(k - uniforms) as usize].clone(),
            _ => Value::Expression(expression(&form, node)),
        };
        lines.all.push(Line { value, c_type: c_type(node), is_bits: kind(node.op) == Kind::Bits, operands });
    }
    let outputs: Vec<usize> = form.outputs.iter().map(|id| *id as usize).collect();
    lines.outputs = outputs[..count].to_vec();
    lines.reductions = reductions.iter().zip(&outputs[count..]).map(|((r, _), id)| (*r, *id)).collect();
    Some(lines)
}

/// The kind of value that a node computes or takes.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Float,
    Bits,
    Truth,
}

/// What a node computes. A form does not distinguish a float from its bits; a constant and a selection are bits.
fn kind(op: Op) -> Kind {
    use Op::*;
    match op {
        _ if op.is_truth() => Kind::Truth,
        Constant(_) | Select | And | Or | Xor | AndNot | AddInt | SubtractInt | MultiplyInt => Kind::Bits,
        ShiftLeft(_) | ShiftRight(_) | ShiftLeftBy | ShiftRightBy => Kind::Bits,
        _ => Kind::Float,
    }
}

fn c_type(node: &Node) -> &'static str {
    match (kind(node.op), node.width) {
        (Kind::Truth, _) => "int",
        (Kind::Float, Width::Single) => "f32",
        (Kind::Float, Width::Double) => "f64",
        (Kind::Bits, Width::Single) => "u32",
        (Kind::Bits, Width::Double) => "u64",
    }
}

/// The expression of a node.
fn expression(form: &Form, node: &Node) -> String {
    let is_single = node.width == Width::Single;
    let name = |k: usize, wanted: Kind| {
        let id = node.operands()[k] as usize;
        let other = &form.nodes[id];
        let float = if other.width == Width::Single { "f32" } else { "f64" };
        match (kind(other.op), wanted) {
            (Kind::Bits, Kind::Float) => format!("of_{float}_bits(v{id})"),
            (Kind::Float, Kind::Bits) => format!("{float}_bits(v{id})"),
            _ => format!("v{id}"),
        }
    };
    let (x, y, z) = (|| name(0, Kind::Float), || name(1, Kind::Float), || name(2, Kind::Float));
    let (a, b) = (|| name(0, Kind::Bits), || name(1, Kind::Bits));
    let suffix = if is_single { "f" } else { "" };
    match node.op {
        Op::Constant(bits) => format!("{bits:#x}{}", if is_single { "u" } else { "ull" }),
        Op::Truth(value) => u8::from(value).to_string(),
        Op::Add => format!("{} + {}", x(), y()),
        Op::Subtract => format!("{} - {}", x(), y()),
        Op::Multiply => format!("{} * {}", x(), y()),
        Op::Divide => format!("{} / {}", x(), y()),
        Op::Fmod => format!("fmod{suffix}({}, {})", x(), y()),
        Op::Sqrt => format!("sqrt{suffix}({})", x()),
        Op::MulAdd { minus, less } => {
            let (minus, less) = (if minus { "-" } else { "" }, if less { "-" } else { "" });
            format!("fma{suffix}({minus}{}, {}, {less}{})", x(), y(), z())
        }
        Op::Min => format!("{} < {} ? {} : {}", x(), y(), x(), y()),
        Op::Max => format!("{} > {} ? {} : {}", x(), y(), x(), y()),
        Op::Round(rounding) => {
            let function = match rounding {
                Rounding::Nearest => "rint",
                Rounding::Down => "floor",
                Rounding::Up => "ceil",
                Rounding::Truncate => "trunc",
            };
            format!("{function}{suffix}({})", x())
        }
        Op::And => format!("{} & {}", a(), b()),
        Op::Or => format!("{} | {}", a(), b()),
        Op::Xor => format!("{} ^ {}", a(), b()),
        Op::AndNot => format!("~{} & {}", a(), b()),
        Op::AddInt => format!("{} + {}", a(), b()),
        Op::SubtractInt => format!("{} - {}", a(), b()),
        Op::MultiplyInt => format!("{} * {}", a(), b()),
        Op::ShiftLeft(count) => format!("{} << {count}", a()),
        Op::ShiftRight(count) => format!("{} >> {count}", a()),
        Op::ShiftLeftBy => format!("{} << {}", a(), b()),
        Op::ShiftRightBy => format!("{} >> {}", a(), b()),
        Op::Widen => format!("(f64){}", x()),
        Op::Narrow => format!("(f32){}", x()),
        Op::OfSigned => format!("(f{}){}{}", 8 * node.width as u32, if is_single { "(i32)" } else { "(i64)" }, a()),
        Op::NearestFloat16 => format!("widened_f16(narrowed_f16({}))", x()),
        Op::Less => format!("{} < {}", x(), y()),
        Op::LessEqual => format!("{} <= {}", x(), y()),
        Op::Equal => format!("{} == {}", x(), y()),
        Op::LessInt => format!("{} < {}", a(), b()),
        Op::GreaterSigned => {
            let signed = if is_single { "i32" } else { "i64" };
            format!("({signed}){} > ({signed}){}", a(), b())
        }
        Op::EqualInt => format!("{} == {}", a(), b()),
        Op::IsNegative => format!("({}){} < 0", if is_single { "i32" } else { "i64" }, a()),
        Op::Both => format!("{} & {}", x(), y()),
        Op::Either => format!("{} | {}", x(), y()),
        Op::Not => format!("!{}", x()),
        Op::WidenTruth | Op::NarrowTruth => x(),
        Op::Select => format!("{} ? {} : {}", x(), b(), name(2, Kind::Bits)),
        // A program over elements has no reductions.
        Op::Input(..) | Op::Test(_) | Op::Uniform(_) | Op::Reduce(_) | Op::Repeat => String::new(),
        // Only machine code for CPUs has them.
        Op::Unequal
        | Op::MultiplyIf
        | Op::MultiplyWrapping
        | Op::ShiftRightSignedBy
        | Op::WidenBits
        | Op::NarrowBits => String::new(),
    }
}

/// The lines of a program of integers or truth values, one for each instruction.
fn of_integers(program: &Program, compute: Type, masks: &[usize]) -> Option<Lines> {
    let mut lines = Lines::default();
    let number = if compute == Type::Bool { "int" } else { compute.name() };
    for instruction in program.instructions() {
        let operands = instruction.operands().iter().map(|(id, _)| id.at()).collect::<SmallVec<[usize; 3]>>();
        let [a, b, c] = [0, 1, 2].map(|k| operands.get(k).map_or(String::new(), |id| format!("v{id}")));
        let c_type = if instruction.kind() == ValueType::Mask { "int" } else { number };
        let expression = match instruction {
            Instruction::Input(k) => {
                let is_mask = masks.contains(&(*k as usize));
                lines.add(Value::Input(*k as usize), if is_mask { "int" } else { number }, operands);
                continue;
            }
            Instruction::Uniform(k) => {
                lines.add(Value::Uniform(*k as usize), number, operands);
                continue;
            }
            Instruction::Reduce(reduction, x) => {
                lines.reductions.push((*reduction, x.at()));
                lines.add(Value::Reduced(lines.reductions.len() - 1), number, SmallVec::new());
                continue;
            }
            Instruction::Constant(value) => constant(*value, compute),
            Instruction::Bits(_) => return None,
            Instruction::Truth(value) => u8::from(*value).to_string(),
            // Numbers that are truth values, and masks.
            Instruction::Apply(Primitive::Truthy, _) => format!("{a} != 0"),
            Instruction::Apply(Primitive::Equal, _) if compute == Type::Bool => format!("{a} == {b}"),
            Instruction::Apply(..) | Instruction::Powi(..) if compute == Type::Bool => return None,
            Instruction::Apply(primitive, _) if !is_of_integers(*primitive) => return None,
            Instruction::Apply(primitive, _) => {
                let mut text = format!("{number}_{}({a}", primitive.name());
                if primitive.arity() > 1 {
                    write!(text, ", {b}").ok()?;
                }
                text + ")"
            }
            Instruction::Powi(_, exponent) => format!("{number}_powi({a}, {exponent}ll)"),
            Instruction::Select(..) => format!("{a} ? {b} : {c}"),
            Instruction::And(..) => format!("{a} & {b}"),
            Instruction::Or(..) => format!("{a} | {b}"),
            Instruction::Not(_) => format!("!{a}"),
            Instruction::Detach(_) => a,
            Instruction::Position | Instruction::Count => {
                let is_position = *instruction == Instruction::Position;
                lines.add(if is_position { Value::Position } else { Value::Count }, number, operands);
                continue;
            }
            Instruction::Epsilon | Instruction::Polygamma(..) | Instruction::Row(..) => return None,
        };
        lines.add(Value::Expression(expression), c_type, operands);
    }
    lines.outputs = program.outputs().iter().map(|(_, id)| id.at()).collect();
    Some(lines)
}

/// Whether integers have a primitive.
fn is_of_integers(primitive: Primitive) -> bool {
    use crate::program::Algebra;
    matches!(primitive.algebra(), Algebra::Element | Algebra::Num | Algebra::Real | Algebra::Int)
}

/// A constant of an integer type, or of truth values.
pub(super) fn constant(value: Const, compute: Type) -> String {
    macro_rules! of {
        ($t:ty, $suffix:literal) => {
            format!(concat!("({}){}", $suffix), compute.name(), <$t as crate::Element>::constant(value))
        };
    }
    match compute {
        Type::Bool => u8::from(<bool as crate::Element>::constant(value)).to_string(),
        Type::I8 => of!(i8, ""),
        Type::I16 => of!(i16, ""),
        Type::I32 => of!(i32, "ll"),
        Type::U8 => of!(u8, ""),
        Type::U16 => of!(u16, ""),
        Type::U32 => of!(u32, "u"),
        Type::U64 => of!(u64, "ull"),
        // The least number has no literal.
        _ => match <i64 as crate::Element>::constant(value) {
            i64::MIN => "(-9223372036854775807ll - 1)".into(),
            value => format!("{value}ll"),
        },
    }
}
