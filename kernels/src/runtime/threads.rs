//! Parallel loops on one rayon pool, or on the [`team`] of a thread. They are used only if a loop has enough work.
//!
//! The caller takes chunks like every worker. It waits for chunks, not for threads: a worker that wakes up late finds
//! no chunks left and costs nothing. To wake a thread takes longer than many loops, so workers wait for the next loop for a
//! while before they sleep ([`Crew`]).

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use smallvec::SmallVec;

use super::serial::is_serial;
use super::stop::poll;
use super::team::{self, Team};

/// The maximum number of chunks. More chunks only add overhead.
const MAX_CHUNKS: usize = 512;

/// The time between two polls while the caller waits for other threads.
const WAIT: Duration = Duration::from_millis(10);

/// The requested number of threads; 0 if none was requested.
static REQUESTED: AtomicUsize = AtomicUsize::new(0);

/// The number of threads that [`parallel_for`] uses: the last argument of [`set_num_threads`], or the available
/// parallelism.
pub fn num_threads() -> usize {
    match REQUESTED.load(Ordering::Relaxed) {
        0 => {
            let available = std::thread::available_parallelism().map_or(1, usize::from);
            // If another thread sets it at the same time, that value wins.
            REQUESTED
                .compare_exchange(0, available, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|set| set, |_| available)
        }
        requested => requested,
    }
}

/// Sets the number of threads that [`parallel_for`] uses; 0 selects the available parallelism.
pub fn set_num_threads(n: usize) {
    REQUESTED.store(n, Ordering::Relaxed);
    let mut slot = process().pool.write().unwrap_or_else(PoisonError::into_inner);
    *slot = None;
}

/// Calls `f` with consecutive ranges that together cover `0..n`, on several threads if there is more than one range.
///
/// Each range except the last has at least `grain` indices. The ranges depend only on `n` and `grain`, so results don't
/// depend on the number of threads. A panic in `f` propagates after all started ranges have ended; the remaining ranges are skipped.
/// Between ranges, and while it waits for other threads, the caller [polls](crate::runtime::stop::poll). A range that takes more than a
/// few milliseconds must poll too: on every thread, this ends it if the loop has stopped.
pub fn parallel_for(n: usize, grain: usize, f: impl Fn(Range<usize>) + Sync) {
    match n {
        0 => {}
        n if n <= grain.max(1) => f(0..n),
        n => in_chunks(n, grain, &f),
    }
}

/// The size of a chunk with which every thread gets few chunks of a loop over `n` indices: between two chunks a thread waits for memory. A
/// thread that is done takes chunks of others. The size depends on the number of threads, so it suits loops whose results do not depend
/// on the chunks.
pub fn few_chunks(n: usize) -> usize {
    const OF_THREAD: usize = 2;
    n / (OF_THREAD * num_threads())
}

fn in_chunks(n: usize, grain: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
    let size = grain.max(1).max(n.div_ceil(MAX_CHUNKS));
    let chunks = n.div_ceil(size);
    let chunk = |k: usize| f(k * size..((k + 1) * size).min(n));
    let helpers = num_threads().min(chunks) - 1;
    if helpers > 0 && !is_serial() {
        if team::current().is_some_and(|team| run_on(team, helpers, chunks, &chunk)) {
            return;
        }
        if let Some(pool) = pool() {
            return run(&pool, helpers, chunks, &chunk);
        }
    }
    for k in 0..chunks {
        poll();
        chunk(k);
    }
}

thread_local! {
    /// The loop whose chunk this thread runs; null if there is none.
    static CURRENT: Cell<*const Work> = const { Cell::new(ptr::null()) };
    /// Whether this thread helps with a loop of another thread.
    static IS_HELPER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread helps with a loop that another thread has started. Only that thread polls.
pub fn is_helper() -> bool {
    IS_HELPER.get()
}

/// Whether the loop whose range this thread computes, or a loop around it, has stopped: a range on another thread panicked, or the
/// caller's poll requested it.
pub fn has_stopped() -> bool {
    let mut current = CURRENT.get();
    // SAFETY: this thread holds a chunk of each of these loops, so their callers wait and keep them alive.
    while let Some(work) = unsafe { current.as_ref() } {
        if work.has_failed.load(Ordering::Relaxed) {
            return true;
        }
        current = work.around;
    }
    false
}

/// Consecutive chunks of a loop, which one thread takes first.
struct Part {
    next: AtomicUsize,
    end: usize,
}

/// The chunks of one loop, shared by all threads that work on it.
struct Work {
    /// The caller's closure. It lives as long as a chunk is unfinished, so only a thread that holds a chunk may call
    /// it.
    chunk: *const (dyn Fn(usize) + Sync),
    chunks: usize,
    /// The chunks of the caller, then those of each helper. Loops over the same memory give each core the same part, so it need not
    /// fetch what another core has just written.
    parts: SmallVec<[Part; 8]>,
    finished: AtomicUsize,
    /// The number of threads that may still join.
    seats: AtomicUsize,
    has_failed: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    caller: Thread,
    /// The loop of which the caller runs a chunk; null if there is none.
    around: *const Work,
}

// SAFETY: the closure that `chunk` points to is `Sync`, and so are the loops around; all other fields are `Sync` too.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

impl Work {
    /// # Safety
    /// The closure must live until every chunk has finished.
    unsafe fn new(helpers: usize, chunks: usize, chunk: &(dyn Fn(usize) + Sync)) -> Work {
        let parts = helpers + 1;
        let part = |k: usize| Part { next: AtomicUsize::new(k * chunks / parts), end: (k + 1) * chunks / parts };
        Work {
            // SAFETY: this only extends the lifetime, and the caller keeps the closure alive.
            chunk: unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(chunk) },
            chunks,
            parts: (0..parts).map(part).collect(),
            finished: AtomicUsize::new(0),
            seats: AtomicUsize::new(helpers),
            has_failed: AtomicBool::new(false),
            panic: Mutex::new(None),
            caller: std::thread::current(),
            around: CURRENT.get(),
        }
    }

    /// Takes the chunks of a part, then those of the others, until none is left, and calls `before` ahead of each. After a panic the
    /// remaining chunks are taken but not run.
    fn help(&self, part: usize, before: impl Fn()) {
        let (earlier, later) = self.parts.split_at(part);
        for part in later.iter().chain(earlier) {
            self.take(part, &before);
        }
    }

    fn take(&self, part: &Part, before: &impl Fn()) {
        loop {
            let k = part.next.fetch_add(1, Ordering::Relaxed);
            if k >= part.end {
                return;
            }
            if !self.has_failed.load(Ordering::Relaxed) {
                // SAFETY: chunk k is unfinished, so the caller is still waiting for it and keeps the closure alive.
                let chunk = unsafe { &*self.chunk };
                let around = CURRENT.replace(self);
                self.note(|| {
                    before();
                    chunk(k)
                });
                CURRENT.set(around);
            }
            if self.finished.fetch_add(1, Ordering::Release) + 1 == self.chunks {
                self.caller.unpark();
            }
        }
    }

    /// Runs a part of the loop. A panic stops the loop, which [ends](Self::end) with the first one.
    fn note(&self, run: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
            self.has_failed.store(true, Ordering::Relaxed);
        }
    }

    /// Takes chunks, unless enough other threads do.
    fn join(&self) {
        let one_less = |seats: usize| seats.checked_sub(1);
        if self.seats.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
            let helper = rayon::current_thread_index().unwrap_or(0);
            self.help_caller(1 + helper % (self.parts.len() - 1));
        }
    }

    /// Takes chunks on another thread than that of the caller.
    fn help_caller(&self, part: usize) {
        let was_helper = IS_HELPER.replace(true);
        self.help(part, || ());
        IS_HELPER.set(was_helper);
    }

    /// Takes chunks on the thread of the caller, and polls between them.
    fn lead(&self) {
        // A poll takes longer than the shortest loops, so there is none before the first chunk.
        let is_first = Cell::new(true);
        self.help(0, || {
            if !is_first.replace(false) {
                poll();
            }
        });
    }

    /// Propagates the panic of a chunk.
    fn end(&self) {
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire) == self.chunks
    }
}

fn run(pool: &ThreadPool, helpers: usize, chunks: usize, chunk: &(dyn Fn(usize) + Sync)) {
    // SAFETY: this function doesn't return before every chunk has finished.
    let work = Arc::new(unsafe { Work::new(helpers, chunks, chunk) });
    let crew = &process().crew;
    for _ in crew.offer(&work)..helpers {
        let work = Arc::clone(&work);
        pool.spawn(|| crew.serve(work));
    }
    work.lead();
    // The last chunks usually end at about the same time, and sleeping and waking takes longer than most of them. Spin
    // first.
    for _ in 0..1 << 10 {
        if work.is_finished() {
            break;
        }
        std::hint::spin_loop();
    }
    while !work.is_finished() {
        std::thread::park_timeout(WAIT);
        work.note(poll);
    }
    work.end();
}

fn run_on(team: Team, helpers: usize, chunks: usize, chunk: &(dyn Fn(usize) + Sync)) -> bool {
    // SAFETY: a team returns when all calls have returned, and a call of `lead` or `help` returns when it finds no chunk left. So this
    // function doesn't return before every chunk has finished.
    let work = unsafe { Work::new(helpers, chunks, chunk) };
    let has_threads = team(helpers + 1, &|k| {
        let _inner = team::enter(team);
        if std::thread::current().id() == work.caller.id() {
            work.lead();
        } else {
            work.help_caller(k);
        }
    });
    if has_threads {
        // In case the team has failed.
        work.lead();
        work.end();
    }
    has_threads
}

/// The workers that have recently helped with a loop, and wait for another one.
#[derive(Default)]
struct Crew {
    /// The number of waiting workers.
    waiting: AtomicUsize,
    /// The number of loops that have been offered.
    offers: AtomicUsize,
    /// The loop that was offered last.
    latest: Mutex<Option<Arc<Work>>>,
}

impl Crew {
    /// How long a worker waits.
    const PATIENCE: Duration = Duration::from_micros(200);
    /// The longest time between two looks for a loop, unless another thread uses the core.
    const TURN: Duration = Duration::from_micros(20);

    /// Offers a loop to the waiting workers. Returns their number.
    fn offer(&self, work: &Arc<Work>) -> usize {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return 0;
        }
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(work));
        self.offers.fetch_add(1, Ordering::SeqCst);
        // A worker that leaves after this sees the offer.
        self.waiting.load(Ordering::SeqCst)
    }

    /// Helps with a loop, and with those that are offered soon after.
    fn serve(&self, work: Arc<Work>) {
        let mut seen = self.offers.load(Ordering::SeqCst);
        let mut work = Some(work);
        while let Some(current) = work {
            current.join();
            work = self.wait(&mut seen);
        }
    }

    /// The next loop after `seen` offers.
    fn wait(&self, seen: &mut usize) -> Option<Arc<Work>> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let begin = Instant::now();
        let mut now = begin;
        while !self.spin(*seen) && now - begin < Crew::PATIENCE {
            // If another thread ran meanwhile, this one sleeps, so that the system wakes it on an idle core.
            std::thread::yield_now();
            let before = std::mem::replace(&mut now, Instant::now());
            if now - before > Crew::TURN {
                break;
            }
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        let offers = self.offers.load(Ordering::SeqCst);
        let is_new = std::mem::replace(seen, offers) != offers;
        let latest = || self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if is_new { latest() } else { None }
    }

    /// Looks for an offer for about a microsecond.
    fn spin(&self, seen: usize) -> bool {
        (0..64).any(|_| {
            std::hint::spin_loop();
            self.offers.load(Ordering::Relaxed) != seen
        })
    }
}

/// The state of one process. After a fork the child has none of the parent's threads, and a lock that one of them held
/// would never be released, so the child creates its own state.
struct Process {
    id: u32,
    pool: RwLock<Option<Arc<ThreadPool>>>,
    crew: Crew,
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
        // The previous state is leaked: a forked child can't end threads that it doesn't have.
        let new = Box::into_raw(Box::new(Process { id, pool: RwLock::new(None), crew: Crew::default() }));
        if PROCESS.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: no other thread has the pointer.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

/// The pool, built at first use; `None` if one thread was requested or the system provides no others.
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
        *slot =
            ThreadPoolBuilder::new().num_threads(threads.min(MAX_CHUNKS)).thread_name(name).build().ok().map(Arc::new);
    }
    slot.clone()
}
