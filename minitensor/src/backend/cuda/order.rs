//! Ops that depend on the order of elements in a row: running sums, and sorting.

use super::natives::{Elements, Field, Shared, last, run};
use crate::attr::Attr;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::KernelCall;
use crate::tensor::Tensor;

/// The running sum of a row: that of each 256 elements (Hillis and Steele, 1986), added to the sum of those before.
const RUNNING_SUM: &str = "
    SHARED T part[256];
    T before = 0;
    for (i64 first = 0; first < a.n; first += 256) {
      const i64 at = first + THREAD;
      part[THREAD] = at < a.n ? a.x[row * a.n + at] : (T)0;
      BARRIER();
      for (int distance = 1; distance < 256; distance *= 2) {
        const T other = THREAD >= distance ? part[THREAD - distance] : (T)0;
        BARRIER();
        part[THREAD] = NAMED(T, _add)(part[THREAD], other);
        BARRIER();
      }
      if (at < a.n) a.out[row * a.n + at] = NAMED(T, _add)(before, part[THREAD]);
      before = NAMED(T, _add)(before, part[255]);
      BARRIER();
    }";

/// The kernel of `cumsum`.
pub fn cumsum(call: &KernelCall<'_>) -> Result<()> {
    let (Some(x), Some(out)) = (call.inputs[0], call.outputs[0]) else { return Ok(()) };
    let rows = if x.numel() == 0 { 0 } else { x.numel() / last(x) as usize };
    let fields = [("n", Field::Number(last(x))), ("x", Field::Elements(x))];
    run(call, (Shared::Rows, rows), Elements::Numbers, &fields, out, RUNNING_SUM)
}

/// The ranks of elements, and their places. Rows are extended to a power of two by elements that come last.
const RANKS: &str = "
    const i64 row = i / a.padded, at = i % a.padded;
    a.out[i] = at;
    a.ranks[i] = at < a.n ? NAMED(rank_, T)(a.x[row * a.n + at]) ^ (u64)a.turn : ~0ull;";

/// A step of a bitonic sort (Batcher, 1968). No two keys, a rank and a place, are equal, so the sort is stable.
const STEP: &str = "
    const i64 j = i ^ a.distance;
    if (j < i) continue;
    const int is_after = a.ranks[i] > a.ranks[j] || (a.ranks[i] == a.ranks[j] && a.out[i] > a.out[j]);
    if (is_after != ((i % a.padded & a.block) == 0)) continue;
    const u64 rank = a.ranks[i];
    const i64 place = a.out[i];
    a.ranks[i] = a.ranks[j], a.out[i] = a.out[j];
    a.ranks[j] = rank, a.out[j] = place;";

/// The kernel of `sort` and `topk`: the outputs are the first elements of the order, and their places.
pub fn sort(call: &KernelCall<'_>) -> Result<()> {
    let Some(x) = call.inputs[0] else { return Ok(()) };
    let outputs = [0, 1].map(|k| call.outputs[k]);
    let Some(kept) = outputs.iter().flatten().map(|t| last(t)).next() else { return Ok(()) };
    let n = last(x);
    if x.numel() == 0 || kept == 0 {
        return Ok(());
    }
    let x = &x.contiguous()?;
    // `topk` has no such attribute: the largest elements come first.
    let is_descending = if let Attr::Bool(descending) = call.attrs[0] { descending } else { true };
    let padded = (n as usize).next_power_of_two();
    let all = x.numel() / n as usize * padded;
    let ranks = Tensor::empty([all], DType::U64, x.device())?;
    let places = Tensor::empty([all], DType::I64, x.device())?;
    let number = |n: usize| Field::Number(n as i64);
    let turn = Field::Number(if is_descending { -1 } else { 0 });
    let fields = [
        ("n", Field::Number(n)),
        ("padded", number(padded)),
        ("turn", turn),
        ("x", Field::Elements(x)),
        ("ranks", Field::Words(&ranks)),
    ];
    run(call, (Shared::Elements, all), Elements::Numbers, &fields, &places, RANKS)?;
    let mut block = 2;
    while block <= padded {
        let mut distance = block / 2;
        while distance > 0 {
            // The last block is the whole row, in ascending order.
            let fields = [
                ("padded", number(padded)),
                ("block", number(if block == padded { 0 } else { block })),
                ("distance", number(distance)),
                ("ranks", Field::Words(&ranks)),
            ];
            run(call, (Shared::Elements, all), Elements::Numbers, &fields, &places, STEP)?;
            distance /= 2;
        }
        block *= 2;
    }
    let place = "a.places[i / a.kept * a.padded + i % a.kept]";
    for (k, out) in outputs.into_iter().enumerate().filter_map(|(k, out)| Some((k, out?))) {
        let fields = [
            ("n", Field::Number(n)),
            ("kept", Field::Number(kept)),
            ("padded", number(padded)),
            ("x", Field::Elements(x)),
            ("places", Field::Index(&places)),
        ];
        let body = if k == 0 {
            format!("a.out[i] = a.x[i / a.kept * a.n + {place}];")
        } else {
            format!("a.out[i] = {place};")
        };
        run(call, (Shared::Elements, out.numel()), Elements::Numbers, &fields, out, &body)?;
    }
    Ok(())
}
