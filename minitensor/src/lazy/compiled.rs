//! Executables of graphs, by structure: a structure that returns is not compiled again.
//!
//! Plain numbers and `f64` attributes are not part of the structure. A number that differs from the last time, such as a
//! learning rate, is set by each run from then on; the others are constants.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use minitensor_kernels::Const;
use smallvec::SmallVec;

use crate::attr::Attr;
use crate::dtype::DType;
use crate::fork::lock::try_lock;
use crate::graph::{Call, Executable, Graph, Operand, Source, Value, ValueId, pass};
use crate::tensor::{Device, Shape, Tensor};

/// The known structures, the one that was used last at the end.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
/// The most structures.
const MOST: usize = 64;

/// A compiled graph.
struct Known {
    hash: u64,
    /// The graph as it was postponed, without its numbers.
    structure: Graph,
    numbers: Vec<Const>,
    /// For each number, whether each run sets it.
    is_set: Vec<bool>,
    executable: Arc<Executable>,
}

/// A number that a run can set.
struct Number {
    call: usize,
    slot: Slot,
    value: Const,
}

/// The position of a number in its call.
enum Slot {
    /// An argument. A tensor of this dtype can replace it.
    Arg(usize, DType),
    Attr(usize),
}

/// A graph that can run.
pub struct Compiled {
    pub executable: Arc<Executable>,
    pub inputs: Vec<Tensor>,
    pub numbers: Vec<f64>,
}

/// Compiles a graph with these inputs. `dtypes` are those of tensors that can replace its plain numbers.
pub fn of(mut graph: Graph, dtypes: &[Option<DType>], mut inputs: Vec<Tensor>) -> Compiled {
    let numbers = take_numbers(&mut graph, dtypes);
    let count = inputs.len();
    let Found { hash, is_set, executable } = find(&graph, &numbers);
    let executable = executable.unwrap_or_else(|| {
        let executable = Arc::new(compiled(graph.clone(), &numbers, &is_set, count));
        let values = numbers.iter().map(|number| number.value).collect();
        keep(Known { hash, structure: graph, numbers: values, is_set: is_set.clone(), executable: executable.clone() });
        executable
    });
    let mut floats = Vec::new();
    for (number, _) in numbers.iter().zip(is_set).filter(|(_, is_set)| *is_set) {
        match (&number.slot, number.value) {
            (Slot::Arg(_, dtype), value) => inputs.extend(Tensor::from_const(value, *dtype, Device::Cpu).ok()),
            (Slot::Attr(_), Const::Float(value)) => floats.push(value),
            _ => {}
        }
    }
    Compiled { executable, inputs, numbers: floats }
}

/// Acquires the lock for a fork. `None` if another thread holds it.
pub fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&KNOWN)
}

/// Takes the numbers out of a graph, in the order of its calls.
fn take_numbers(graph: &mut Graph, dtypes: &[Option<DType>]) -> Vec<Number> {
    let mut dtypes = dtypes.iter();
    let mut numbers = Vec::new();
    for (at, call) in graph.calls.iter_mut().enumerate() {
        for (i, arg) in call.args.iter_mut().enumerate() {
            if let Operand::Number(value) = arg
                && let Some(Some(dtype)) = dtypes.next()
            {
                let value = std::mem::replace(value, Const::Int(0));
                numbers.push(Number { call: at, slot: Slot::Arg(i, *dtype), value });
            }
        }
        for (i, attr) in call.attrs.iter_mut().enumerate() {
            if let Attr::Float(value) = attr {
                let value = Const::Float(std::mem::take(value));
                numbers.push(Number { call: at, slot: Slot::Attr(i), value });
            }
        }
    }
    numbers
}

/// What is known of a structure.
struct Found {
    hash: u64,
    /// For each number, whether each run sets it.
    is_set: Vec<bool>,
    /// The executable, if its constants are the numbers that no run sets.
    executable: Option<Arc<Executable>>,
}

fn find(structure: &Graph, numbers: &[Number]) -> Found {
    let mut hasher = DefaultHasher::new();
    hash(structure, &mut hasher);
    let hash = hasher.finish();
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(at) = all.iter().rposition(|known| known.hash == hash && is_alike(&known.structure, structure)) else {
        return Found { hash, is_set: vec![false; numbers.len()], executable: None };
    };
    let known = all.remove(at);
    let differs = |k: usize| !is_same(known.numbers[k], numbers[k].value);
    let is_set: Vec<bool> = (0..numbers.len()).map(|k| known.is_set[k] || differs(k)).collect();
    // A structure with another constant is compiled again, and replaces this one.
    let executable = (is_set == known.is_set).then(|| known.executable.clone());
    if executable.is_some() {
        all.push(known);
    }
    Found { hash, is_set, executable }
}

fn keep(known: Known) {
    let oldest = {
        let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(known);
        (all.len() > MOST).then(|| all.remove(0))
    };
    drop(oldest);
}

/// Compiles a structure with this number of inputs, and these numbers.
fn compiled(mut graph: Graph, numbers: &[Number], is_set: &[bool], mut inputs: usize) -> Executable {
    let mut floats = 0;
    for (Number { call, slot, value }, is_set) in numbers.iter().zip(is_set) {
        match (slot, value) {
            (Slot::Arg(i, dtype), _) if *is_set => {
                let id = ValueId(graph.values.len() as u32);
                let memory = graph.values.iter().map(|v| v.memory + 1).max().unwrap_or(0);
                let (shape, source) = (Shape::default(), Source::Input(inputs));
                graph.values.push(Value { shape, dtype: *dtype, device: Device::Cpu, memory, source });
                graph.calls[*call].args[*i] = Operand::Value(id);
                inputs += 1;
            }
            (Slot::Arg(i, _), value) => graph.calls[*call].args[*i] = Operand::Number(*value),
            (Slot::Attr(i), _) if *is_set => {
                let first = (SmallVec::new(), floats);
                graph.calls[*call].numbers.get_or_insert(first).0.push(*i);
                floats += 1;
            }
            (Slot::Attr(i), Const::Float(value)) => graph.calls[*call].attrs[*i] = Attr::Float(*value),
            (Slot::Attr(_), _) => {}
        }
    }
    // The passes keep valid graphs valid.
    Executable::new(pass::apply(graph.clone(), |_, _| {}).unwrap_or(graph))
}

fn is_same(a: Const, b: Const) -> bool {
    match (a, b) {
        (Const::Float(a), Const::Float(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

fn is_alike(a: &Graph, b: &Graph) -> bool {
    let operand = |(a, b): (&Operand, &Operand)| match (a, b) {
        (Operand::Number(a), Operand::Number(b)) => is_same(*a, *b),
        (a, b) => a == b,
    };
    let attr = |(a, b): (&Attr, &Attr)| match (a, b) {
        (Attr::Floats(a), Attr::Floats(b)) => a.iter().map(|v| v.to_bits()).eq(b.iter().map(|v| v.to_bits())),
        (a, b) => a == b,
    };
    let value = |(a, b): (&Value, &Value)| {
        a.shape == b.shape && a.dtype == b.dtype && a.memory == b.memory && input(&a.source) == input(&b.source)
    };
    let call = |(a, b): (&Call, &Call)| {
        std::ptr::eq(&*a.op, &*b.op)
            && (a.args.len(), a.attrs.len(), &a.outputs) == (b.args.len(), b.attrs.len(), &b.outputs)
            && (a.is_wide, a.origin) == (b.is_wide, b.origin)
            && a.args.iter().zip(&b.args).all(operand)
            && a.attrs.iter().zip(&b.attrs).all(attr)
    };
    (a.values.len(), a.calls.len(), &a.outputs) == (b.values.len(), b.calls.len(), &b.outputs)
        && a.values.iter().zip(&b.values).all(value)
        && a.calls.iter().zip(&b.calls).all(call)
}

fn hash(graph: &Graph, to: &mut DefaultHasher) {
    for value in &graph.values {
        (&value.shape[..], value.dtype.name(), value.memory, input(&value.source)).hash(to);
    }
    for call in &graph.calls {
        (std::ptr::from_ref(&*call.op), &call.outputs, call.is_wide).hash(to);
        for arg in &call.args {
            if let Operand::Value(id) = arg {
                id.hash(to);
            }
        }
        for attr in &call.attrs {
            match attr {
                Attr::Int(value) => value.hash(to),
                Attr::Ints(values) => values.hash(to),
                _ => std::mem::discriminant(attr).hash(to),
            }
        }
    }
    graph.outputs.hash(to);
}

/// The number of the input that a value is.
fn input(source: &Source) -> Option<usize> {
    if let Source::Input(at) = source { Some(*at) } else { None }
}
