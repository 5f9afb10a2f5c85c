//! Matrix products compared with three nested loops.

mod lcg;

use half::bf16;
use lcg::Lcg;
use minitensor_kernels::simd::{Level, set_level};
use minitensor_kernels::threads::set_num_threads;
use minitensor_kernels::{Complex, Machine, Num, matmul, matmul_in_parts, matmul_of_pairs};
use ndarray::{ArrayView2, ArrayViewMut2, Axis, ShapeBuilder};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The strides of a matrix with the given number of rows and columns.
type Layout = fn(usize, usize) -> (isize, isize);

/// Row-major, column-major, and with gaps.
const LAYOUTS: [Layout; 3] = [|_, n| (n as isize, 1), |m, _| (1, m as isize), |_, n| (2 * n as isize + 1, 2)];

/// The matrix whose first element is at `start`, with strides that may be zero or negative.
fn view<T>(elements: &[T], start: usize, shape: (usize, usize), strides: (isize, isize)) -> ArrayView2<'_, T> {
    let (sizes, strides) = ([shape.0, shape.1], [strides.0, strides.1]);
    let before = |d: usize| (-strides[d]).max(0) as usize * sizes[d].saturating_sub(1);
    let layout = shape.strides((strides[0].unsigned_abs(), strides[1].unsigned_abs()));
    let mut view =
        ArrayView2::from_shape(layout, &elements[start - before(0) - before(1)..]).expect("room for the layout");
    (0..2).filter(|d| strides[*d] < 0).for_each(|d| view.invert_axis(Axis(d)));
    view
}

fn check<T: Machine + Num>(random: &mut Lcg, (m, n, k): (usize, usize, usize), element: fn(u64) -> T) {
    let mut matrix = |rows: usize, columns: usize| -> Vec<T> {
        (0..(2 * rows + 2) * (columns + 2) + 2).map(|_| element(random.next())).collect()
    };
    let (a, b) = (matrix(m, k), matrix(k, n));
    let at = |v: &[T], i: usize, j: usize, (rows, columns): (isize, isize)| {
        v[(i as isize * rows + j as isize * columns) as usize]
    };
    for layout_a in LAYOUTS {
        for layout_b in LAYOUTS {
            for layout_c in LAYOUTS {
                let (la, lb, lc) = (layout_a(m, k), layout_b(k, n), layout_c(m, n));
                let (a_view, b_view) = (view(&a, 0, (m, k), la), view(&b, 0, (k, n), lb));
                let before = matrix(m, n);
                let mut c = before.clone();
                let out = ArrayViewMut2::from_shape((m, n).strides((lc.0 as usize, lc.1 as usize)), &mut c);
                matmul(a_view, b_view, out.expect("room for the layout"));
                let mut want = before;
                for i in 0..m {
                    for j in 0..n {
                        let mut sum = T::zero();
                        for p in 0..k {
                            sum += at(&a, i, p, la) * at(&b, p, j, lb);
                        }
                        want[(i as isize * lc.0 + j as isize * lc.1) as usize] = sum;
                    }
                }
                assert!(c == want, "{m}×{k} by {k}×{n}, strides {la:?} {lb:?} {lc:?}");
                if lc == (n as isize, 1)
                    && let Some(parts) = from_parts(a_view, b_view)
                {
                    assert!(c[..m * n] == parts, "{m}×{k} by {k}×{n} in parts, strides {la:?} {lb:?}");
                }
            }
        }
    }
}

/// A lock: only one test at a time sets the level or the number of threads.
fn alone() -> MutexGuard<'static, ()> {
    static SETTINGS: Mutex<()> = Mutex::new(());
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Small integers, so that sums are exact in every order.
fn small(x: u64) -> i8 {
    (x >> 20) as i8 % 8
}

#[test]
fn products_agree_with_nested_loops_at_every_size_type_and_layout() {
    let mut random = Lcg(9);
    for size in
        [(0, 3, 2), (3, 0, 2), (3, 2, 0), (20, 30, 0), (1, 1, 1), (3, 5, 2), (8, 8, 8), (9, 11, 70), (33, 17, 129)]
    {
        check::<f32>(&mut random, size, |x| small(x) as f32);
        check::<f64>(&mut random, size, |x| small(x) as f64);
        check::<Complex<f32>>(&mut random, size, |x| Complex::new(small(x) as f32, small(x >> 9) as f32));
        check::<Complex<f64>>(&mut random, size, |x| Complex::new(small(x) as f64, small(x >> 9) as f64));
        check::<i32>(&mut random, size, |x| x as i32);
        check::<u8>(&mut random, size, |x| (x >> 7) as u8);
        check::<i64>(&mut random, size, |x| x as i64);
    }
    for size in [(1, 700, 40), (700, 1, 40), (1, 1, 2000)] {
        check::<f32>(&mut random, size, |x| small(x) as f32);
        check::<i16>(&mut random, size, |x| x as i16);
    }
}

#[test]
fn products_of_floats_are_right_at_every_level_and_at_the_edges_of_tiles_and_blocks() {
    let (_settings, mut random) = (alone(), Lcg(11));
    let mut sizes: Vec<_> =
        (0..60).map(|_| (1 + random.below(70), 1 + random.below(70), 1 + random.below(70))).collect();
    sizes.extend((1..=14).map(|m| (m, 17 - m, 40)));
    sizes.extend((1..=34).map(|n| (7, n, 19)));
    sizes.extend([
        (13, 16, 511),
        (13, 33, 512),
        (14, 17, 513),
        (70, 40, 1030),
        (130, 33, 600),
        (150, 150, 80),
        (3, 2100, 9),
        (9, 100, 1),
        (30, 131, 2),
    ]);
    for level in Level::ALL {
        set_level(level);
        for size in sizes.iter().copied() {
            check::<f32>(&mut random, size, |x| small(x) as f32);
            check::<f64>(&mut random, size, |x| small(x) as f64);
        }
    }
}

/// The product, put together from its parts. `None` if it is computed as a whole.
fn from_parts<T: Machine + Num>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>) -> Option<Vec<T>> {
    let n = b.ncols();
    let elements = Mutex::new(vec![None; a.nrows() * n]);
    let is_visited = matmul_in_parts(a, b, &|[row, column], part| {
        let mut elements = elements.lock().unwrap_or_else(PoisonError::into_inner);
        for ((i, j), x) in part.indexed_iter() {
            let before = elements[(row + i) * n + column + j].replace(*x);
            assert!(before.is_none(), "element ({}, {}) is in two parts", row + i, column + j);
        }
    });
    let elements = elements.into_inner().unwrap_or_else(PoisonError::into_inner);
    is_visited.then(|| elements.into_iter().map(|x| x.expect("each element is in a part")).collect())
}

/// The product of matrices with given strides; the first elements are far from both ends of the buffers. Its parts have the same
/// elements.
fn product<T: Machine + Num>(
    (m, n, k): (usize, usize, usize),
    (a, la): (&[T], (isize, isize)),
    (b, lb): (&[T], (isize, isize)),
) -> Vec<T> {
    let mut c = vec![T::zero(); m * n];
    let out = ArrayViewMut2::from_shape((m, n), &mut c).expect("as many elements");
    let (a, b) = (view(a, a.len() / 2, (m, k), la), view(b, b.len() / 2, (k, n), lb));
    matmul(a, b, out);
    // As texts: NaN is not equal to itself.
    let text = |elements: &[T]| format!("{elements:?}");
    let is_same = from_parts(a, b).is_none_or(|parts| parts == c || text(&parts) == text(&c));
    assert!(is_same, "{m}×{k} by {k}×{n} in parts, strides {la:?} {lb:?}");
    c
}

#[test]
fn strides_may_be_zero_or_negative() {
    let mut random = Lcg(12);
    let numbers: Vec<f32> = (0..2 * 60 * 60).map(|_| small(random.next()) as f32).collect();
    let strides = [(0, 0), (0, 1), (1, 0), (-1, -60), (-60, 1), (60, -1), (1, -60), (0, -1), (-2, 0)];
    for size in [(50, 45, 30), (1, 60, 55), (60, 1, 55), (1, 1, 60)] {
        for la in strides {
            for lb in strides {
                let got = product(size, (&numbers, la), (&numbers, lb));
                let at = |(i, j): (usize, usize), (rows, columns): (isize, isize)| {
                    numbers[(3600 + i as isize * rows + j as isize * columns) as usize]
                };
                for (index, got) in got.into_iter().enumerate() {
                    let (i, j) = (index / size.1, index % size.1);
                    let want: f32 = (0..size.2).map(|p| at((i, p), la) * at((p, j), lb)).sum();
                    assert_eq!(got, want, "{size:?}, strides {la:?} {lb:?}, element ({i}, {j})");
                }
            }
        }
    }
}

#[test]
fn sums_of_floats_are_as_exact_as_their_length_allows() {
    let mut random = Lcg(13);
    for (m, n, k) in
        [(33, 47, 29), (20, 30, 1500), (200, 190, 180), (1, 300, 400), (300, 1, 400), (1, 1, 200_000), (5, 1, 70_000)]
    {
        let a: Vec<f32> = (0..2 * m * k).map(|_| random.unit() as f32).collect();
        let b: Vec<f32> = (0..2 * k * n).map(|_| random.unit() as f32).collect();
        for (la, lb) in [((k, 1), (n, 1)), ((1, m), (n, 1)), ((k, 1), (1, k)), ((1, m), (1, k))] {
            let strides = |(rows, columns): (usize, usize)| (rows as isize, columns as isize);
            let got = product((m, n, k), (&a, strides(la)), (&b, strides(lb)));
            for (index, got) in got.into_iter().enumerate() {
                let (i, j) = (index / n, index % n);
                let (mut want, mut most) = (0.0, 0.0);
                for p in 0..k {
                    let x = a[m * k + i * la.0 + p * la.1] as f64 * b[k * n + p * lb.0 + j * lb.1] as f64;
                    (want, most) = (want + x, most + x.abs());
                }
                assert!((got as f64 - want).abs() <= 1e-6 * most, "{m}×{k} by {k}×{n}: {got} for {want}");
            }
        }
    }
}

#[test]
fn threads_change_no_bit() {
    let (_settings, mut random) = (alone(), Lcg(14));
    set_level(Level::Avx512);
    let sizes = [
        (300, 280, 700),
        (96, 100, 110),
        (256, 256, 256),
        (8, 3000, 130),
        (3000, 8, 130),
        (64, 700, 600),
        (2000, 40, 30),
        (40, 2000, 2),
        (1, 4000, 300),
        (4000, 1, 300),
        (1, 1, 400_000),
        (3, 1, 200_000),
        (1, 40, 100_000),
    ];
    for (m, n, k) in sizes {
        let a: Vec<f32> = (0..2 * m * k).map(|_| random.unit() as f32).collect();
        let b: Vec<f32> = (0..2 * k * n).map(|_| random.unit() as f32).collect();
        for (la, lb) in [((k, 1), (n, 1)), ((1, m), (n, 1)), ((k, 1), (1, k))] {
            let of = |threads| {
                set_num_threads(threads);
                let strides = |(rows, columns): (usize, usize)| (rows as isize, columns as isize);
                product((m, n, k), (&a, strides(la)), (&b, strides(lb)))
            };
            let one = of(1);
            for threads in [2, 7] {
                assert!(of(threads) == one, "{m}×{k} by {k}×{n} on {threads} threads");
            }
        }
    }
    set_num_threads(0);
}

#[test]
fn zero_times_nan_or_infinity_is_nan_and_stays_where_it_belongs() {
    for (m, n, k) in [(7, 19, 9), (50, 50, 50), (1, 33, 40), (33, 1, 40), (40, 3, 600)] {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut b = vec![1.0; 2 * k * n];
            b[k * n + (k - 1) * n + n / 2] = bad;
            let got = product((m, n, k), (&vec![0.0; 2 * m * k], (k as isize, 1)), (&b, (n as isize, 1)));
            for (index, x) in got.into_iter().enumerate() {
                assert!(if index % n == n / 2 { x.is_nan() } else { x == 0.0 }, "{m}×{k} by {k}×{n}: {x} at {index}");
            }
        }
    }
}

#[test]
fn products_large_enough_for_threads_are_right() {
    let mut random = Lcg(10);
    check::<f32>(&mut random, (130, 120, 110), |x| small(x) as f32);
    check::<i32>(&mut random, (130, 120, 110), |x| x as i32);
}

#[test]
fn products_in_parts_are_computed_for_matrices_of_floats() {
    let (_settings, ones) = (alone(), vec![1.0_f32; 1 << 20]);
    let is_in_parts = |m: usize, n: usize, k: usize| {
        let at = |rows, columns: usize| view(&ones, 0, (rows, columns), (columns as isize, 1));
        from_parts(at(m, k), at(k, n)).is_some()
    };
    let with_parts = [(128, 256, 784), (1000, 900, 64), (7, 19, 9), (100, 4000, 8), (4000, 100, 8), (20, 20, 20_000)];
    for (m, n, k) in with_parts {
        assert!(is_in_parts(m, n, k), "{m}×{k} by {k}×{n}");
    }
    for (m, n, k) in [(1, 900, 64), (900, 1, 64), (5, 5, 5), (1000, 900, 1)] {
        assert!(!is_in_parts(m, n, k), "{m}×{k} by {k}×{n}");
    }
}

#[test]
fn products_of_pairs_are_exact_where_sums_are_and_refuse_small_numbers() {
    let _alone = alone();
    let mut random = Lcg(23);
    for threads in [1, 3] {
        set_num_threads(threads);
        for (m, n, k) in [(8, 8, 8), (12, 32, 64), (13, 33, 65), (50, 47, 9), (100, 257, 300), (33, 8, 1031)] {
            let mut matrix = |rows: usize, columns: usize| -> Vec<bf16> {
                let n = (2 * rows + 2) * (columns + 2) + 2;
                (0..n).map(|_| bf16::from_f32((random.next() % 17) as f32 - 8.0)).collect()
            };
            let (mut a, b) = (matrix(m, k), matrix(k, n));
            for (layout_a, layout_b, layout_c) in
                LAYOUTS.iter().flat_map(|a| LAYOUTS.iter().flat_map(move |b| LAYOUTS.iter().map(move |c| (a, b, c))))
            {
                for start in [0, 1] {
                    let mut c = vec![7.0f32; (2 * m + 2) * (n + 2) + 2];
                    let run = |a: &[bf16], c: &mut [f32]| {
                        let layout = |f: &Layout, rows, columns| {
                            let (r, c) = f(rows, columns);
                            (rows, columns).strides((r as usize, c as usize))
                        };
                        let view_c = ArrayViewMut2::from_shape(layout(layout_c, m, n), c).expect("room");
                        matmul_of_pairs(
                            view(a, start, (m, k), layout_a(m, k)),
                            view(&b, start, (k, n), layout_b(k, n)),
                            view_c,
                        )
                    };
                    if !run(&a, &mut c) {
                        // The CPU or the level of this run lacks the instructions.
                        continue;
                    }
                    let (x, y) = (view(&a, start, (m, k), layout_a(m, k)), view(&b, start, (k, n), layout_b(k, n)));
                    let (rows, columns) = layout_c(m, n);
                    for i in 0..m {
                        for j in 0..n {
                            let sum: f32 = (0..k).map(|p| x[(i, p)].to_f32() * y[(p, j)].to_f32()).sum();
                            let got = c[i * rows as usize + j * columns as usize];
                            assert_eq!(got, sum, "{i} {j} of {m} {n} {k}");
                        }
                    }
                    let last =
                        start + ((m - 1) as isize * layout_a(m, k).0 + (k - 1) as isize * layout_a(m, k).1) as usize;
                    let before = std::mem::replace(&mut a[last], bf16::from_bits(0x8001));
                    assert!(!run(&a, &mut c), "a subnormal number");
                    // 2⁻¹¹² times ±1 to ±8 or 0.
                    a[last] = bf16::from_f32(2f32.powi(-112));
                    assert!(!run(&a, &mut c), "a product that is too small");
                    a[last] = bf16::from_f32(2f32.powi(-110));
                    assert!(run(&a, &mut c), "a product that is large enough");
                    a[last] = before;
                }
            }
        }
    }
    set_num_threads(2);
}
