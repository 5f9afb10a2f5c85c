//! Rows of integers against loops over Rust's integers, and against checksums that others computed.

use minitensor::prelude::*;
use minitensor_ops as _;

/// Adler-32 (RFC 1950): the sum of the bytes, and the sum of those sums, both modulo 65521.
#[custom_op(
    name = "integer_rows::adler32",
    shape = (data: [.., n]) -> [..],
    dtype = (data: R) -> (out: u32) where R: u8,
)]
fn adler32<R: IntRow>(data: R) -> R {
    let sum = 1 + data.sum();
    let of_sums = data.count() + (data * (data.count() - data.position())).sum();
    of_sums.remainder(65521) << 16 | sum.remainder(65521)
}

/// How often the element and those before it are equal.
#[custom_op(name = "integer_rows::run", shape = (x: [.., n]) -> [.., n])]
fn run<R: IntRow>(x: R) -> R {
    let is_new = x.position() == 0 || x != x.shift(1);
    let start = if is_new { x.position() } else { 0 };
    1 + x.position() - start.cummax()
}

/// For each position, the number of elements that are equal to it.
#[custom_op(name = "integer_rows::counts", shape = (x: [.., n]) -> [.., n])]
fn counts<R: IntRow>(x: R) -> R {
    R::one().put(x)
}

/// Several numbers for each row, a mask and a position.
#[custom_op(
    name = "integer_rows::numbers",
    shape = (x: [.., n], by: [..], at: [..]) -> (sum: [..], product: [..], top: [..], bits: [.., n], above: [.., n], first: [..], read: [..], least: [.., n], even: [..]),
    dtype = (x: R, by: R, at: i64) -> (sum: i64, product: R, top: R, bits: R, above: bool, first: i64, read: R, least: R, even: bool),
)]
#[allow(clippy::type_complexity)]
fn numbers<R: IntRow>(x: R, by: R, at: R::Index) -> (R, R, R, R, R::Mask, R::Index, R, R, R::Mask) {
    let above = x > by;
    (x.sum(), x.prod(), x.max(), x ^ by, above, x.argmax().to_index(), x.at(at), x.cummin(), R::all(x & 1 == 0))
}

fn error(result: Result<impl Sized>) -> String {
    result.err().map_or_else(String::new, |e| e.to_string())
}

/// Integers from −60 to 60 that do not repeat soon.
fn sample(count: usize) -> Vec<i64> {
    (0..count as i64).map(|i| (i * i * 7 + i * 13) % 121 - 60).collect()
}

#[test]
fn checksums_are_those_of_zlib() -> Result<()> {
    // `zlib.adler32` of Python for the word, for zeros, and for the bytes 0 to 255 repeated to 10,000 bytes.
    let bytes: Vec<u8> = (0..10_000).map(|i| i as u8).collect();
    for (data, expected) in [(b"Wikipedia".to_vec(), 0x11E6_0398_u32), (vec![0; 7], 0x0007_0001), (bytes, 0x7FFE_6E16)]
    {
        let n = data.len();
        let out = adler32::call(&Tensor::from_vec(data, [n])?)?;
        assert_eq!((out.dtype(), out.to_vec::<u32>()?), (DType::U32, vec![expected]));
    }
    Ok(())
}

#[test]
fn rows_are_those_of_loops_for_every_dtype_length_and_layout() -> Result<()> {
    for dtype in [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64] {
        for (rows, n) in [(1, 1), (3, 2), (5, 31), (2, 64), (130, 20), (3, 300), (1, 70_000)] {
            let offset = if DType::integer_range(dtype).contains(&-1) { 0 } else { 60 };
            let of_rows: Vec<i64> = sample(rows * n).iter().map(|x| x + offset).collect();
            let x = Tensor::from_vec(of_rows.clone(), [rows, n])?;
            let across = Tensor::from_vec(
                (0..rows * n).map(|k| of_rows[k % rows * n + k / rows]).collect::<Vec<_>>(),
                [n, rows],
            )?;
            let by: Vec<i64> = (0..rows as i64).map(|r| r % 9 + 20).collect();
            let at: Vec<i64> = (0..rows).map(|r| (r * 5 % n) as i64).collect();
            let (by_t, at_t) =
                (Tensor::from_vec(by.clone(), [rows])?.cast(dtype)?, Tensor::from_vec(at.clone(), [rows])?);
            for x in [x.cast(dtype)?, across.cast(dtype)?.permute_view(&[1, 0])?] {
                let results = numbers::call(&x, &by_t, &at_t)?;
                let wrapped = |values: Vec<i64>, shape: &[usize]| -> Result<Vec<i64>> {
                    Tensor::from_vec(values, shape.to_vec())?.cast(dtype)?.cast(DType::I64)?.to_vec()
                };
                let row = |r: usize| &of_rows[r * n..][..n];
                let of_row = |f: &dyn Fn(&[i64]) -> i64| (0..rows).map(|r| f(row(r))).collect::<Vec<_>>();
                let ours = |k: usize| -> Result<Vec<i64>> { results[k].cast(DType::I64)?.to_vec() };
                assert_eq!(ours(0)?, of_row(&|x| x.iter().sum()), "sum of {dtype}, {rows} x {n}");
                let product = of_row(&|x| x.iter().fold(1i64, |p, x| p.wrapping_mul(*x)));
                assert_eq!(ours(1)?, wrapped(product, &[rows])?, "product of {dtype}");
                assert_eq!(ours(2)?, of_row(&|x| *x.iter().max().unwrap_or(&0)));
                let bits = (0..rows).flat_map(|r| row(r).iter().map(|x| x ^ by[r]).collect::<Vec<_>>()).collect();
                assert_eq!(ours(3)?, wrapped(bits, &[rows, n])?, "xor of {dtype}");
                let above: Vec<bool> = (0..rows * n).map(|k| of_rows[k] > by[k / n]).collect();
                assert_eq!(results[4].to_vec::<bool>()?, above);
                let first = of_row(&|x| x.iter().position(|v| Some(v) == x.iter().max()).unwrap_or(0) as i64);
                assert_eq!(results[5].to_vec::<i64>()?, first);
                let read: Vec<i64> = (0..rows).map(|r| row(r)[at[r] as usize]).collect();
                assert_eq!(ours(6)?, read);
                let least = |r: usize| (0..n).map(move |i| row(r)[..=i].iter().min().copied().unwrap_or(0));
                if n < 1000 {
                    assert_eq!(ours(7)?, (0..rows).flat_map(least).collect::<Vec<_>>());
                }
                let even: Vec<bool> = (0..rows).map(|r| row(r).iter().all(|x| x % 2 == 0)).collect();
                assert_eq!(results[8].to_vec::<bool>()?, even);
            }
        }
    }
    Ok(())
}

#[test]
fn positions_in_long_rows_of_small_integers_are_exact() -> Result<()> {
    let n = 70_000;
    let x: Vec<u8> = (0..n).map(|i| if i == 69_000 { 200 } else { (i % 100) as u8 }).collect();
    let of = Tensor::from_vec(x, [n])?;
    let (by, at) = (Tensor::from_vec(vec![0u8], [])?, Tensor::from_vec(vec![69_000_i64], [])?);
    let results = numbers::call(&of, &by, &at)?;
    assert_eq!((results[5].to_vec::<i64>()?, results[6].to_vec::<u8>()?), (vec![69_000], vec![200]));
    Ok(())
}

#[test]
fn the_whole_range_of_64_bits_is_exact() -> Result<()> {
    let x = Tensor::from_vec(vec![u64::MAX, 1 << 63, 3, 0], [4])?;
    let (by, at) = (Tensor::from_vec(vec![1u64 << 63], [])?, Tensor::from_vec(vec![1i64], [])?);
    let results = numbers::call(&x, &by, &at)?;
    assert_eq!(results[2].to_vec::<u64>()?, [u64::MAX]);
    assert_eq!(results[4].to_vec::<bool>()?, [true, false, false, false]);
    assert_eq!(results[7].to_vec::<u64>()?, [u64::MAX, 1 << 63, 3, 0]);
    let x = Tensor::from_vec(vec![0, i64::MIN, i64::MAX, (1 << 53) + 1], [4])?;
    let (by, at) = (Tensor::from_vec(vec![0_i64], [])?, Tensor::from_vec(vec![3_i64], [])?);
    let results = numbers::call(&x, &by, &at)?;
    assert_eq!(results[2].to_vec::<i64>()?, [i64::MAX]);
    assert_eq!(results[6].to_vec::<i64>()?, [(1 << 53) + 1]);
    assert_eq!(results[7].to_vec::<i64>()?, [0, i64::MIN, i64::MIN, i64::MIN]);
    Ok(())
}

#[test]
fn functions_of_the_whole_row_take_integers() -> Result<()> {
    let x = Tensor::from_vec(vec![4_i32, 4, 4, 1, 1, 4, 0, 0], [2, 4])?;
    assert_eq!(run::call(&x)?.to_vec::<i32>()?, [1, 2, 3, 1, 1, 1, 1, 2]);
    let x = Tensor::from_vec(vec![3_u8, 3, 0, 9, 1, 1, 1, 1], [2, 4])?;
    assert_eq!(counts::call(&x)?.to_vec::<u8>()?, [1, 0, 0, 2, 0, 4, 0, 0]);
    Ok(())
}

#[test]
fn an_empty_row_of_integers_has_no_extreme() -> Result<()> {
    let (x, by) = (Tensor::from_vec(Vec::<i32>::new(), [2, 0])?, Tensor::from_vec(vec![1_i32, 2], [2])?);
    let at = Tensor::from_vec(vec![0_i64, 0], [2])?;
    let message = error(numbers::call(&x, &by, &at));
    assert!(
        message.contains(
            "'top' is an integer that depends on the largest or smallest element of a row, but the rows are empty"
        ),
        "{message}"
    );
    /// Numbers that an empty row may not have.
    #[custom_op(name = "integer_rows::top", shape = (x: [.., n]) -> (top: [..], any: [..], sum: [..]))]
    fn top<R: IntRow>(x: R) -> (R, R::Mask, R) {
        (x.max(), R::any(x > 3), x.sum())
    }
    let message = error(top::call(&x));
    assert!(
        message.contains("'top' is an integer that depends on the largest or smallest element of a row"),
        "{message}"
    );
    /// Numbers that an empty row has.
    #[custom_op(name = "integer_rows::any", shape = (x: [.., n]) -> (any: [..], sum: [..]))]
    fn any<R: IntRow>(x: R) -> (R::Mask, R) {
        (R::any(x > 3), x.sum())
    }
    let results = <[Tensor; 2]>::from(any::call(&x)?);
    assert_eq!((results[0].to_vec::<bool>()?, results[1].to_vec::<i32>()?), (vec![false; 2], vec![0; 2]));
    Ok(())
}

#[test]
fn floats_are_refused() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0, 2.0], [2])?;
    let message = error(run::call(&x));
    assert!(message.contains("integer"), "{message}");
    Ok(())
}

#[test]
fn opcheck_accepts_rows_of_integers() -> Result<()> {
    for op in [adler32::op(), run::op(), counts::op(), numbers::op()] {
        minitensor::testing::opcheck(&op, &[]).into_result()?;
    }
    Ok(())
}
