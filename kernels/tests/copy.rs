//! Strided copies compared with a naive copy.

mod lcg;

use lcg::Lcg;
use minitensor_kernels::{Cast, Complex, Truth, copy, copy_plane, f16};

/// Strides that lay the dimensions out in a random order, some backwards, some repeated if `repeat` is true. Also
/// returns the length of the memory and the offset of the first element.
fn layout(random: &mut Lcg, shape: &[usize], repeat: bool) -> (Vec<isize>, usize, usize) {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    for k in (1..order.len()).rev() {
        order.swap(k, random.below(k + 1));
    }
    let (mut strides, mut size, mut start) = (vec![0; shape.len()], 1, 0);
    if random.below(4) == 0 {
        size += random.below(3);
    }
    for k in order {
        if repeat && random.below(6) == 0 {
            continue;
        }
        let n = shape[k].max(1);
        strides[k] = size as isize;
        if random.below(4) == 0 {
            strides[k] = -strides[k];
            start += size * (n - 1);
        }
        size *= n;
        if random.below(4) == 0 {
            size += random.below(5);
        }
    }
    (strides, size, start)
}

/// The offsets of all elements, in row-major order.
fn offsets(shape: &[usize], strides: &[isize]) -> Vec<isize> {
    shape.iter().zip(strides).fold(vec![0], |all, (&n, &stride)| {
        all.iter().flat_map(|offset| (0..n as isize).map(move |i| offset + i * stride)).collect()
    })
}

fn check<A: Cast<B> + Default, B: Copy + PartialEq + Default + Send + Sync + std::fmt::Debug + 'static>(
    random: &mut Lcg,
    shape: &[usize],
    element: impl Fn(u64) -> A,
) {
    let (src_strides, src_size, src_start) = layout(random, shape, true);
    let (dst_strides, dst_size, dst_start) = layout(random, shape, false);
    let src: Vec<A> = (0..src_size).map(|_| element(random.next())).collect();
    let mut want = vec![B::default(); dst_size];
    for (from, to) in offsets(shape, &src_strides).into_iter().zip(offsets(shape, &dst_strides)) {
        want[(dst_start as isize + to) as usize] = src[(src_start as isize + from) as usize].cast();
    }
    let mut got = vec![B::default(); dst_size];
    let (from, to) = (src.as_ptr().wrapping_add(src_start), got.as_mut_ptr().wrapping_add(dst_start));
    // SAFETY: the buffers are as large as the layouts require.
    unsafe { copy(shape, from, &src_strides, to, &dst_strides) };
    assert!(got == want, "shape {shape:?}, strides {src_strides:?} to {dst_strides:?}");
}

#[test]
fn random_layouts_copy_like_a_naive_loop() {
    let mut random = Lcg(7);
    for _ in 0..3000 {
        let shape: Vec<usize> = (0..random.below(6)).map(|_| random.below(7)).collect();
        check::<f32, f32>(&mut random, &shape, |x| x as f32);
        check::<i64, i8>(&mut random, &shape, |x| x as i64);
        check::<f64, f16>(&mut random, &shape, |x| (x % 1000) as f64 / 8.0);
        check::<u8, Truth>(&mut random, &shape, |x| (x >> 20 & 1) as u8);
    }
}

#[test]
fn large_layouts_copy_like_a_naive_loop() {
    let mut random = Lcg(11);
    for shape in [&[300, 333][..], &[70, 3, 65, 33], &[2, 100_003], &[200_000], &[33, 1, 64, 129]] {
        for _ in 0..6 {
            check::<f32, f32>(&mut random, shape, |x| x as f32);
            check::<i32, f64>(&mut random, shape, |x| x as i32 as f64 as i32);
        }
    }
}

#[test]
fn transposes_copy_like_a_naive_loop() {
    let mut random = Lcg(13);
    // Groups of two to four elements; a few more; parts of 128 and of other sizes.
    for (m, n) in [(2, 700), (3, 64), (3, 1001), (4, 200), (7, 300), (16, 17), (127, 129), (130, 400), (513, 260)] {
        for [m, n] in [[m, n], [n, m]] {
            transpose(m, n, 0, || random.next() as u8);
            transpose(m, n, 0, || random.next() as u16);
            transpose(m, n, 3, || random.next() as u32);
            transpose(m, n, 0, || random.next());
            transpose(m, n, 1, || Complex::new((random.next() % 1000) as f64, 1.0));
        }
    }
    // These bypass the cache.
    transpose(2049, 2050, 0, || random.next() as u32);
    transpose(1030, 2048, 5, || random.next());
}

#[test]
fn a_transpose_is_copied_to_rows_in_reverse() {
    let (m, n) = (40, 33);
    let src: Vec<f32> = (0..m * n).map(|x| x as f32).collect();
    let mut got = vec![0.0; m * n];
    let (last, steps) = (got.as_mut_ptr().wrapping_add((n - 1) * m), [-(m as isize), 1]);
    // SAFETY: the buffers have these sizes.
    unsafe { copy_plane(src.as_ptr(), [1, n as isize], last, steps, [n, m]) };
    assert!((0..m * n).all(|k| got[k] == src[k % m * n + (n - 1 - k / m)]));
}

/// Copies a matrix of `m × n` elements to its transpose, whose rows are `gap` further apart than they need.
fn transpose<T: Cast<T> + Default + PartialEq>(m: usize, n: usize, gap: usize, mut element: impl FnMut() -> T) {
    let step = m + gap;
    let src: Vec<T> = (0..m * n).map(|_| element()).collect();
    let (mut got, mut want) = (vec![T::default(); n * step], vec![T::default(); n * step]);
    for i in 0..n {
        for j in 0..m {
            want[i * step + j] = src[j * n + i];
        }
    }
    // SAFETY: the buffers have these sizes.
    unsafe { copy(&[n, m], src.as_ptr(), &[1, n as isize], got.as_mut_ptr(), &[step as isize, 1]) };
    assert!(got == want, "{m} × {n}, {step} apart");
}

#[test]
fn an_array_without_dimensions_has_one_element_and_an_empty_one_none() {
    let mut out = 0.0;
    // SAFETY: the first copy accesses one element, the second none.
    unsafe {
        copy::<i32, f64>(&[], &5, &[], &mut out, &[]);
        copy::<i32, f64>(&[3, 0], std::ptr::null(), &[0, 1], std::ptr::null_mut(), &[0, 1]);
    }
    assert_eq!(out, 5.0);
}
