//! Every registered op passes opcheck. The arguments are made from the definition, or taken from the table if the
//! definition does not determine them.

// A slice of one owned tensor reads better than `from_ref`.
#![allow(clippy::cloned_ref_to_slice_refs)]

use minitensor::attr::Attr;
use minitensor::op::OpRef;
use minitensor::testing::{Sample, opcheck, samples};
use minitensor::{Tensor, registry};
use minitensor_ops as _;

fn t(values: &[f64], shape: &[usize]) -> Option<Tensor> {
    Some(Tensor::from_vec(values.to_vec(), shape).expect("as many values as the shape says"))
}

fn ramp(shape: &[usize]) -> Option<Tensor> {
    let n = shape.iter().product::<usize>();
    t(&(0..n).map(|i| ((i * 7 + 3) % 11) as f64 * 0.31 - 1.2).collect::<Vec<_>>(), shape)
}

fn int(values: &[i64], shape: &[usize]) -> Option<Tensor> {
    Some(Tensor::from_vec(values.to_vec(), shape).expect("as many values as the shape says"))
}

/// A key of random numbers.
fn key() -> Option<Tensor> {
    Some(Tensor::from_vec(vec![7_u64, 1], [2]).expect("as many values as the shape says"))
}

fn ints(v: &[i64]) -> Attr {
    Attr::Ints(v.to_vec().into())
}

/// Inputs, and attributes by name.
type Arguments = (Vec<Option<Tensor>>, Vec<(&'static str, Attr)>);

/// Arguments for ops whose requirements only the body knows. Omitted attributes keep their defaults.
fn given(name: &str) -> Vec<Arguments> {
    match name {
        "reshape" => vec![(vec![ramp(&[2, 6])], vec![("shape", ints(&[3, -1]))])],
        "permute_dims" => vec![(vec![ramp(&[2, 3, 4])], vec![("axes", ints(&[2, 0, 1]))])],
        "moveaxis" => vec![(vec![ramp(&[2, 3, 4])], vec![("source", Attr::Int(0)), ("destination", Attr::Int(-1))])],
        "expand" => vec![(vec![ramp(&[2, 1])], vec![("shape", ints(&[3, 2, 4]))])],
        "squeeze" => vec![(vec![ramp(&[2, 1, 3])], vec![])],
        "unslice" => vec![(
            vec![ramp(&[2, 2])],
            vec![("shape", ints(&[2, 5])), ("axis", Attr::Int(1)), ("start", Attr::Int(1)), ("step", Attr::Int(2))],
        )],
        "slice" => {
            vec![(vec![ramp(&[4, 3])], vec![("start", Attr::Int(-1)), ("stop", Attr::None), ("step", Attr::Int(-2))])]
        }
        // The second column of two rows of three.
        "region::part" | "region::cleared" => {
            vec![(vec![ramp(&[2, 3])], vec![("region", ints(&[0, 1, 2, 2, 3, 3, 1, 2, 3]))])]
        }
        "region::spread" => vec![(vec![ramp(&[2])], vec![("region", ints(&[0, 1, 2, 2, 3, 3, 1, 2, 3]))])],
        "region::replaced" => {
            vec![(vec![ramp(&[2, 3]), ramp(&[2])], vec![("region", ints(&[0, 1, 2, 2, 3, 3, 1, 2, 3]))])]
        }
        "matmul" => vec![
            (vec![ramp(&[2, 3]), ramp(&[3, 4])], vec![]),
            (vec![ramp(&[3]), ramp(&[3])], vec![]),
            (vec![ramp(&[2, 1, 2, 3]), ramp(&[3, 3, 2])], vec![]),
            (vec![ramp(&[2, 2, 3]), ramp(&[3, 2])], vec![]),
        ],
        "cross_entropy" => vec![(vec![ramp(&[3, 4]), int(&[0, 3, 1], &[3])], vec![])],
        "take" => vec![(vec![ramp(&[2, 4, 3]), int(&[3, -1, 0, 3], &[2, 2])], vec![("axis", Attr::Int(1))])],
        "random::uniform" | "random::normal" => vec![(vec![key()], vec![("shape", ints(&[3, 5]))])],
        "random::integers" => {
            vec![(vec![key()], vec![("low", Attr::Int(-2)), ("high", Attr::Int(3)), ("shape", ints(&[3, 5]))])]
        }
        "random::skip" => vec![(vec![key()], vec![("count", Attr::Int(5))])],
        "indexing::positions" => {
            vec![(vec![ramp(&[3])], vec![("size", Attr::Int(5)), ("dtype", Attr::DType(minitensor::DType::F32))])]
        }
        "random::key" => vec![(vec![ramp(&[3])], vec![("count", Attr::Int(5))])],
        "random::dropout" => vec![(vec![ramp(&[3, 5]), key()], vec![])],
        "embedding" => vec![
            (vec![ramp(&[4, 3]), int(&[3, -1, 0, 3], &[2, 2])], vec![]),
            (vec![ramp(&[2, 1]), int(&[1], &[])], vec![]),
        ],
        "indexing::added_rows" => {
            vec![(vec![ramp(&[2, 2, 3]), int(&[3, -1, 0, 3], &[2, 2])], vec![("shape", ints(&[4, 3]))])]
        }
        "index" => vec![(vec![ramp(&[3, 4]), int(&[0, 2, -1], &[3]), int(&[1, 1, 3], &[3])], vec![])],
        "indexing::wrap" => vec![(vec![int(&[0, -1], &[2])], vec![("size", Attr::Int(4)), ("axis", Attr::Int(0))])],
        "nonzero" => vec![
            (vec![ramp(&[3, 4])], vec![]),
            (vec![int(&[0, 2, 0, 0, 1, 1], &[2, 3])], vec![("size", Attr::Int(2))]),
            (vec![int(&[0, 2, 0, 0, 1, 1], &[2, 3])], vec![("size", Attr::Int(5)), ("fill_value", Attr::Int(-1))]),
        ],
        "row::nonzero" => vec![(
            vec![ramp(&[2, 6])],
            vec![
                ("shape", ints(&[2, 3])),
                ("size", Attr::Int(7)),
                ("rank", Attr::Int(2)),
                ("fill_value", Attr::Int(9)),
            ],
        )],
        "unique_values" | "unique_counts" | "unique_inverse" | "unique_all" => vec![
            (vec![ramp(&[2, 5])], vec![]),
            (vec![ramp(&[2, 5])], vec![("size", Attr::Int(4))]),
            (vec![ramp(&[2, 5])], vec![("size", Attr::Int(13)), ("fill_value", Attr::Float(2.0))]),
            (vec![ramp(&[2, 5])], vec![("size", Attr::Int(13))]),
            (vec![ramp(&[0])], vec![]),
        ],
        "batch_norm" => vec![
            (vec![ramp(&[2, 3, 4]), None, None, ramp(&[3]), ramp(&[3])], vec![]),
            (vec![ramp(&[4, 2]), t(&[0.1, -0.2], &[2]), t(&[0.5, 1.5], &[2]), None, None], vec![]),
        ],
        "instance_norm" => vec![(vec![ramp(&[2, 3, 4]), ramp(&[3]), None], vec![])],
        "group_norm" => vec![(vec![ramp(&[2, 4, 3]), ramp(&[4]), ramp(&[4])], vec![("groups", Attr::Int(2))])],
        "layer_norm" => vec![
            (vec![ramp(&[2, 3, 4]), ramp(&[4]), ramp(&[4])], vec![]),
            (vec![ramp(&[3, 4]), None, ramp(&[4])], vec![]),
            (vec![ramp(&[70]), None, None], vec![]),
        ],
        "row::cross_entropy" => vec![(vec![ramp(&[3, 4]), int(&[0, 3, 1], &[3])], vec![])],
        "concat" => vec![(vec![ramp(&[2, 3]), ramp(&[2, 2])], vec![("axis", Attr::Int(1))])],
        "stack" => vec![(vec![ramp(&[2, 3]), ramp(&[2, 3])], vec![("axis", Attr::Int(-1))])],
        "pad" | "crop" => vec![(vec![ramp(&[3, 4])], vec![("padding", ints(&[1, 0, 2, 1]))])],
        "complex" => vec![(vec![ramp(&[2, 3]), ramp(&[2, 3])], vec![])],
        "imag" | "real" => {
            vec![(vec![Some(ramp(&[2, 3]).expect("a tensor").cast(minitensor::DType::C128).expect("complex"))], vec![])]
        }
        _ if name.contains("conv") || name.contains("pool") || name.contains("fold") || name.contains("window") => {
            windows(name)
        }
        _ => vec![],
    }
}

/// Arguments for ops on windows.
fn windows(name: &str) -> Vec<Arguments> {
    // For each axis: size, windows, taps, stride, dilation, padding.
    let strided = ("windows", ints(&[1, 1, 1, 1, 1, 0, 5, 2, 2, 2, 2, 1, 4, 2, 2, 3, 1, 1]));
    let dense = ("windows", ints(&[1, 1, 1, 1, 1, 0, 5, 2, 2, 1, 1, 1, 4, 2, 2, 1, 2, 1]));
    let small = ("windows", ints(&[1, 1, 1, 1, 1, 0, 3, 2, 2, 1, 1, 1, 3, 2, 2, 1, 2, 1]));
    let with = |sizes: &[(&'static str, i64)], windows: &(&'static str, Attr)| {
        sizes.iter().map(|(n, v)| (*n, Attr::Int(*v))).chain([windows.clone()]).collect::<Vec<_>>()
    };
    let (count, volume, taps) = (("count", 4), ("volume", 20), ("taps", 4));
    let groups = |n: i64| ("groups", n);
    match name {
        "convolution::forward" => vec![
            (vec![ramp(&[2, 4, 20]), ramp(&[2, 2, 4]), ramp(&[2])], with(&[count, groups(2)], &strided)),
            (vec![ramp(&[1, 2, 9]), ramp(&[5, 2, 4]), None], with(&[count, groups(1)], &small)),
        ],
        "convolution::input" => vec![
            (vec![ramp(&[2, 2, 4]), ramp(&[2, 2, 4])], with(&[volume, groups(2)], &strided)),
            (vec![ramp(&[1, 2, 4]), ramp(&[2, 5, 4])], with(&[volume, groups(1)], &strided)),
            (vec![ramp(&[1, 2, 4]), ramp(&[2, 2, 4])], with(&[volume, groups(1)], &dense)),
        ],
        "convolution::weight" => vec![
            (vec![ramp(&[2, 4, 20]), ramp(&[2, 2, 4])], with(&[taps, groups(2)], &strided)),
            (vec![ramp(&[1, 2, 20]), ramp(&[1, 5, 4])], with(&[taps, groups(1)], &dense)),
        ],
        "window::max" => vec![(vec![ramp(&[2, 20])], with(&[taps, count], &strided))],
        "window::unfold" => vec![(vec![ramp(&[2, 1, 20])], with(&[taps, count], &strided))],
        "window::fold" => vec![(vec![ramp(&[2, 8, 4])], with(&[volume, taps], &strided))],
        "window::mean" | "window::spread" => {
            let rows = if name == "window::mean" { ("size", Attr::Int(2)) } else { ("n", Attr::Int(5)) };
            let x = if name == "window::mean" { ramp(&[2, 5, 3]) } else { ramp(&[2, 2, 3]) };
            vec![(vec![x], vec![rows, ("bounds", ints(&[0, 3, 2, 5])), ("counts", ints(&[3, 4]))])]
        }
        "unfold" => vec![(vec![ramp(&[2, 3, 4])], vec![("kernel_size", ints(&[2])), ("padding", ints(&[1, 0]))])],
        "fold" => vec![(
            vec![ramp(&[8, 6])],
            vec![("output_size", ints(&[3, 4])), ("kernel_size", ints(&[2])), ("padding", ints(&[0]))],
        )],
        "conv1d" => vec![(vec![ramp(&[2, 2, 5]), ramp(&[3, 2, 2]), ramp(&[3])], vec![("stride", ints(&[2]))])],
        "conv2d" => vec![(
            vec![ramp(&[1, 2, 4, 3]), ramp(&[2, 1, 2, 2]), ramp(&[2])],
            vec![("groups", Attr::Int(2)), ("padding", ints(&[0, 1]))],
        )],
        "conv3d" => vec![(vec![ramp(&[1, 2, 3, 2]), ramp(&[1, 1, 2, 2, 1]), None], vec![])],
        "conv_transpose1d" => {
            vec![(vec![ramp(&[2, 2, 3]), ramp(&[2, 1, 2]), ramp(&[1])], vec![("stride", ints(&[2]))])]
        }
        "conv_transpose2d" => {
            vec![(vec![ramp(&[2, 2, 3]), ramp(&[2, 1, 2, 2]), ramp(&[2])], vec![("groups", Attr::Int(2))])]
        }
        "conv_transpose3d" => vec![(vec![ramp(&[1, 2, 2, 1]), ramp(&[1, 1, 1, 2, 2]), None], vec![])],
        _ if name.starts_with("adaptive") => vec![(vec![ramp(&[2, 3, 5])], vec![("output_size", ints(&[2]))])],
        _ => {
            let rank = if name.ends_with("3d") { 3 } else { 2 };
            let kernel = if name.ends_with("1d") { vec![2] } else { vec![2; rank] };
            // All elements differ, because a maximum has a kink where two are equal.
            let x = if rank == 3 { ramp(&[2, 2, 2]) } else { ramp(&[2, 5]) };
            vec![(vec![x], vec![("kernel_size", ints(&kernel)), ("stride", ints(&[1])), ("padding", ints(&[1]))])]
        }
    }
}

fn sample(op: &OpRef, inputs: Vec<Option<Tensor>>, named: Vec<(&'static str, Attr)>) -> Sample {
    let value = |i: usize| {
        let attr = &op.attrs[i];
        named.iter().find(|(n, _)| *n == attr.name).map(|(_, v)| v.clone()).or_else(|| attr.default.clone())
    };
    Sample { inputs, attrs: (0..op.attrs.len()).map(|i| value(i).expect("a value or a default")).collect() }
}

#[test]
fn every_registered_op_passes() {
    registry::check().expect("no two ops of one name");
    let mut failures = Vec::new();
    let mut checked = 0;
    for op in registry::list() {
        let table: Vec<Sample> = given(&op.name).into_iter().map(|(i, a)| sample(&op, i, a)).collect();
        let report = opcheck(&op, &table);
        checked += 1;
        if let Err(error) = report.into_result() {
            failures.push(error.message().to_string());
        }
    }
    assert!(failures.is_empty(), "{} of {checked} ops fail:\n{}", failures.len(), failures.join("\n"));
    assert!(checked > 120, "the registry has {checked} ops");
}

#[test]
fn samples_follow_from_a_definition() {
    let op = registry::get("layer_norm").expect("a built-in");
    let made = samples(&op);
    let (given, absent): (Vec<_>, Vec<_>) = made.iter().partition(|s| s.inputs[1].is_some());
    assert!(given.iter().all(|s| s.inputs[1].as_ref().map(Tensor::ndim) == Some(1)) && !given.is_empty());
    assert!(absent.iter().all(|s| s.inputs[2].is_none()) && !absent.is_empty());
}
