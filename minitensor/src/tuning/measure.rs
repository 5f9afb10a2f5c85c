//! Measures candidates.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::Values;
use crate::error::Result;

/// The number of times that each candidate is run.
const ROUNDS: usize = 3;
/// No further round begins after this time.
const ENOUGH: Duration = Duration::from_secs(1);
/// No further candidate is tried after this time.
const TOO_LONG: Duration = Duration::from_secs(10);

/// All combinations of the candidates of some attributes.
pub struct Candidates(pub Vec<&'static [i64]>);

impl Candidates {
    /// The combinations; the last attribute changes fastest.
    pub fn combinations(&self) -> Vec<Values> {
        self.0.iter().fold(vec![Values::new()], |all, candidates| {
            let longer =
                |values: &Values| candidates.iter().map(|v| values.iter().chain([v]).copied().collect()).collect();
            all.iter().flat_map(|values| -> Vec<Values> { longer(values) }).collect()
        })
    }

    /// The first candidate of each.
    pub fn first(&self) -> Values {
        self.0.iter().map(|candidates| candidates[0]).collect()
    }

    /// Whether each value is a candidate.
    pub fn admit(&self, values: &[i64]) -> bool {
        self.0.len() == values.len() && self.0.iter().zip(values).all(|(candidates, v)| candidates.contains(v))
    }
}

/// The process in which a thread measures; 0 for none.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Only one thread of a process measures at a time, because threads would disturb each other.
struct Turn;

impl Turn {
    /// `None` if another thread measures, or this one does already: a measured op may call another.
    fn take() -> Option<Turn> {
        // A child of a fork does not have the thread that measured in its parent.
        let (id, before) = (std::process::id(), PROCESS.load(Ordering::Relaxed));
        let is_free = before != id;
        let taken = is_free && PROCESS.compare_exchange(before, id, Ordering::Acquire, Ordering::Relaxed).is_ok();
        taken.then(|| Turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        PROCESS.store(0, Ordering::Release);
    }
}

/// The values with the smallest time of several runs; the first of equally fast ones. `now` is the time since any fixed moment. `None` if
/// another thread measures.
pub fn fastest(
    combinations: &[Values],
    mut run: impl FnMut(&Values) -> Result<()>,
    now: impl Fn() -> Duration,
) -> Result<Option<Values>> {
    let Some(_turn) = Turn::take() else { return Ok(None) };
    let begin = now();
    // The first run reads code and data into caches.
    combinations.first().map_or(Ok(()), &mut run)?;
    let mut times = vec![Duration::MAX; combinations.len()];
    for round in 0..ROUNDS {
        if round > 0 && now().saturating_sub(begin) > ENOUGH {
            break;
        }
        for (values, time) in combinations.iter().zip(&mut times) {
            let before = now();
            if before.saturating_sub(begin) > TOO_LONG {
                break;
            }
            run(values)?;
            *time = (*time).min(now().saturating_sub(before));
        }
    }
    Ok(combinations.iter().zip(times).min_by_key(|(_, time)| *time).map(|(values, _)| values.clone()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::error::Error;

    /// Measures combinations of which each takes the given times, one after the other.
    fn measured(times: &[(i64, &[u64])]) -> (Option<Values>, usize) {
        let (clock, runs) = (Cell::new(0), Cell::new(0));
        let combinations: Vec<Values> = times.iter().map(|(value, _)| Values::from_slice(&[*value])).collect();
        let mut counts = vec![0; times.len()];
        let run = |values: &Values| {
            let k = times.iter().position(|(value, _)| *value == values[0]).expect("a candidate");
            let of = times[k].1;
            clock.set(clock.get() + of[counts[k] % of.len()]);
            counts[k] += 1;
            runs.set(runs.get() + 1);
            Ok(())
        };
        let best = fastest(&combinations, run, || Duration::from_micros(clock.get())).expect("no run fails");
        (best, runs.get())
    }

    /// One test, because only one thread of a process measures at a time.
    #[test]
    fn the_smallest_time_wins() {
        let best = |times: &[(i64, &[u64])]| measured(times).0.expect("nobody else measures")[0];
        assert_eq!(best(&[(16, &[30]), (32, &[10]), (64, &[20])]), 32);
        // A slow first run is not measured, and one disturbed run does not count.
        assert_eq!(best(&[(16, &[900, 10, 10, 10]), (32, &[20])]), 16);
        assert_eq!(best(&[(16, &[20]), (32, &[900, 10, 900])]), 32);
        // Of equal times, the first.
        assert_eq!(best(&[(16, &[10]), (32, &[10])]), 16);
        // Slow calls run once for each candidate, and once before.
        assert_eq!(measured(&[(16, &[800_000]), (32, &[700_000])]), (Some(Values::from_slice(&[32])), 3));
        assert_eq!(measured(&[(16, &[1]), (32, &[2])]).1, 7);
        // Very slow calls do not run for every candidate.
        let slow: &[u64] = &[6_000_000];
        assert_eq!(measured(&[(16, slow), (32, &[5_000_000]), (64, &[1])]), (Some(Values::from_slice(&[16])), 2));

        let nested = || fastest(&[Values::from_slice(&[1])], |_| Ok(()), || Duration::ZERO);
        let outer = |_: &Values| match nested() {
            Ok(None) => Ok(()),
            _ => Err(Error::runtime("two measurements at a time")),
        };
        assert!(fastest(&[Values::from_slice(&[1])], outer, || Duration::ZERO).is_ok());
        let failing = |_: &Values| Err(Error::runtime("interrupted"));
        assert!(fastest(&[Values::from_slice(&[1])], failing, || Duration::ZERO).is_err());
        assert!(nested().is_ok_and(|best| best.is_some()), "an error ends the turn");
    }

    #[test]
    fn combinations_are_all_pairs() {
        let candidates = Candidates(vec![&[1, 2], &[7, 8]]);
        let all: Vec<Vec<i64>> = candidates.combinations().iter().map(|v| v.to_vec()).collect();
        assert_eq!(all, [[1, 7], [1, 8], [2, 7], [2, 8]]);
        assert_eq!(candidates.first(), candidates.combinations()[0]);
        assert!(candidates.admit(&[2, 7]));
        assert!(!candidates.admit(&[7, 2]) && !candidates.admit(&[1]) && !candidates.admit(&[]));
    }
}
