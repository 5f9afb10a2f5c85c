//! [`Batch`]: calls that are being computed.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::compiled::{self, Compiled};
use super::failure;
use super::origin::Origin;
use super::pending::{Memory, Pending};
use crate::autograd::NoGrad;
use crate::error::{Error, ErrorKind, Result, panic_text};
use crate::graph::{Call, Reads, record};
use crate::interrupt;
use crate::precision::Narrow;
use crate::stop::stoppable;
use crate::tensor::{Buffer, Layout, Storage, Tensor};

/// Calls that are being computed. An interrupted computation goes on with the next call.
pub struct Batch {
    compiled: Compiled,
    values: Vec<Option<Tensor>>,
    /// The number of calls that have run.
    done: usize,
    /// The call that ran out of memory in the last run.
    starved: Option<usize>,
    /// The errors of calls, by the numbers of the memory that they should have written.
    failures: HashMap<u32, Error>,
    /// The results, in the order of the graph's outputs.
    results: Vec<Promised>,
    /// All memory that is in use, by number.
    memories: Vec<Option<Arc<Storage>>>,
    origins: Vec<Origin>,
}

/// A tensor that a batch computes, and that something refers to.
struct Promised {
    memory: u32,
    storage: Arc<Storage>,
    layout: Layout,
}

impl Batch {
    /// Prepares postponed calls. All memory that earlier ones compute is provided.
    pub fn new(mut pending: Pending) -> Batch {
        let mut graph = std::mem::take(&mut pending.graph);
        let (mut results, mut memories, mut failures) = (Vec::new(), Vec::new(), HashMap::new());
        for (number, memory) in pending.memories.iter().enumerate() {
            memories.push(match memory {
                Memory::Given(storage) => {
                    // The call that writes it may have failed after these were postponed.
                    failures.extend(failure::of(storage).map(|error| (number as u32, error)));
                    Some(storage.clone())
                }
                Memory::Computed(storage, layout, id) => storage.upgrade().inspect(|storage| {
                    graph.outputs.push(*id);
                    results.push(Promised { memory: number as u32, storage: storage.clone(), layout: layout.clone() });
                }),
            });
        }
        let compiled = compiled::of(graph, &pending.dtypes, aliases(&pending.inputs));
        let (values, origins) = (Vec::new(), pending.origins);
        Batch { compiled, values, done: 0, starved: None, failures, results, memories, origins }
    }

    /// Runs the calls, and provides the memory of the results.
    ///
    /// # Errors
    /// If the run is interrupted, or runs out of memory. It can go on.
    pub fn run(&mut self) -> Result<()> {
        let _mode = (NoGrad::new(), Narrow::new(), record::pause());
        let executable = self.compiled.executable.clone();
        if self.done == 0 {
            let Compiled { inputs, numbers, .. } = &self.compiled;
            self.values = executable.begin(Reads { args: inputs, captured: &[], numbers })?;
        }
        while self.done < executable.graph().calls.len() {
            interrupt::check()?;
            self.step()?;
            executable.forget(self.done, &mut self.values);
            self.done += 1;
        }
        interrupt::deferred(|| self.finish());
        Ok(())
    }

    /// Provides the memory of the results.
    fn finish(&mut self) {
        let executable = &self.compiled.executable;
        let outputs = &executable.graph().outputs;
        let computed: Vec<Option<Tensor>> = outputs.iter().map(|id| self.values[id.at()].take()).collect();
        self.values.clear();
        for ((promised, id), t) in self.results.iter().zip(outputs).zip(computed) {
            let error = match t {
                Some(t) => {
                    // A view keeps its base, so this drops it.
                    let whole = t.detach();
                    drop(t);
                    promised.keep(whole).err()
                }
                None => self.failures.get(&executable.graph().value(*id).memory).cloned(),
            };
            if let Some(error) = error {
                self.failures.insert(promised.memory, error);
            }
        }
        for (number, storage) in self.memories.iter().enumerate() {
            match (storage, self.failures.get(&(number as u32))) {
                (Some(storage), Some(error)) => failure::note(storage, error.clone()),
                (Some(storage), None) => storage.release(),
                (None, _) => {}
            }
        }
    }

    /// Runs the next call. If it fails, or reads what a failed call should have written, so do those that read its results.
    fn step(&mut self) -> Result<()> {
        let executable = self.compiled.executable.clone();
        let graph = executable.graph();
        let call = &graph.calls[self.done];
        let memory = |id| graph.value(id).memory;
        let earlier = call.reads().find_map(|id| self.failures.get(&memory(id))).cloned();
        let result = earlier.map_or_else(|| self.attempt(call), |error| Ok(Err(error)))?;
        if let Err(error) = result {
            for id in call.computes().chain(call.changes()) {
                self.failures.insert(memory(id), error.clone());
            }
        }
        Ok(())
    }

    /// Runs a call, and returns its result.
    ///
    /// # Errors
    /// If the call must run again: after an interrupt, and once after it ran out of memory. A call that changes memory runs
    /// only once.
    fn attempt(&mut self, call: &Call) -> Result<Result<()>> {
        let at = self.done;
        let is_repeatable = call.changes().next().is_none();
        let mut run = || stoppable(|| self.compiled.executable.step(at, &mut self.values, &self.compiled.numbers));
        let run = AssertUnwindSafe(|| if is_repeatable { run() } else { interrupt::deferred(run) });
        let (result, is_interrupted) = interrupt::noticed(|| catch_unwind(run));
        let result = result.unwrap_or_else(|panic| {
            Err(Error::runtime(format!("op '{}' panicked: {}", call.op.name, panic_text(&*panic))))
        });
        let Err(error) = result else { return Ok(Ok(())) };
        let is_starved = error.kind() == ErrorKind::Memory && self.starved.replace(at) != Some(at);
        if is_repeatable && (is_interrupted || is_starved) {
            return Err(error);
        }
        Ok(Err(match call.origin {
            Some(at) => self.origins[at as usize].explain(error),
            None => error,
        }))
    }
}

impl Promised {
    /// Provides the memory of the tensor.
    fn keep(&self, t: Tensor) -> Result<()> {
        let bytes = self.storage.bytes();
        let fits = *t.layout() == self.layout && t.storage().bytes() == bytes && t.is_unshared();
        let memory = if fits {
            t.into_buffer()
        } else {
            let copy = Tensor::over(Arc::new(Buffer::uninit_cpu(bytes)?.into()), self.layout.clone(), t.dtype());
            copy.copy_from(&t)?;
            copy.into_buffer()
        };
        memory.map(|memory| self.storage.provide(memory)).ok_or_else(|| Error::runtime("a result is in use"))
    }
}

/// The inputs of a batch, as tensors that are not postponed: code on any thread may access them during the run, and their
/// changes have been counted already. Memory that was not computed remains as it is. No call that reads it runs.
fn aliases(inputs: &[Tensor]) -> Vec<Tensor> {
    let mut known: HashMap<*const Storage, Arc<Storage>> = HashMap::new();
    let alias = |t: &Tensor| {
        let storage = known.entry(Arc::as_ptr(t.storage()));
        let storage = storage.or_insert_with(|| t.storage().alias().unwrap_or_else(|| t.storage().clone()));
        Tensor::over(storage.clone(), t.layout().clone(), t.dtype())
    };
    inputs.iter().map(alias).collect()
}
