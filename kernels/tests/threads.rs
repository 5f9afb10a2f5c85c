//! Parallel loops.

use minitensor_kernels::threads::{num_threads, parallel_for, set_num_threads};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

fn ranges(n: usize, grain: usize) -> Vec<Range<usize>> {
    let all = Mutex::new(Vec::new());
    parallel_for(n, grain, |range| all.lock().unwrap().push(range));
    let mut all = all.into_inner().unwrap();
    all.sort_by_key(|range| range.start);
    all
}

/// A lock: the tests of this file set the number of threads, which is global.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn every_index_is_covered_once_by_ranges_that_do_not_depend_on_the_threads() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    for (n, grain) in [(0, 1), (1, 1), (5, 0), (10, 3), (1000, 1), (1000, 999), (1000, 1000), (100_000, 7)] {
        set_num_threads(1);
        let alone = ranges(n, grain);
        let mut next = 0;
        for range in &alone {
            assert!(range.start == next && range.end > next, "{n} by {grain}: {alone:?}");
            assert!(range.len() >= grain.min(n) || range.end == n);
            next = range.end;
        }
        assert_eq!(next, n);
        for threads in [2, 3, 8] {
            set_num_threads(threads);
            assert_eq!(num_threads(), threads);
            assert_eq!(ranges(n, grain), alone, "{n} by {grain} on {threads} threads");
        }
    }
    set_num_threads(0);
    assert!(num_threads() >= 1);
}

#[test]
fn loops_nest_and_run_from_many_threads_at_once() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    set_num_threads(4);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let counts: Vec<AtomicU32> = (0..400).map(|_| AtomicU32::new(0)).collect();
                    parallel_for(20, 1, |outer| {
                        for i in outer {
                            parallel_for(20, 1, |inner| {
                                for j in inner {
                                    counts[i * 20 + j].fetch_add(1, Ordering::Relaxed);
                                }
                            });
                        }
                    });
                    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
                }
            });
        }
    });
}

#[test]
fn a_panic_comes_through_and_leaves_the_pool_usable() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    for threads in [1, 4] {
        set_num_threads(threads);
        let run = || parallel_for(100, 1, |range| assert!(range.start != 57, "range 57"));
        let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>().copied(), Some("range 57"));
        assert_eq!(ranges(100, 10).len(), 10);
    }
}

/// A child of `fork` has none of its parent's threads.
#[cfg(unix)]
#[test]
fn after_a_fork_the_child_has_a_pool_of_its_own() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
        fn alarm(seconds: u32) -> u32;
        fn _exit(status: i32) -> !;
    }
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    set_num_threads(4);
    assert_eq!(ranges(1000, 1).len(), 500);
    // SAFETY: the child does nothing but the loop, and leaves without unwinding; an alarm ends it if it hangs.
    let status = unsafe {
        let child = fork();
        if child == 0 {
            alarm(20);
            let sum = AtomicU32::new(0);
            parallel_for(1000, 1, |range| {
                std::thread::sleep(std::time::Duration::from_micros(50));
                sum.fetch_add(range.len() as u32, Ordering::Relaxed);
            });
            _exit((sum.into_inner() != 1000) as i32);
        }
        let mut status = -1;
        assert_eq!(waitpid(child, &mut status, 0), child);
        status
    };
    assert_eq!(status, 0);
}

#[test]
fn loops_in_quick_succession_cover_each_index_once() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let counts: Vec<_> = (0..3).map(|_| (0..64).map(|_| AtomicU32::new(0)).collect::<Vec<_>>()).collect();
    std::thread::scope(|scope| {
        for counts in &counts {
            scope.spawn(move || {
                for round in 0..2000 {
                    if round % 500 == 0 {
                        set_num_threads(1 + round / 500);
                    }
                    if round % 700 == 0 {
                        // Workers go to sleep meanwhile.
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                    parallel_for(64, 4, |range| {
                        for i in range {
                            counts[i].fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
        }
    });
    set_num_threads(0);
    assert!(counts.iter().flatten().all(|count| count.load(Ordering::Relaxed) == 2000));
}

mod teams {
    //! Loops on the threads of another library.

    use super::*;
    use minitensor_kernels::team::{Team, enter};

    /// A team with a new thread for each call.
    fn threads(n: usize, f: &(dyn Fn(usize) + Sync)) -> bool {
        std::thread::scope(|scope| {
            for k in 1..n {
                scope.spawn(move || f(k));
            }
            f(0);
        });
        true
    }

    /// A team whose library is within a loop of its own.
    fn alone(n: usize, f: &(dyn Fn(usize) + Sync)) -> bool {
        (0..n).for_each(f);
        true
    }

    /// A team whose library does nothing but report success.
    fn failing(_: usize, _: &(dyn Fn(usize) + Sync)) -> bool {
        true
    }

    /// A team without threads, as in the child of a fork.
    fn absent(_: usize, _: &(dyn Fn(usize) + Sync)) -> bool {
        false
    }

    const TEAMS: [Team; 4] = [threads, alone, failing, absent];

    #[test]
    fn every_team_covers_each_index_once() {
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
        set_num_threads(4);
        let alone = ranges(1000, 3);
        for team in TEAMS {
            let _entered = enter(team);
            assert_eq!(ranges(1000, 3), alone);
            let count = AtomicU32::new(0);
            parallel_for(20, 1, |outer| {
                parallel_for(20 * outer.len(), 1, |inner| {
                    count.fetch_add(inner.len() as u32, Ordering::Relaxed);
                });
            });
            assert_eq!(count.into_inner(), 400);
        }
    }

    #[test]
    fn a_panic_on_a_thread_of_a_team_comes_through() {
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
        set_num_threads(4);
        for team in TEAMS {
            let _entered = enter(team);
            let run = || parallel_for(100, 1, |range| assert!(range.start != 57, "range 57"));
            let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
            assert_eq!(panic.downcast_ref::<&str>().copied(), Some("range 57"));
        }
    }

    /// The number of loops that the counting team has run.
    static LOOPS: AtomicU32 = AtomicU32::new(0);

    fn counting(n: usize, f: &(dyn Fn(usize) + Sync)) -> bool {
        LOOPS.fetch_add(1, Ordering::Relaxed);
        threads(n, f)
    }

    #[test]
    fn a_team_runs_the_loops_of_its_thread_until_it_is_left() {
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
        set_num_threads(4);
        {
            let _outer = enter(counting);
            {
                let _inner = enter(threads);
                parallel_for(100, 1, |_| {});
            }
            assert_eq!(LOOPS.load(Ordering::Relaxed), 0);
            parallel_for(100, 1, |_| {});
            std::thread::scope(|scope| scope.spawn(|| parallel_for(100, 1, |_| {})).join()).unwrap();
        }
        parallel_for(100, 1, |_| {});
        assert_eq!(LOOPS.load(Ordering::Relaxed), 1);
    }
}
