//! Loops on several threads: one rayon pool, entered only when there is enough to do.
//!
//! The caller takes chunks like everyone else and waits for chunks, never for threads: a worker that wakes up late
//! finds nothing left and costs nothing.

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::Thread;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// More chunks than this add nothing but overhead.
const MAX_CHUNKS: usize = 512;

/// How many threads were asked for; 0 while nobody did.
static REQUESTED: AtomicUsize = AtomicUsize::new(0);

/// How many threads [`parallel_for`] runs on: what [`set_num_threads`] said, or as many as the machine lends us.
pub fn num_threads() -> usize {
    match REQUESTED.load(Ordering::Relaxed) {
        0 => {
            let available = std::thread::available_parallelism().map_or(1, usize::from);
            // Whoever sets it meanwhile wins.
            REQUESTED
                .compare_exchange(0, available, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|set| set, |_| available)
        }
        requested => requested,
    }
}

/// Sets how many threads [`parallel_for`] runs on from now on; 0 means as many as the machine lends us.
pub fn set_num_threads(n: usize) {
    REQUESTED.store(n, Ordering::Relaxed);
    let mut slot = process().pool.write().unwrap_or_else(PoisonError::into_inner);
    *slot = None;
}

/// Calls `f` with consecutive ranges that together are `0..n`, on several threads if there is more than one range.
///
/// The ranges hold at least `grain` indices each (but for the last) and depend on `n` and `grain` alone, so results
/// don't depend on the number of threads. A panic in `f` comes through, once all that was begun has ended. Between ranges the
/// caller [polls](crate::stop::poll): if that asks to stop, the other ranges are left out, and it unwinds.
pub fn parallel_for(n: usize, grain: usize, f: impl Fn(Range<usize>) + Sync) {
    if n <= grain.max(1) {
        if n > 0 {
            f(0..n);
        }
        return;
    }
    let size = grain.max(1).max(n.div_ceil(MAX_CHUNKS));
    let chunks = n.div_ceil(size);
    let chunk = |k: usize| f(k * size..((k + 1) * size).min(n));
    let helpers = num_threads().min(chunks) - 1;
    match pool().filter(|_| helpers > 0) {
        None => (0..chunks).for_each(|k| {
            crate::stop::poll();
            chunk(k);
        }),
        Some(pool) => run(&pool, helpers, chunks, &chunk),
    }
}

/// The chunks of one loop, shared by everybody who works on it.
struct Work {
    /// The caller's closure. It lives while a chunk is unfinished, so only who holds a chunk may call it.
    chunk: *const (dyn Fn(usize) + Sync),
    chunks: usize,
    next: AtomicUsize,
    finished: AtomicUsize,
    failed: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    caller: Thread,
}

// SAFETY: the closure behind `chunk` is `Sync`, and everything else is made for sharing.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Work {
    /// Takes chunks until none is left, and calls `before` each. After a panic the others are taken but not run.
    fn help(&self, before: impl Fn()) {
        loop {
            let k = self.next.fetch_add(1, Ordering::Relaxed);
            if k >= self.chunks {
                return;
            }
            if !self.failed.load(Ordering::Relaxed) {
                // SAFETY: chunk k is unfinished, so the caller is still waiting for it and keeps the closure alive.
                let chunk = unsafe { &*self.chunk };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| {
                    before();
                    chunk(k)
                })) {
                    self.failed.store(true, Ordering::Relaxed);
                    self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
                }
            }
            if self.finished.fetch_add(1, Ordering::Release) + 1 == self.chunks {
                self.caller.unpark();
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire) == self.chunks
    }
}

fn run(pool: &ThreadPool, helpers: usize, chunks: usize, chunk: &(dyn Fn(usize) + Sync)) {
    let work = Arc::new(Work {
        // SAFETY: only the lifetime is forgotten; `run` doesn't return before every chunk has finished.
        chunk: unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(chunk) },
        chunks,
        next: AtomicUsize::new(0),
        finished: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        panic: Mutex::new(None),
        caller: std::thread::current(),
    });
    for _ in 0..helpers {
        let work = Arc::clone(&work);
        pool.spawn(move || work.help(|| ()));
    }
    // Polling takes longer than the shortest loops: not before the first chunk.
    let is_first = Cell::new(true);
    work.help(|| {
        if !is_first.replace(false) {
            crate::stop::poll();
        }
    });
    // The last chunks usually end together; sleeping and waking takes longer than most of them.
    for _ in 0..1 << 10 {
        if work.is_finished() {
            break;
        }
        std::hint::spin_loop();
    }
    while !work.is_finished() {
        std::thread::park();
    }
    let panic = work.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// What belongs to one process: after a fork the child has none of the parent's threads, and a lock that one of
/// them held would never be released, so the child begins anew.
struct Process {
    id: u32,
    pool: RwLock<Option<Arc<ThreadPool>>>,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

fn process() -> &'static Process {
    let id = std::process::id();
    loop {
        let current = PROCESS.load(Ordering::Acquire);
        // SAFETY: null, or a box that was leaked below and is never freed.
        match unsafe { current.as_ref() } {
            Some(process) if process.id == id => return process,
            _ => {}
        }
        // The one before is leaked: a forked child can't end threads that it doesn't have.
        let new = Box::into_raw(Box::new(Process { id, pool: RwLock::new(None) }));
        if PROCESS.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: nobody has seen it.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

/// The pool, built when first needed; none where one thread was asked for or the system gives us no other.
fn pool() -> Option<Arc<ThreadPool>> {
    let threads = num_threads();
    if threads == 1 {
        return None;
    }
    let slot = &process().pool;
    if let Some(pool) = &*slot.read().unwrap_or_else(PoisonError::into_inner) {
        return Some(Arc::clone(pool));
    }
    let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
    if slot.is_none() {
        let name = |k| format!("minitensor-{k}");
        *slot = ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok().map(Arc::new);
    }
    slot.clone()
}
