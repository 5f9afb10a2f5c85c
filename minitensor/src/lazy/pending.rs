//! [`Pending`]: the postponed calls, as a graph.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use minitensor_kernels::Const;
use smallvec::SmallVec;

use super::origin::Origin;
use crate::attr::Attr;
use crate::dispatch::Produced;
use crate::dtype::DType;
use crate::fork::lock::try_lock;
use crate::graph::{Call, Cut, Graph, Operand, Source, Value, ValueId, Window};
use crate::op::by_name::names;
use crate::op::{OpRef, Role};
use crate::precision::is_wide;
use crate::tensor::{Device, Layout, Region, Storage, Tensor};

/// The postponed calls of all threads.
static PENDING: Mutex<Option<Box<Pending>>> = Mutex::new(None);

/// The most calls that are postponed.
const CALLS: usize = 10_000;
/// The most bytes of existing memory that postponed calls keep.
const BYTES: usize = 1 << 30;

/// Calls in their order, and the memory that they read and write.
#[derive(Default)]
pub struct Pending {
    /// The calls. Its inputs are windows of memory that exists, or that calls which were postponed before these compute.
    pub graph: Graph,
    /// The inputs of the graph.
    pub inputs: Vec<Tensor>,
    /// All memory, by number.
    pub memories: Vec<Memory>,
    /// For each plain number among the arguments of calls, in order, the dtype of a tensor that can replace it.
    pub dtypes: Vec<Option<DType>>,
    /// The origins of calls. A call has the position of its own.
    pub origins: Vec<Origin>,
    /// The number of each memory, by its address.
    numbers: HashMap<usize, u32>,
    windows: HashMap<Window, ValueId>,
    bytes: usize,
}

/// Memory that the calls read or write.
pub enum Memory {
    /// Memory that exists, or that earlier calls compute.
    Given(Arc<Storage>),
    /// Memory that a call computes, if a tensor still refers to it. The value covers all of it.
    Computed(Weak<Storage>, Layout, ValueId),
}

/// A call to postpone.
pub struct Postponed<'a> {
    pub op: &'a OpRef,
    pub args: SmallVec<[Argument<'a>; 4]>,
    pub attrs: &'a [Attr],
    /// The outputs, on the device without values; `None` for one that is not wanted.
    pub outputs: Produced,
    pub origin: Option<Origin>,
}

/// An argument of a call.
pub enum Argument<'a> {
    /// An absent optional input.
    Absent,
    /// A plain number, and the dtype of a tensor that can replace it.
    Number(Const, Option<DType>),
    /// A tensor.
    Given(&'a Tensor),
    /// A copy of a tensor that other code may change at any time.
    Copied(Tensor),
}

fn pending() -> MutexGuard<'static, Option<Box<Pending>>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes all postponed calls.
pub fn take() -> Option<Box<Pending>> {
    pending().take()
}

/// Whether the postponed calls must be computed before another one is postponed.
pub fn is_full() -> bool {
    pending().as_ref().is_some_and(|pending| pending.graph.calls.len() >= CALLS || pending.bytes >= BYTES)
}

/// Postpones a call, and returns its outputs. `None` if an input shows postponed memory as another dtype, which a graph
/// cannot express.
pub fn postpone(call: Postponed<'_>) -> Option<Produced> {
    pending().get_or_insert_default().push(call)
}

/// Acquires the lock for a fork. `None` if another thread holds it.
pub fn try_hold() -> Option<Box<dyn Any>> {
    try_lock(&PENDING)
}

impl Pending {
    fn push(&mut self, call: Postponed<'_>) -> Option<Produced> {
        let op = call.op;
        let mut args = SmallVec::new();
        for arg in &call.args {
            args.push(match arg {
                Argument::Absent => Operand::None,
                Argument::Number(value, _) => Operand::Number(*value),
                Argument::Given(t) => Operand::Value(self.operand(t)?),
                Argument::Copied(t) => Operand::Value(self.operand(t)?),
            });
        }
        self.dtypes.extend(call.args.iter().filter_map(|arg| match arg {
            Argument::Number(_, dtype) => Some(*dtype),
            _ => None,
        }));
        let (mut ids, mut outputs) = (SmallVec::new(), SmallVec::new());
        for (k, meta) in call.outputs.iter().enumerate() {
            let role = op.outputs.get(k).map(|output| output.role);
            let (id, t) = match (meta, role) {
                (None, _) => (None, None),
                (Some(_), Some(Role::Mutates(i))) => match (&call.args[i as usize], args[i as usize]) {
                    (Argument::Given(t), Operand::Value(id)) => (Some(id), Some(t.detach())),
                    _ => (None, None),
                },
                (Some(meta), _) => {
                    let (id, t) = self.output(meta);
                    (Some(id), Some(t))
                }
            };
            ids.push(id);
            outputs.push(t);
        }
        let origin = call.origin.map(|origin| {
            self.origins.push(origin);
            self.origins.len() as u32 - 1
        });
        let attrs = call.attrs.iter().cloned().collect();
        self.graph.calls.push(Call { attrs, outputs: ids, is_wide: is_wide(), origin, ..plain(op, args) });
        Some(outputs)
    }

    /// The value of a tensor.
    fn operand(&mut self, t: &Tensor) -> Option<ValueId> {
        let window = Window::of(t);
        if let Some(id) = self.windows.get(&window) {
            return Some(*id);
        }
        let known = self.numbers.get(&window.storage).copied();
        if let Some((Memory::Computed(_, layout, id), number)) = known.map(|at| (&self.memories[at as usize], at)) {
            let (id, layout) = (*id, layout.clone());
            let whole = Tensor::over(t.storage().clone(), layout, self.graph.value(id).dtype);
            return t.lies_within(&whole).then(|| self.part(&whole, id, t, number, window)).flatten();
        }
        let number = known.unwrap_or_else(|| {
            self.bytes = self.bytes.saturating_add(t.storage().bytes());
            self.memory(t.storage(), Memory::Given(t.storage().clone()))
        });
        self.inputs.push(t.detach());
        Some(self.value(t, number, Source::Input(self.inputs.len() - 1), window))
    }

    /// A view of a postponed tensor.
    fn part(&mut self, whole: &Tensor, of: ValueId, t: &Tensor, number: u32, window: Window) -> Option<ValueId> {
        let op = names::PART.get().ok()?;
        let id = self.value(t, number, Source::Computed, window);
        self.graph.calls.push(Call {
            attrs: [Attr::Ints(Region::of(whole, t).to_ints().into())].into_iter().collect(),
            outputs: [Some(id)].into_iter().collect(),
            ..plain(op, [Operand::Value(of)].into_iter().collect())
        });
        Some(id)
    }

    /// A postponed tensor like this one.
    fn output(&mut self, like: &Tensor) -> (ValueId, Tensor) {
        let storage = Arc::new(Storage::postponed(like.storage().bytes()));
        let t = Tensor::over(storage.clone(), like.layout().clone(), like.dtype());
        let id = ValueId(self.graph.values.len() as u32);
        let number = self.memory(&storage, Memory::Computed(Arc::downgrade(&storage), like.layout().clone(), id));
        (self.value(&t, number, Source::Computed, Window::of(&t)), t)
    }

    fn memory(&mut self, storage: &Arc<Storage>, memory: Memory) -> u32 {
        storage.postpone();
        let number = self.memories.len() as u32;
        self.memories.push(memory);
        self.numbers.insert(Arc::as_ptr(storage).addr(), number);
        number
    }

    fn value(&mut self, t: &Tensor, memory: u32, source: Source, window: Window) -> ValueId {
        let id = ValueId(self.graph.values.len() as u32);
        let (shape, dtype) = (t.shape().clone(), t.dtype());
        self.graph.values.push(Value { shape, dtype, device: Device::Cpu, memory, source });
        self.windows.insert(window, id);
        id
    }
}

fn plain(op: &OpRef, args: SmallVec<[Operand; 4]>) -> Call {
    Call {
        op: op.clone(),
        attrs: SmallVec::new(),
        numbers: None,
        args,
        outputs: SmallVec::new(),
        is_wide: false,
        draws: false,
        origin: None,
        cut: Cut::default(),
    }
}
