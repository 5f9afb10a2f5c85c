//! Matrix products against three nested loops.

mod lcg;

use lcg::Lcg;
use minitensor_kernels::{Complex, Machine, Num, matmul};

/// The strides of a matrix of so many rows and columns.
type Layout = fn(usize, usize) -> (isize, isize);

/// Row-major, column-major, and with gaps.
const LAYOUTS: [Layout; 3] = [|_, n| (n as isize, 1), |m, _| (1, m as isize), |_, n| (2 * n as isize + 1, 2)];

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
                let before = matrix(m, n);
                let mut c = before.clone();
                // SAFETY: every matrix has room for its layout.
                unsafe { matmul(m, n, k, a.as_ptr(), la.0, la.1, b.as_ptr(), lb.0, lb.1, c.as_mut_ptr(), lc.0, lc.1) };
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
            }
        }
    }
}

/// Small whole numbers, so that sums are exact in every order.
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
fn products_large_enough_for_threads_are_right() {
    let mut random = Lcg(10);
    check::<f32>(&mut random, (130, 120, 110), |x| small(x) as f32);
    check::<i32>(&mut random, (130, 120, 110), |x| x as i32);
}
