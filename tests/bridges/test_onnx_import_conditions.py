"""Arguments that an operator does not take: the error names the node, the argument, its value, and what is expected."""

import numpy as np
import pytest
from minitensor.onnx.loading import rule
from minitensor.onnx.loading.conditions import CONDITIONS
from onnx import helper

import minitensor as mt


def ints(*values):
    return np.array(values, dtype="int64")


def x(*shape):
    return np.ones(shape, dtype="float32")


IMAGE, WEIGHT = x(1, 4, 6, 6), x(2, 4, 3, 3)
ROIS = [x(1, 1, 4, 4), x(1, 4), ints(0)]
LAYER = [x(3, 2, 4), x(1, 5, 4), x(1, 5, 5)]
SCALES = [x(1, 1, 4, 4), None, np.array([1, 1, 2, 2], "float32")]

#: For each operator: inputs, attributes, the argument that is wrong, and what the error says after its name.
WRONG = [
    ("ArgMax", [x(2, 3)], {"axis": 2}, "axis", "is 2; expected an axis from -2 to 1 of 2 axes"),
    (
        "Attention",
        [x(1, 2, 8)] * 3,
        {"q_num_heads": 3, "kv_num_heads": 3},
        "q_num_heads",
        "is 3; expected a divisor of 8",
    ),
    ("Attention", [x(1, 2, 8)] * 3, {"q_num_heads": 0, "kv_num_heads": 1}, "q_num_heads", "is 0; .* at least 1"),
    ("Attention", [x(1, 2, 8)] * 3, {"q_num_heads": 2, "kv_num_heads": 4}, "kv_num_heads", "is 4; .* a divisor of 2"),
    ("AveragePool", [IMAGE], {"kernel_shape": [2]}, "kernel_shape", r"is \[2\]; expected 2 numbers, one for each axis"),
    ("AveragePool", [IMAGE], {"kernel_shape": [2, 0]}, "kernel_shape", r"is \[2, 0\]; expected numbers of at least 1"),
    ("BitShift", [np.uint8([1]), np.uint8([1])], {"direction": "UP"}, "direction", "is 'UP'; expected LEFT, RIGHT"),
    ("CenterCropPad", [x(2, 3), ints(1)], {"axes": [2]}, "axes", r"is \[2\]; expected different axes from -2 to 1"),
    ("CenterCropPad", [x(2, 3), ints(1)], {}, "shape", r"is \[1\]; expected 2 numbers, one for each axis"),
    ("CenterCropPad", [x(2, 3), ints(1, -1)], {}, "shape", r"is \[1, -1\]; expected numbers of at least 0"),
    ("Col2Im", [x(1, 4, 4), ints(3, 3), ints(2, 2)], {"strides": [0, 1]}, "strides", r"is \[0, 1\]; .* at least 1"),
    ("Col2Im", [x(1, 4, 4), ints(3, 3), ints(2, 2)], {"pads": [0, 0]}, "pads", r"is \[0, 0\]; expected 4 numbers"),
    ("Col2Im", [x(1, 4, 4), ints(3), ints(2, 2)], {}, "image_shape", r"is \[3\]; expected 2 numbers"),
    ("Compress", [x(2, 3), np.array([True])], {"axis": 5}, "axis", "is 5; expected an axis from -2 to 1"),
    ("Concat", [x(2), x(2)], {"axis": 1}, "axis", "is 1; expected an axis from -1 to 0"),
    (
        "Conv",
        [IMAGE, WEIGHT],
        {"kernel_shape": [2, 3]},
        "kernel_shape",
        r"is \[2, 3\]; expected \[3, 3\], the sizes of the weight",
    ),
    ("Conv", [IMAGE, WEIGHT], {"strides": [0, 1]}, "strides", r"is \[0, 1\]; expected numbers of at least 1"),
    ("Conv", [IMAGE, WEIGHT], {"strides": [1]}, "strides", r"is \[1\]; expected 2 numbers"),
    ("Conv", [IMAGE, WEIGHT], {"dilations": [1, -1]}, "dilations", r"is \[1, -1\]; expected numbers of at least 1"),
    (
        "Conv",
        [IMAGE, WEIGHT],
        {"pads": [1, 1]},
        "pads",
        r"is \[1, 1\]; expected 4 numbers, 2 for each axis of the image",
    ),
    ("Conv", [IMAGE, WEIGHT], {"pads": [1, 1, -1, 0]}, "pads", r"is .*; expected numbers of at least 0"),
    ("Conv", [IMAGE, WEIGHT], {"auto_pad": "SAME"}, "auto_pad", "is 'SAME'; expected NOTSET, SAME_UPPER"),
    ("Conv", [IMAGE, WEIGHT], {"group": 0}, "group", "is 0; expected a number of at least 1"),
    ("Conv", [IMAGE, WEIGHT], {"group": 2}, "weight", r"is of shape \(2, 4, 3, 3\); expected 4 / 2 channels"),
    ("Conv", [IMAGE, x(3, 2, 3, 3)], {"group": 2}, "group", "is 2; expected a divisor of 3, the number of kernels"),
    ("Conv", [x(4, 6), WEIGHT], {}, "x", r"is of shape \(4, 6\); expected a batch, channels, and 1 to 3 axes"),
    ("Conv", [IMAGE, x(2, 4, 3)], {}, "weight", r"is of shape \(2, 4, 3\); expected 4 axes"),
    ("ConvInteger", [IMAGE.astype("uint8"), WEIGHT.astype("uint8")], {"group": 3}, "w", "is of shape"),
    (
        "ConvTranspose",
        [IMAGE, x(4, 2, 3, 3)],
        {"kernel_shape": [1, 1]},
        "kernel_shape",
        r"is \[1, 1\]; expected \[3, 3\]",
    ),
    ("ConvTranspose", [IMAGE, x(3, 2, 3, 3)], {}, "weight", r"is of shape \(3, 2, 3, 3\); expected 4 kernels"),
    ("ConvTranspose", [IMAGE, x(4, 2, 3, 3)], {"group": 3}, "group", "is 3; expected a divisor of 4"),
    ("ConvTranspose", [IMAGE, x(4, 2, 3, 3)], {"output_shape": [9]}, "output_shape", r"is \[9\]; expected 2 numbers"),
    ("ConvTranspose", [IMAGE, x(4, 2, 3, 3)], {"output_padding": [1, -1]}, "output_padding", "is .* at least 0"),
    ("CumSum", [x(2, 3), np.array(2)], {}, "axis", "is 2; expected an axis from -2 to 1"),
    ("DFT", [x(2, 3, 1), None, np.array(4)], {}, "axis", "is 4; expected an axis from -3 to 1 of 3 axes, but not -1"),
    ("DeformConv", [IMAGE, WEIGHT, x(1, 18, 4, 4)], {"strides": [1, 0]}, "strides", r"is \[1, 0\]; .* at least 1"),
    (
        "DeformConv",
        [IMAGE, WEIGHT, x(1, 18, 4, 4)],
        {"offset_group": 3},
        "offset_group",
        "is 3; expected a divisor of 4",
    ),
    ("DepthToSpace", [IMAGE], {"blocksize": 0}, "blocksize", "is 0; expected a number of at least 1"),
    (
        "DepthToSpace",
        [IMAGE],
        {"blocksize": 3},
        "blocksize",
        "is 3; expected a block whose volume divides the 4 channels",
    ),
    ("DepthToSpace", [IMAGE], {"blocksize": 2, "mode": "RDC"}, "mode", "is 'RDC'; expected DCR, CRD"),
    ("DequantizeLinear", [np.ones((2, 3), "uint8"), x(3)], {"axis": 2}, "axis", "is 2; expected an axis from -2 to 1"),
    ("Det", [x(3)], {}, "x", r"is of shape \(3,\); expected matrices"),
    ("Dropout", [x(3), np.float32(1)], {}, "ratio", "is 1.0; expected a number from 0 to 1, without 1"),
    ("EyeLike", [x(3)], {}, "x", r"is .*; expected a matrix: 2 axes"),
    ("Flatten", [x(2, 3)], {"axis": 5}, "axis", "is 5; expected a number from -2 to 2, the number of axes"),
    ("Gather", [x(2, 3), ints(0)], {"axis": -3}, "axis", "is -3; expected an axis from -2 to 1"),
    ("GatherElements", [x(2, 3), ints(0)[None]], {"axis": 2}, "axis", "is 2; expected an axis from -2 to 1"),
    ("GatherND", [x(2, 3), ints(0, 0)[None]], {"batch_dims": 2}, "batch_dims", "is 2; expected a number from 0 to 1"),
    ("Gelu", [x(3)], {"approximate": "sigmoid"}, "approximate", "is 'sigmoid'; expected none, tanh"),
    ("GlobalLpPool", [IMAGE], {"p": 0}, "p", "is 0; expected a number of at least 1"),
    ("GridSample", [IMAGE, x(1, 2, 2, 2)], {"mode": "area"}, "mode", "is 'area'; expected linear, nearest"),
    ("GridSample", [IMAGE, x(1, 2, 2, 2)], {"padding_mode": "wrap"}, "padding_mode", "is 'wrap'; expected zeros"),
    ("GroupNormalization", [IMAGE, x(4), x(4)], {"num_groups": 3}, "num_groups", "is 3; expected a divisor of 4"),
    ("GRU", [x(3, 2, 4), x(1, 15, 4), x(1, 15, 5)], {"direction": "left"}, "direction", "is 'left'; expected forward"),
    (
        "GRU",
        [x(3, 2, 4), x(1, 15, 4), x(1, 15, 5)],
        {"activations": ["Tanh"]},
        "activations",
        "is .*; expected 2 functions",
    ),
    ("Hardmax", [x(2, 3)], {"axis": 2}, "axis", "is 2; expected an axis"),
    ("LayerNormalization", [x(2, 3), x(3)], {"axis": 2}, "axis", "is 2; expected an axis"),
    ("LogSoftmax", [x(2, 3)], {"axis": -3}, "axis", "is -3; expected an axis"),
    ("LpNormalization", [x(2, 3)], {"p": 3}, "p", "is 3; expected 1, 2"),
    ("LpPool", [IMAGE], {"kernel_shape": [2, 2], "p": 0}, "p", "is 0; expected a number of at least 1"),
    ("LRN", [IMAGE], {"size": 0}, "size", "is 0; expected a number of at least 1"),
    (
        "LSTM",
        [x(3, 2, 4), x(1, 20, 4), x(1, 20, 5)],
        {"direction": "bidirectional"},
        "direction",
        "is .*; expected forward or reverse",
    ),
    ("LSTM", [x(3, 2, 4), x(1, 20, 4), x(1, 20, 5)], {"hidden_size": 6}, "hidden_size", "is 6; expected 5"),
    ("MaxPool", [IMAGE], {"kernel_shape": [2, 2, 2]}, "kernel_shape", r"is \[2, 2, 2\]; expected 2 numbers"),
    (
        "MaxPool",
        [IMAGE],
        {"kernel_shape": [2, 2], "strides": [2, 0]},
        "strides",
        "is .*; expected numbers of at least 1",
    ),
    ("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "storage_order": 2}, "storage_order", "is 2; expected 0, 1"),
    ("MaxRoiPool", [x(1, 1, 4, 4), x(1, 5)], {"pooled_shape": [2]}, "pooled_shape", r"is \[2\]; expected 2 numbers"),
    (
        "MaxUnpool",
        [x(1, 1, 2, 2), np.zeros((1, 1, 2, 2), "int64")],
        {"kernel_shape": [2]},
        "kernel_shape",
        "is .* 2 numbers",
    ),
    ("MeanVarianceNormalization", [x(2, 3)], {"axes": [0, 2]}, "axes", r"is \[0, 2\]; expected different axes"),
    ("MeanVarianceNormalization", [x(2, 3)], {}, "axes", r"is \[0, 2, 3\]; expected different axes"),
    ("Multinomial", [x(2, 3)], {"sample_size": 0}, "sample_size", "is 0; expected a number of at least 1"),
    (
        "NegativeLogLikelihoodLoss",
        [x(2, 3), ints(0, 1)],
        {"reduction": "max"},
        "reduction",
        "is 'max'; expected none, sum, mean",
    ),
    ("OneHot", [ints(0), ints(3), x(2)], {"axis": 2}, "axis", "is 2; expected an axis from -2 to 1"),
    ("OneHot", [ints(0), ints(-3), x(2)], {}, "depth", r"is \[-3\]; expected numbers of at least 1"),
    ("Pad", [x(2, 3), ints(1, 1)], {}, "pads", r"is \[1, 1\]; expected 4 numbers, 2 for each axis"),
    ("Pad", [x(2, 3), ints(1, 1), None, ints(2)], {}, "axes", r"is \[2\]; expected different axes"),
    ("Pad", [x(2, 3), ints(1, 1, 1, 1)], {"mode": "mirror"}, "mode", "is 'mirror'; expected constant, reflect"),
    ("QuantizeLinear", [x(2, 3), x(3)], {"axis": 3}, "axis", "is 3; expected an axis"),
    ("RandomNormal", [], {"shape": [2, -1]}, "shape", r"is \[2, -1\]; expected numbers of at least 0"),
    ("RandomUniform", [], {"shape": [-1]}, "shape", r"is \[-1\]; expected numbers of at least 0"),
    ("ReduceMax", [x(2, 3), ints(2)], {}, "axes", r"is \[2\]; expected axes from -2 to 1 of 2 axes"),
    ("ReduceSum", [x(2, 3), ints(0, -3)], {}, "axes", r"is \[0, -3\]; expected axes from -2 to 1 of 2 axes"),
    ("Resize", SCALES, {"mode": "area"}, "mode", "is 'area'; expected nearest, linear, cubic"),
    ("Resize", SCALES, {"nearest_mode": "round"}, "nearest_mode", "is 'round'; expected round_prefer_floor"),
    ("Resize", SCALES, {"axes": [2, 2]}, "axes", r"is \[2, 2\]; expected different axes"),
    ("Resize", SCALES, {"axes": [2, 3]}, "scales", r"is \[.*\]; expected 2 numbers greater than 0"),
    (
        "Resize",
        [x(1, 1, 4, 4), None, np.float32([1, 1, 0, 1])],
        {},
        "scales",
        "is .*; expected 4 numbers greater than 0",
    ),
    ("Resize", [x(1, 1, 4, 4), None, None, ints(2)], {}, "sizes", r"is \[2\]; expected 4 numbers"),
    (
        "Resize",
        SCALES,
        {"coordinate_transformation_mode": "half"},
        "coordinate_transformation_mode",
        "is 'half'; expected",
    ),
    ("Resize", SCALES, {"keep_aspect_ratio_policy": "crop"}, "keep_aspect_ratio_policy", "is 'crop'; expected stretch"),
    (
        "ReverseSequence",
        [x(2, 3), ints(1, 1)],
        {"batch_axis": 0, "time_axis": 0},
        "batch_axis",
        "is 0; expected 0 or 1, and the attribute 'time_axis' to be",
    ),
    ("RMSNormalization", [x(2, 3), x(3)], {"axis": 2}, "axis", "is 2; expected an axis"),
    ("RNN", LAYER, {"layout": 2}, "layout", "is 2; expected 0, 1"),
    ("RoiAlign", ROIS, {"output_height": 0}, "output_height", "is 0; expected a number of at least 1"),
    ("RoiAlign", ROIS, {"sampling_ratio": -1}, "sampling_ratio", "is -1; expected a number of at least 0"),
    ("RoiAlign", ROIS, {"mode": "min"}, "mode", "is 'min'; expected avg, max"),
    (
        "RotaryEmbedding",
        [x(1, 2, 3, 4), x(3, 2), x(3, 2), ints(0, 1, 2)[None]],
        {"rotary_embedding_dim": 3},
        "rotary_embedding_dim",
        "is 3; expected an even number from 0 to 4",
    ),
    ("ScatterElements", [x(2, 3), ints(0)[None], x(1, 1)], {"axis": 2}, "axis", "is 2; expected an axis"),
    (
        "ScatterElements",
        [x(2, 3), ints(0)[None], x(1, 1)],
        {"reduction": "sub"},
        "reduction",
        "is 'sub'; expected none, add",
    ),
    ("ScatterND", [x(2, 3), ints(0)[None], x(1, 3)], {"reduction": "sub"}, "reduction", "is 'sub'; expected none, add"),
    ("Slice", [x(2, 3), ints(0), ints(1), ints(2)], {}, "axes", r"is \[2\]; expected different axes"),
    ("Slice", [x(2, 3), ints(0), ints(1, 1)], {}, "ends", r"is \[1, 1\]; expected 1 number"),
    ("Slice", [x(2, 3), ints(0), ints(1), ints(0), ints(0)], {}, "steps", r"is \[0\]; expected numbers other than 0"),
    ("Softmax", [x(2, 3)], {"axis": 2}, "axis", "is 2; expected an axis"),
    ("SoftmaxCrossEntropyLoss", [x(2, 3), ints(0, 1)], {"reduction": "max"}, "reduction", "is 'max'; expected none"),
    ("SpaceToDepth", [IMAGE], {"blocksize": 0}, "blocksize", "is 0; expected a number of at least 1"),
    (
        "SpaceToDepth",
        [IMAGE],
        {"blocksize": 4},
        "blocksize",
        r"is 4; expected a divisor of each size of the image \[6, 6\]",
    ),
    ("Split", [x(4)], {"num_outputs": 0}, "num_outputs", "is 0; expected a number of at least 1"),
    ("Split", [x(4)], {"num_outputs": 2}, "num_outputs", "is 2; expected 1, the number of outputs"),
    ("Split", [x(4)], {"num_outputs": 1, "axis": 1}, "axis", "is 1; expected an axis from -1 to 0"),
    ("Split", [x(4), ints(2, 2)], {}, "split", r"is \[2, 2\]; expected 1 sizes"),
    ("SplitToSequence", [x(4)], {"axis": 1}, "axis", "is 1; expected an axis"),
    ("Squeeze", [x(2, 1), ints(0)], {}, "axes", r"is \[0\]; expected axes of size 1 of the shape \(2, 1\)"),
    ("TensorScatter", [x(2, 3, 4), x(2, 1, 4)], {"mode": "ring"}, "mode", "is 'ring'; expected linear, circular"),
    ("Tile", [x(2, 3), ints(2)], {}, "repeats", r"is \[2\]; expected 2 numbers, one for each axis of the input"),
    ("Tile", [x(2, 3), ints(2, -1)], {}, "repeats", r"is \[2, -1\]; expected numbers of at least 0"),
    ("TopK", [x(2, 3), ints(4)], {}, "k", r"is \[4\]; expected a number from 0 to 3, the size of axis -1"),
    ("TopK", [x(2, 3), ints(-1)], {}, "k", r"is \[-1\]; expected a number from 0 to 3"),
    ("TopK", [x(2, 3), ints(1)], {"axis": 2}, "axis", "is 2; expected an axis"),
    ("Transpose", [x(2, 3)], {"perm": [0, 0]}, "perm", r"is \[0, 0\]; expected a permutation of 0 to 1"),
    ("Transpose", [x(2, 3)], {"perm": [0, 2, 1]}, "perm", r"is \[0, 2, 1\]; expected a permutation of the 2 axes"),
    ("Trilu", [x(3)], {}, "x", r"is of shape \(3,\); expected matrices"),
    ("Unique", [x(3)], {"axis": 1}, "axis", "is 1; expected an axis"),
    ("Unsqueeze", [x(2, 3), ints(0, 0)], {}, "axes", r"is \[0, 0\]; expected different axes from -4 to 3 of 4 axes"),
    ("Scan", [x(3), x(3)], {"num_scan_inputs": 3}, "num_scan_inputs", "is 3; expected a number from 1 to 2"),
    (
        "Scan",
        [x(1), x(3)],
        {"num_scan_inputs": 1, "scan_input_axes": [1]},
        "scan_input_axes",
        r"is \[1\]; expected axes of the scanned",
    ),
    (
        "Scan",
        [x(1), x(3)],
        {"num_scan_inputs": 1, "scan_input_directions": [0, 1]},
        "scan_input_directions",
        "is .* 1 number,",
    ),
    ("ai.onnx.ml.Normalizer", [x(2, 3)], {"norm": "L3"}, "norm", "is 'L3'; expected MAX, L1, L2"),
    (
        "ai.onnx.ml.Scaler",
        [x(2, 3)],
        {"offset": [0.0, 1.0], "scale": [1.0]},
        "offset",
        r"is \[0.0, 1.0\]; expected 1 or 3",
    ),
    (
        "ai.onnx.ml.LinearRegressor",
        [x(2, 3)],
        {"coefficients": [1.0, 2.0]},
        "coefficients",
        "is .*; expected 3 · 1 numbers",
    ),
]

TREE = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "nodes_featureids": [1, 9, 9],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0],
}
TARGETS = {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0]}
CLASSES = {name.replace("target", "class"): value for name, value in TARGETS.items()}
SVM = {"coefficients": [1.0, 2.0, 3.0], "rho": [0.0], "kernel_params": [0.0, 0.0, 0.0]}
CATEGORIES = {"cats_int64s": [1, 2], "cats_strings": ["a"]}
BIASES = {"intercepts": [0.5], "classlabels_ints": [0, 1]}
WRONG += [
    (f"ai.onnx.ml.{name}", inputs, attributes, argument, words)
    for name, inputs, attributes, argument, words in (
        ("CategoryMapper", [ints(1)], CATEGORIES, "cats_strings", r"is \['a'\]; expected 2 numbers"),
        ("FeatureVectorizer", [x(2, 3)], {"inputdimensions": [3, 1]}, "inputdimensions", "is .*; expected 1 number"),
        ("Imputer", [x(2, 3)], {"imputed_value_floats": [1.0, 2.0]}, "imputed_value_floats", "is .*; expected 1 or 3"),
        ("LinearClassifier", [x(2, 3)], BIASES | {"coefficients": [1.0]}, "coefficients", "is .*; expected 3 numbers"),
        ("SVMClassifier", [x(2, 3)], SVM | {"vectors_per_class": [1, 1, 1]}, "rho", r"is \[0.0\]; expected 3 numbers"),
        ("SVMRegressor", [x(2, 3)], SVM | {"kernel_type": "COSINE"}, "kernel_type", "is 'COSINE'; expected LINEAR"),
        ("SVMRegressor", [x(2, 3)], SVM | {"kernel_params": [1.0]}, "kernel_params", "is .*; expected 3 numbers"),
        (
            "TreeEnsembleClassifier",
            [x(2, 1)],
            TREE | CLASSES,
            "nodes_featureids",
            "is .*; expected numbers from 0 to 0",
        ),
        (
            "TreeEnsembleRegressor",
            [x(2, 2)],
            TREE | TARGETS | {"nodes_values": [1.0]},
            "nodes_values",
            "is .* 3 numbers",
        ),
        ("TreeEnsembleRegressor", [x(3)], TREE | TARGETS, "x", "is of shape .*; expected rows of features: 2 axes"),
        (
            "TreeEnsembleRegressor",
            [x(2, 3)],
            TREE | TARGETS | {"post_transform": "PROBIT"},
            "post_transform",
            "is 'PROBIT'; expected NONE, LOGISTIC",
        ),
    )
]
WRONG += [
    (
        "AveragePool",
        [IMAGE],
        {"kernel_shape": [2, 2], "pads": [2, 0, 0, 0]},
        "pads",
        r"is .*; expected numbers less than",
    ),
    ("DequantizeLinear", [np.ones((2, 3), "uint8"), x(3)], {"axis": 0}, "axis", "is 0; expected an axis of size 3"),
    ("DFT", [x(2, 3, 1), None, np.array(-1)], {}, "axis", "is -1; expected an axis from -3 to 1 of 3 axes, but not -1"),
    (
        "Expand",
        [x(3, 1), ints(2, 4)],
        {},
        "shape",
        r"is \[2, 4\]; expected sizes to which the shape \(3, 1\) broadcasts",
    ),
    ("OneHot", [ints(0), ints(3, 1), x(2)], {}, "depth", r"is \[3, 1\]; expected 1 number"),
    ("Pad", [x(2, 3), ints(2, 0, 0, 0)], {"mode": "reflect"}, "pads", r"is .*; expected numbers less than the sizes"),
    ("Resize", [x(1, 1, 4, 4), None, None, ints(1, 1, -2, 2)], {}, "sizes", "is .*; expected 4 numbers of at least 0"),
    ("Split", [x(4), ints(3)], {}, "split", r"is 3; expected 1 sizes|is \[3\]; expected sizes that add up to 4"),
    ("CumSum", [x(2, 3), np.array(0)], {"exclusive": 2}, "exclusive", "is 2; expected 0, 1"),
    ("ReduceSum", [x(2, 3)], {"keepdims": -1}, "keepdims", "is -1; expected 0, 1"),
]

#: Operators whose conditions are those of another one in the table above, or need inputs that are not arrays.
ALIKE = {"ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceMin", "ReduceProd"}
ALIKE |= {"ReduceSumSquare", "Scatter", "QLinearConv", "StringNormalizer", "TfIdfVectorizer", "Upsample"}
ALIKE |= {"ConcatFromSequence", "CumProd", "Momentum", "TreeEnsemble"}


#: Operators that have two results.
TWO_RESULTS = ("TopK", "LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")


def model_of(name, inputs, attributes):
    domain, _, op = name.rpartition(".")
    names = [f"x{k}" if value is not None else "" for k, value in enumerate(inputs)]
    given = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True) if name}
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    if op == "Scan":
        one = helper.make_node("Identity", ["a"], ["b"]), helper.make_node("Identity", ["c"], ["d"])
        ends = [[helper.make_tensor_value_info(n, 1, []) for n in pair] for pair in ("ac", "bd")]
        attributes = attributes | {"body": helper.make_graph(one, "body", *ends)}
    node = helper.make_node(
        op, names, ["y", "z"] if op in TWO_RESULTS else ["y"], name="the_node", domain=domain, **attributes
    )
    graph = helper.make_graph([node], "sample", infos, [helper.make_tensor_value_info("y", 1, list("abcd"))])
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), given


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "argument", "words"), WRONG, ids=[f"{w[0]}-{w[3]}-{k}" for k, w in enumerate(WRONG)]
)
def test_an_argument_that_is_wrong_is_named_with_what_is_expected(op, inputs, attributes, argument, words):
    model, given = model_of(op, inputs, attributes)
    message = rf"node 'the_node' \({op}\): .*the (attribute|input) '{argument}' {words}.*; correct the node, or export"
    with pytest.raises(mt.onnx.OnnxError, match=message), mt.no_grad():
        mt.onnx.load(model)(**given)


def test_each_operator_of_the_table_has_a_wrong_sample():
    operators = {name for _, name in CONDITIONS}
    assert operators == {name.rpartition(".")[2] for name, *_ in WRONG} | ALIKE


def test_each_condition_is_on_an_argument_of_its_operator():
    for place, conditions in CONDITIONS.items():
        rule.find(*place, 1)
        names = {name for found in rule.RULES[place] for name in (*found.attributes, *(i[0] for i in found.inputs))}
        assert {condition.name for condition in conditions} <= names, place


def test_all_wrong_attributes_of_a_model_are_listed_when_it_is_loaded():
    model, _ = model_of("Conv", [IMAGE, WEIGHT], {"strides": [0, 1], "dilations": [-1, 1]})
    node = helper.make_node("DepthToSpace", ["y"], ["z"], name="other", blocksize=0)
    model.graph.node.append(node)
    with pytest.raises(mt.onnx.OnnxError) as raised:
        mt.onnx.load(model)
    title, first, second = str(raised.value).splitlines()
    assert title == "the model cannot be loaded:"
    assert "'strides' is [0, 1]" in first
    assert "and the attribute 'dilations' is [-1, 1]" in first
    assert "node 'other' (DepthToSpace): the attribute 'blocksize' is 0" in second


def test_attributes_of_weights_are_checked_for_each_shape():
    """A check of shapes is not repeated for the same shapes, but for others."""
    model, given = model_of("SpaceToDepth", [x(1, 1, 4, 4)], {"blocksize": 2})
    del model.graph.input[0].type.tensor_type.shape.dim[:]
    for _ in range(4):
        model.graph.input[0].type.tensor_type.shape.dim.add()
    loaded = mt.onnx.load(model)
    assert loaded(mt.ones(1, 1, 4, 4)).shape == (1, 4, 2, 2)
    assert loaded(mt.ones(1, 1, 4, 4)).shape == (1, 4, 2, 2)
    with pytest.raises(mt.onnx.OnnxError, match="'blocksize' is 2; expected a divisor"):
        loaded(mt.ones(1, 1, 3, 4))
