"""Rules of `mt.onnx.load` against ONNX Runtime, with random shapes and attributes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

import minitensor as mt

ort = pytest.importorskip("onnxruntime")

ROUNDS = 6


class Sample:
    """Random numbers for a call of an operator."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def i(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def pick(self, *items):
        return items[self.i(0, len(items) - 1)]

    def x(self, *shape, dtype="float32"):
        return self.rng.standard_normal(shape).astype(dtype)

    def ints(self, low, high, *shape, dtype="int64"):
        return self.rng.integers(low, high + 1, shape).astype(dtype)

    def shape(self, rank=None):
        return [self.i(1, 4) for _ in range(self.i(1, 4) if rank is None else rank)]

    def axes(self, rank):
        chosen = self.rng.permutation(rank)[: self.i(1, rank)].tolist()
        return [axis - rank if self.i(0, 1) else axis for axis in chosen]


def shape_of(*sizes):
    return np.array(sizes, dtype="int64")


def conv(s):
    rank, group = s.i(1, 3), s.pick(1, 1, 2)
    kernel = [s.i(1, 3) for _ in range(rank)]
    strides, dilations = [s.i(1, 2) for _ in range(rank)], [s.i(1, 2) for _ in range(rank)]
    image = [s.i(6, 8) for _ in range(rank)]
    inputs = [s.x(2, 2 * group, *image), s.x(3 * group, 2, *kernel)] + ([s.x(3 * group)] if s.i(0, 1) else [])
    attributes = {"strides": strides, "group": group, "dilations": dilations}
    kind = s.pick("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    if kind == "NOTSET":
        return inputs, attributes | {"pads": [s.i(0, 2) for _ in range(2 * rank)]}
    if kind.startswith("SAME"):
        attributes["dilations"] = [1] * rank
    return inputs, attributes | {"auto_pad": kind}


def conv_transpose(s):
    rank, group = s.i(1, 2), s.pick(1, 2)
    strides = [s.i(1, 3) for _ in range(rank)]
    inputs = [s.x(2, 2 * group, *[s.i(2, 4)] * rank), s.x(2 * group, 3, *[s.i(2, 3)] * rank)]
    inputs += [s.x(3 * group)] if s.i(0, 1) else []
    attributes = {"strides": strides, "group": group}
    match s.i(0, 2):
        case 0:
            attributes["pads"] = [s.i(0, 1) for _ in range(2 * rank)]
            attributes["output_padding"] = [s.i(0, stride - 1) for stride in strides]
        case 1:
            attributes["auto_pad"] = s.pick("SAME_UPPER", "SAME_LOWER")
        case _:
            attributes["dilations"] = [s.i(1, 2) for _ in range(rank)]
    return inputs, attributes


def pool(s, **more):
    rank = s.i(1, 3)
    kernel = [s.i(1, 3) for _ in range(rank)]
    attributes = {"kernel_shape": kernel, "strides": [s.i(1, 3) for _ in range(rank)]}
    if s.i(0, 3):
        attributes["pads"] = [s.i(0, k - 1) for k in kernel * 2]
        attributes["ceil_mode"] = s.i(0, 1)
    else:
        attributes["auto_pad"] = s.pick("SAME_UPPER", "SAME_LOWER", "VALID")
    return [s.x(2, 2, *[s.i(4, 8) for _ in range(rank)])], attributes | more


def dilated(s):
    inputs, attributes = pool(s)
    attributes["strides"] = attributes["kernel_shape"] = [2] * (inputs[0].ndim - 2)
    attributes.pop("auto_pad", None)
    attributes["pads"] = [0] * 2 * (inputs[0].ndim - 2)
    return inputs, attributes | {"dilations": [s.i(1, 2) for _ in range(inputs[0].ndim - 2)], "ceil_mode": 0}


def reduction(s):
    x = s.x(*s.shape())
    return [np.abs(x) + 0.5], {"axes": s.axes(x.ndim), "keepdims": s.i(0, 1)}


def reduction_18(s):
    x = s.x(*s.shape())
    return [np.abs(x) + 0.5, np.array(s.axes(x.ndim))], {"keepdims": s.i(0, 1)}


def recurrent(s, gates, biases=2):
    time, batch, size, hidden = s.i(1, 4), s.i(1, 3), s.i(1, 3), s.i(1, 3)
    direction = s.pick("forward", "reverse", "bidirectional")
    count = 2 if direction == "bidirectional" else 1
    inputs = [s.x(time, batch, size), s.x(count, gates * hidden, size), s.x(count, gates * hidden, hidden)]
    inputs.append(s.x(count, biases * gates * hidden) if s.i(0, 1) else None)
    inputs.append(s.ints(1, time, batch, dtype="int32") if s.i(0, 1) else None)
    inputs.append(s.x(count, batch, hidden) if s.i(0, 1) else None)
    return inputs, {"hidden_size": hidden, "direction": direction}


def gru(s):
    inputs, attributes = recurrent(s, 3)
    return inputs, attributes | {"linear_before_reset": s.i(0, 1)}


def lstm(s):
    inputs, attributes = recurrent(s, 4)
    count, hidden, batch = inputs[1].shape[0], attributes["hidden_size"], inputs[0].shape[1]
    inputs.append(s.x(count, batch, hidden) if s.i(0, 1) else None)
    return inputs + ([s.x(count, 3 * hidden)] if s.i(0, 1) else []), attributes


def resize(s):
    mode = s.pick("nearest", "linear", "cubic")
    x = s.x(1, 2, s.i(3, 6), s.i(3, 6))
    coordinates = s.pick("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    sizes = shape_of(1, 2, s.i(2, 9), s.i(2, 9))
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attributes["nearest_mode"] = s.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    return [x, None, None, sizes], attributes


def smooth_resize(s):
    inputs, attributes = resize(s)
    attributes["mode"] = s.pick("linear", "cubic")
    return inputs, attributes | {"antialias": 1, "exclude_outside": s.i(0, 1)}


def grid_sample(s):
    rank = s.i(2, 3)
    mode = s.pick("linear", "nearest", "cubic") if rank == 2 else s.pick("linear", "nearest")
    x, grid = s.x(2, 2, *[s.i(3, 5) for _ in range(rank)]), s.rng.uniform(-1.3, 1.3, (2, *[3] * rank, rank))
    padding = s.pick("zeros", "border", "reflection")
    return [x, grid.astype("float32")], {"mode": mode, "padding_mode": padding, "align_corners": s.i(0, 1)}


def slices(s):
    x = s.x(*[s.i(2, 5) for _ in range(3)])
    axes = s.axes(3)
    starts, ends = (s.ints(-7, 7, len(axes)) for _ in range(2))
    steps = np.array([s.pick(-2, -1, 1, 2) for _ in axes])
    return [x, starts, ends, np.array(axes), steps], {}


def pad(s):
    x = s.x(*[s.i(3, 5) for _ in range(3)])
    mode = s.pick("constant", "reflect", "edge")
    low = -1 if mode == "constant" else 0
    pads = s.ints(low, 2, 6)
    return [x, pads, np.array(1.5, dtype="float32")] if mode == "constant" else [x, pads], {"mode": mode}


def scatter_elements(s):
    x = s.x(4, 5)
    # Each index once, because the order of updates is not defined.
    index = np.stack([s.rng.permutation(4)[:3] for _ in range(5)], 1) - s.pick(0, 4)
    return [x, index, s.x(3, 5)], {"axis": 0, "reduction": s.pick("none", "add", "mul", "max", "min")}


def scatter_nd(s):
    x = s.x(4, 3, 2)
    index = s.rng.permutation(4)[:3].reshape(3, 1)
    return [x, index, s.x(3, 3, 2)], {"reduction": s.pick("none", "add", "mul")}


def quantize(s):
    x = s.x(3, 4) * 3
    dtype = s.pick("uint8", "int8")
    if s.i(0, 1):
        return [x, np.abs(s.x(4)) + 0.1, s.ints(0, 9, 4, dtype=dtype)], {"axis": 1}
    return [x, np.float32(0.1), np.array(3, dtype=dtype)], {}


def dequantize(s):
    dtype = s.pick("uint8", "int8")
    x = s.ints(0, 100, 3, 4, dtype=dtype)
    return [x, np.abs(s.x(3)) + 0.1, s.ints(0, 9, 3, dtype=dtype)], {"axis": s.pick(0, -2)}


def qlinear_conv(s):
    x, w = s.ints(0, 255, 1, 2, 5, 5, dtype="uint8"), s.ints(-100, 100, 3, 2, 3, 3, dtype="int8")
    scales = (np.abs(s.x(3)) * 0.01 + 0.001).astype("float32")
    one = np.float32(0.02)
    zero, zeros = np.array(s.i(100, 150), dtype="uint8"), np.zeros(3, dtype="int8")
    y_zero, bias = np.array(128, dtype="uint8"), s.ints(-99, 99, 3, dtype="int32")
    return [x, one, zero, w, scales, zeros, np.float32(0.1), y_zero, bias], {"pads": [1, 0, 0, 1]}


def qlinear_matmul(s):
    a, b = s.ints(0, 255, 3, 4, dtype="uint8"), s.ints(0, 255, 4, 2, dtype="uint8")
    zeros = [np.array(s.i(100, 150), dtype="uint8") for _ in range(3)]
    return [a, np.float32(0.02), zeros[0], b, np.float32(0.03), zeros[1], np.float32(0.05), zeros[2]], {}


def attention(s):
    heads, group = 2, s.pick(1, 2)
    q, k, v = s.x(2, heads * group, 3, 4), s.x(2, heads, 5, 4), s.x(2, heads, 5, 6)
    mask = s.pick(None, s.x(3, 5), s.ints(0, 1, 3, 5).astype(bool) | np.eye(3, 5, dtype=bool))
    past = [s.x(2, heads, 2, 4), s.x(2, heads, 2, 6)] if mask is None and s.i(0, 1) else []
    return [q, k, v, mask, *past], {"softcap": s.pick(0.0, 2.0), "is_causal": s.i(0, 1)}


def split(s):
    return [s.x(6, 4), shape_of(1, 2, 3)], {"axis": s.pick(0, -2)}


def gemm(s):
    a, b = s.x(3, 4), s.x(4, 2)
    ta, tb = s.i(0, 1), s.i(0, 1)
    c = s.pick(s.x(2), s.x(3, 1), s.x(3, 2))
    return [a.T.copy() if ta else a, b.T.copy() if tb else b, c], {
        "transA": ta,
        "transB": tb,
        "alpha": 0.5,
        "beta": 2.0,
    }


def einsum(s):
    return s.pick(
        ([s.x(2, 3, 4), s.x(2, 4, 5)], {"equation": "bij,bjk->bik"}),
        ([s.x(2, 3, 4), s.x(4, 5)], {"equation": "...ij,jk->...ik"}),
        ([s.x(3, 4), s.x(5, 4)], {"equation": "ij, kj"}),
        ([s.x(3, 3)], {"equation": "ii->i"}),
        ([s.x(2, 3, 4), s.x(3, 4)], {"equation": "...i,...i->..."}),
    )


def nms(s):
    boxes = s.rng.uniform(0, 1, (1, 8, 4)).astype("float32")
    scores = s.rng.uniform(0, 1, (1, 2, 8)).astype("float32")
    return [boxes, scores, shape_of(3), np.float32(0.3), np.float32(0.2)], {"center_point_box": s.i(0, 1)}


def roi_align(s):
    corner = s.rng.uniform(0, 4, (3, 2))
    rois = np.concatenate([corner, corner + s.rng.uniform(1, 4, (3, 2))], 1).astype("float32")
    attributes = {"output_height": 2, "output_width": 3, "sampling_ratio": s.pick(0, 2), "spatial_scale": 0.9}
    coordinates = s.pick("half_pixel", "output_half_pixel")
    return [s.x(2, 2, 8, 8), rois, shape_of(0, 1, 1)], attributes | {"coordinate_transformation_mode": coordinates}


def division(s):
    return [s.ints(-20, 20, 3, 4, dtype="int32"), s.pick(-1, 1) * s.ints(1, 5, 4, dtype="int32")], {}


def loss(s):
    weight = [np.abs(s.x(5))] if s.i(0, 1) else []
    return [s.x(3, 5, 2), s.ints(0, 4, 3, 2), *weight], {"reduction": s.pick("mean", "sum", "none"), "ignore_index": 2}


#: Operators with the opset, and a function that returns inputs and attributes; None is an input that is left out.
SAMPLES = [
    *[("Conv", opset, conv) for opset in (13, 22)],
    *[("ConvTranspose", opset, conv_transpose) for opset in (13,)],
    *[("MaxPool", opset, pool) for opset in (13, 22)],
    ("MaxPool", 13, dilated),
    ("AveragePool", 19, lambda s: pool(s, count_include_pad=s.i(0, 1))),
    ("LpPool", 13, lambda s: ([s.x(1, 2, 6, 6)], {"kernel_shape": [2, 3], "pads": [0, 1, 1, 0], "p": s.i(1, 3)})),
    *[
        (f"Reduce{name}", 13, reduction)
        for name in ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"]
    ],
    *[
        (f"Reduce{name}", 18, reduction_18)
        for name in ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
    ],
    ("RNN", 14, lambda s: recurrent(s, 1)),
    ("GRU", 14, gru),
    ("LSTM", 14, lstm),
    ("Resize", 13, resize),
    ("Resize", 19, resize),
    ("Resize", 19, smooth_resize),
    ("GridSample", 20, grid_sample),
    ("Slice", 13, slices),
    ("Pad", 13, pad),
    ("Pad", 18, pad),
    ("ScatterElements", 18, scatter_elements),
    ("ScatterND", 16, scatter_nd),
    ("GatherElements", 13, lambda s: ([s.x(3, 4), s.ints(-3, 2, 2, 4)], {"axis": 0})),
    ("GatherND", 13, lambda s: ([s.x(2, 3, 4), s.ints(0, 2, 2, 2, 1)], {"batch_dims": 1})),
    ("Gather", 13, lambda s: ([s.x(3, 4), s.ints(-4, 3, 2, 2)], {"axis": -1})),
    ("QuantizeLinear", 13, quantize),
    ("DequantizeLinear", 13, dequantize),
    ("DynamicQuantizeLinear", 13, lambda s: ([s.x(3, 4)], {})),
    ("QLinearConv", 13, qlinear_conv),
    ("MatMulInteger", 13, lambda s: ([s.ints(0, 255, 3, 4, dtype="uint8"), s.ints(0, 255, 4, 2, dtype="uint8")], {})),
    ("Split", 13, split),
    ("Gemm", 13, gemm),
    ("Einsum", 13, einsum),
    ("NonMaxSuppression", 13, nms),
    ("RoiAlign", 16, roi_align),
    ("Div", 14, division),
    ("Mod", 13, division),
    ("Mod", 13, lambda s: (division(s)[0], {"fmod": 1})),
    ("CumSum", 14, lambda s: ([s.x(3, 4), np.array(s.i(-2, 1))], {"exclusive": s.i(0, 1), "reverse": s.i(0, 1)})),
    ("TopK", 13, lambda s: ([s.x(3, 6), shape_of(s.i(1, 6))], {"axis": -1, "largest": s.i(0, 1)})),
    ("ArgMax", 13, lambda s: ([s.ints(0, 3, 3, 6).astype("float32")], {"axis": 1, "select_last_index": s.i(0, 1)})),
    ("OneHot", 13, lambda s: ([s.ints(-5, 5, 2, 3), shape_of(5), s.x(2)], {"axis": s.i(-3, 2)})),
    ("Trilu", 14, lambda s: ([s.x(2, 3, 4), np.array(s.i(-3, 3))], {"upper": s.i(0, 1)})),
    ("LayerNormalization", 17, lambda s: ([s.x(2, 3, 4), s.x(4), s.x(4)], {"axis": -1})),
    ("InstanceNormalization", 13, lambda s: ([s.x(2, 3, 4, 2), s.x(3), s.x(3)], {})),
    ("BatchNormalization", 15, lambda s: ([s.x(2, 3, 4), s.x(3), s.x(3), s.x(3), np.abs(s.x(3))], {})),
    ("GroupNormalization", 21, lambda s: ([s.x(2, 4, 3), s.x(4), s.x(4)], {"num_groups": 2})),
    ("LRN", 13, lambda s: ([s.x(2, 5, 3, 3)], {"size": s.pick(1, 3, 5), "alpha": 0.1, "beta": 0.6})),
    ("LpNormalization", 13, lambda s: ([s.x(3, 4)], {"axis": s.i(-2, 1), "p": s.i(1, 2)})),
    ("DepthToSpace", 13, lambda s: ([s.x(2, 8, 2, 3)], {"blocksize": 2, "mode": s.pick("DCR", "CRD")})),
    ("SoftmaxCrossEntropyLoss", 13, loss),
    ("Softmax", 13, lambda s: ([s.x(2, 3, 4)], {"axis": s.i(-3, 2)})),
    ("Pow", 15, lambda s: ([np.abs(s.x(3)), s.ints(0, 3, 3)], {})),
    ("Pow", 15, lambda s: ([s.ints(1, 5, 3), s.x(3)], {})),
    (
        "BitShift",
        13,
        lambda s: (
            [s.ints(0, 255, 4, dtype="uint8"), s.ints(0, 7, 4, dtype="uint8")],
            {"direction": s.pick("LEFT", "RIGHT")},
        ),
    ),
    ("ReverseSequence", 13, lambda s: ([s.x(4, 3, 2), s.ints(1, 4, 3)], {"time_axis": 0, "batch_axis": 1})),
    ("Gelu", 20, lambda s: ([s.x(3, 4)], {"approximate": s.pick("none", "tanh")})),
    ("HardSigmoid", 13, lambda s: ([s.x(3, 4) * 5], {"alpha": 0.3, "beta": 0.4})),
    ("Selu", 13, lambda s: ([s.x(3, 4)], {"alpha": 1.5, "gamma": 0.9})),
    ("Celu", 13, lambda s: ([s.x(3, 4)], {"alpha": 0.7})),
    ("PRelu", 16, lambda s: ([s.x(2, 3, 4), s.x(3, 1)], {})),
    ("DFT", 20, lambda s: ([s.x(2, s.i(3, 9), 1), None, np.array(1)], {"onesided": s.i(0, 1)})),
    ("STFT", 17, lambda s: ([s.x(2, 20, 1), np.array(s.i(1, 5)), s.x(8)], {})),
    ("MaxRoiPool", 13, lambda s: ([s.x(1, 2, 6, 6), np.array([[0, 1, 1, 4, 5]], "float32")], {"pooled_shape": [2, 2]})),
    ("Unique", 13, lambda s: ([s.ints(0, 4, 9)], {"sorted": s.i(0, 1)})),
    ("EyeLike", 13, lambda s: ([s.x(3, 4)], {"k": s.i(-2, 2)})),
    ("Det", 13, lambda s: ([s.x(2, 4, 4)], {})),
    ("Where", 16, lambda s: ([s.ints(0, 1, 3, 1).astype(bool), s.x(4), s.x(3, 4)], {})),
    ("Clip", 13, lambda s: ([s.x(3, 4), None, np.float32(0.3)], {})),
    ("Expand", 13, lambda s: ([s.x(3, 1), shape_of(2, 1, 4)], {})),
    (
        "ConvInteger",
        13,
        lambda s: (
            [s.ints(0, 255, 1, 2, 5, 5, dtype="uint8"), s.ints(0, 9, 3, 2, 2, 2, dtype="uint8")],
            {"pads": [1, 0, 0, 1]},
        ),
    ),
    ("QLinearMatMul", 13, qlinear_matmul),
    ("Attention", 23, attention),
    (
        "RotaryEmbedding",
        23,
        lambda s: ([s.x(2, 2, 3, 8), s.x(5, 4), s.x(5, 4), s.ints(0, 4, 2, 3)], {"interleaved": s.i(0, 1)}),
    ),
    ("RMSNormalization", 23, lambda s: ([s.x(2, 3, 4), s.x(4)], {"axis": -1})),
    # Older opsets.
    ("Squeeze", 11, lambda s: ([s.x(2, 1, 3, 1)], {"axes": s.pick([1], [-1], [1, 3])})),
    ("Unsqueeze", 11, lambda s: ([s.x(2, 3)], {"axes": s.pick([0], [-1], [1, 3])})),
    ("Split", 11, lambda s: ([s.x(6, 4)], {"axis": 0, "split": [1, 2, 3]})),
    ("Slice", 9, lambda s: ([s.x(4, 5)], {"starts": [1, -3], "ends": [100, -1], "axes": [0, 1]})),
    ("Pad", 10, lambda s: ([s.x(3, 4)], {"pads": [1, 0, 2, 1], "mode": s.pick("constant", "reflect", "edge")})),
    ("Clip", 10, lambda s: ([s.x(3, 4)], {"min": -0.5, "max": 0.5})),
    ("ReduceSum", 11, reduction),
    (
        "Resize",
        10,
        lambda s: ([s.x(1, 2, 3, 4), np.array([1, 1, 2, 1.5], "float32")], {"mode": s.pick("nearest", "linear")}),
    ),
    (
        "Resize",
        11,
        lambda s: (
            [s.x(1, 1, 3, 4), np.zeros(0, "float32"), np.array([1, 1, 2, 1.5], "float32")],
            {"mode": s.pick("nearest", "linear")},
        ),
    ),
    ("Upsample", 9, lambda s: ([s.x(1, 2, 3, 4), np.array([1, 1, 2, 3], "float32")], {"mode": "nearest"})),
    ("BatchNormalization", 9, lambda s: ([s.x(2, 3, 4), s.x(3), s.x(3), s.x(3), np.abs(s.x(3))], {})),
    ("TopK", 11, lambda s: ([s.x(3, 6), shape_of(s.i(1, 6))], {"axis": 1, "largest": s.i(0, 1)})),
    ("Tile", 13, lambda s: ([s.x(2, 3), shape_of(2, 3)], {})),
]
OUTPUTS = {
    "RNN": 2,
    "GRU": 2,
    "LSTM": 3,
    "TopK": 2,
    "Split": 3,
    "DynamicQuantizeLinear": 3,
    "MaxPool": 2,
    "Unique": 4,
    "Attention": 3,
}


def model_of(op, opset, inputs, attributes, weights=()):
    names = [f"x{k}" if value is not None else "" for k, value in enumerate(inputs)]
    given = [(name, np.asarray(value)) for name, value in zip(names, inputs, strict=True) if name]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given
        if name not in weights
    ]
    outputs = [f"y{k}" for k in range(OUTPUTS.get(op, 1))]
    graph = helper.make_graph(
        [helper.make_node(op, names, outputs, **attributes)],
        "sample",
        infos,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in given if name in weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model, {name: value for name, value in given if name not in weights}


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize(("op", "opset", "sample"), SAMPLES, ids=[f"{op}-{opset}" for op, opset, _ in SAMPLES])
def test_a_node_computes_what_onnxruntime_computes(op, opset, sample, seed):
    inputs, attributes = sample(Sample(seed))
    model, given = model_of(op, opset, inputs, attributes)
    try:
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = session.run(None, given)
    except Exception as error:
        pytest.skip(f"ONNX Runtime refuses the call: {error}")
    del model.graph.output[:]
    model.graph.output.extend(_typed(f"y{k}", value) for k, value in enumerate(expected))
    with mt.no_grad():
        results = mt.onnx.load(model)(**given)
    results = results if isinstance(results, tuple) else (results,)
    for found, wanted in zip(results, expected, strict=True):
        assert found.shape == wanted.shape
        assert found.dtype.name == wanted.dtype.name
        if wanted.dtype.kind in "iu" and "Quantize" not in op and "QLinear" not in op:
            np.testing.assert_array_equal(found.numpy(), wanted)
        else:
            # Quantized numbers on the boundary of two integers are rounded to either.
            atol = 1 if wanted.dtype.kind in "iu" else 2e-5
            np.testing.assert_allclose(found.numpy().astype("float64"), wanted, rtol=2e-4, atol=atol)


def _typed(name, value):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
