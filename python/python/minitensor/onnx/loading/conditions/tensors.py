"""Axes, parts and orders of any tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .condition import (
    Arguments,
    Condition,
    an_axis_of,
    at_least,
    axes,
    axis,
    meets,
    one_of,
    permutation,
    ranks,
    same_length,
)
from .sizes import chosen, length_of, rank, size_of

__all__ = ["CONDITIONS"]


def _parts(value: int, arguments: Arguments) -> str | None:
    count = len(arguments.node.outputs)
    return None if value == count else f"{count}, the number of outputs"


def _lengths_of_parts(value: list[int], arguments: Arguments) -> str | None:
    count = len(arguments.node.outputs)
    if not isinstance(value, list) or len(value) != count or any(n < 0 for n in value):
        return f"{count} sizes of at least 0, one for each output"
    size = size_of(0, arguments["axis"])(arguments)
    return None if size is None or sum(value) == size else f"sizes that add up to {size}, the size of the axis"


def _axis_of_signals(value: int, arguments: Arguments) -> str | None:
    rank = arguments.rank()
    is_right = -rank <= value < rank - 1 and value != -1
    return (
        None
        if is_right
        else f"an axis from {-rank} to {rank - 2} of {rank} axes, but not -1: the last axis has the parts"
    )


def _reflections(value: list[int], arguments: Arguments) -> str | None:
    shape, chosen_axes = arguments.shape(), arguments["axes"] or range(arguments.rank())
    if arguments["mode"] != "reflect" or len(value) != 2 * len(chosen_axes):
        return None
    is_right = all(max(value[k :: len(chosen_axes)]) < max(shape[at], 1) for k, at in enumerate(chosen_axes))
    return None if is_right else f"numbers less than the sizes {shape}, because elements are reflected"


def _broadcasts(value: object, arguments: Arguments) -> str | None:
    shape = arguments.shape()
    given = value if isinstance(value, list) else []
    pairs = zip(reversed(given), reversed(shape), strict=False)
    is_right = all(n >= 0 for n in given) and all(n == m or 1 in (n, m) for n, m in pairs)
    return None if is_right else f"sizes to which the shape {shape} broadcasts"


def _top(value: Any, arguments: Arguments) -> str | None:
    k = value[0] if isinstance(value, list) and len(value) == 1 else value
    if not isinstance(k, int):
        return "one number"
    at = arguments["axis"]
    size = size_of(0, at)(arguments)
    return None if size is None or 0 <= k <= size else f"a number from 0 to {size}, the size of axis {at}"


def _split_before(value: int, arguments: Arguments) -> str | None:
    n = max(arguments.rank(), 1)
    return None if -n <= value <= n else f"a number from {-n} to {n}, the number of axes of the input"


def _ones(value: Any, arguments: Arguments) -> str | None:
    shape = arguments.shape()
    given = value if isinstance(value, list) else [value]
    is_right = all(-len(shape) <= k < len(shape) and shape[k] == 1 for k in given)
    return None if is_right or not shape else f"axes of size 1 of the shape {shape}"


def _batch_dims(value: int, arguments: Arguments) -> str | None:
    most = min(arguments.rank(), arguments.rank(1)) - 1
    return None if 0 <= value <= most else f"a number from 0 to {most}"


def _other_axis(value: int, arguments: Arguments) -> str | None:
    is_right = {value, arguments["time_axis"]} == {0, 1}
    return None if is_right else "0 or 1, and the attribute 'time_axis' to be the other"


def _axis_of_scales(value: int, arguments: Arguments) -> str | None:
    scales = arguments.shape(1)
    if math.prod(scales) == 1:
        # One scale is for all axes.
        return None
    outside = an_axis_of(arguments.rank())(value, arguments)
    if outside is not None or len(scales) != 1 or arguments["block_size"]:
        return outside
    return None if arguments.shape()[value] == scales[0] else f"an axis of size {scales[0]}, the number of scales"


def _joined_axis(value: int, arguments: Arguments) -> str | None:
    items = arguments.inputs[0]
    if not isinstance(items, list) or not items:
        return None
    return an_axis_of(len(items[0].shape) + (1 if arguments["new_axis"] else 0))(value, arguments)


_AXIS = (axis(),)
_REDUCED = (axes(is_distinct=False),)
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
_COUNTED = (one_of("reduction", "none", "add", "mul", "max", "min"),)
_QUANTIZED = (at_least("block_size", 0), meets("axis", _axis_of_scales))


def _scan_axes(value: list[int], arguments: Arguments) -> str | None:
    count = arguments["num_scan_inputs"]
    if len(value) != count:
        return f"{count} axes, one for each scanned input"
    first = len(arguments.inputs) - count
    for k, at in enumerate(value):
        rank = len(getattr(arguments.inputs[first + k], "shape", ()))
        if not -rank <= at < rank:
            return f"axes of the scanned inputs, of which number {k} has {rank}"
    return None


def _scanned(value: int, arguments: Arguments) -> str | None:
    count = len(arguments.node.inputs)
    return None if 1 <= value <= count else f"a number from 1 to {count}, the number of inputs"


def _scan_outputs(arguments: Arguments) -> int:
    states = len(arguments.node.inputs) - arguments["num_scan_inputs"]
    return len(arguments["body"].outputs) - states


#: The conditions by the names of operators.
CONDITIONS: dict[str, Sequence[Condition]] = {
    **dict.fromkeys(("ArgMax", "ArgMin", "Compress", "Concat", "CumProd", "CumSum", "Gather", "Hardmax"), _AXIS),
    **dict.fromkeys(("GatherElements", "LayerNormalization", "LogSoftmax", "RMSNormalization", "Scatter"), _AXIS),
    **dict.fromkeys(("Softmax", "SplitToSequence", "Unique"), _AXIS),
    **dict.fromkeys([f"Reduce{name}" for name in _REDUCTIONS], _REDUCED),
    "BitShift": (one_of("direction", "LEFT", "RIGHT"),),
    "CenterCropPad": (axes(), at_least("shape", 0, True), same_length("shape", chosen, "axis")),
    "ConcatFromSequence": (meets("axis", _joined_axis),),
    "DequantizeLinear": _QUANTIZED,
    "Det": (ranks("x", 0, 2, 64, "matrices: at least 2 axes"),),
    "DFT": (meets("axis", _axis_of_signals),),
    "Expand": (meets("shape", _broadcasts),),
    "EyeLike": (ranks("x", 0, 2, 2, "a matrix: 2 axes"),),
    "Flatten": (meets("axis", _split_before),),
    "GatherND": (meets("batch_dims", _batch_dims),),
    "Multinomial": (at_least("sample_size", 1),),
    "OneHot": (axis(added=1), at_least("depth", 1, True), same_length("depth", lambda _: 1, "tensor")),
    "Pad": (
        axes(),
        same_length("pads", chosen, "axis", 2),
        meets("pads", _reflections),
        one_of("mode", "constant", "reflect", "edge", "wrap"),
    ),
    "QuantizeLinear": _QUANTIZED,
    "RandomNormal": (at_least("shape", 0),),
    "RandomUniform": (at_least("shape", 0),),
    "ReverseSequence": (meets("batch_axis", _other_axis),),
    "Scan": (
        meets("num_scan_inputs", _scanned, False),
        meets("scan_input_axes", _scan_axes),
        same_length("scan_input_directions", lambda a: a["num_scan_inputs"], "scanned input"),
        same_length("scan_output_axes", _scan_outputs, "scanned output"),
        same_length("scan_output_directions", _scan_outputs, "scanned output"),
    ),
    "ScatterElements": (*_AXIS, *_COUNTED),
    "ScatterND": _COUNTED,
    "Slice": (
        axes(),
        same_length("ends", length_of("starts"), "start"),
        same_length("axes", length_of("starts"), "start"),
        same_length("steps", length_of("starts"), "start"),
        meets("steps", lambda value, _: None if 0 not in value else "numbers other than 0"),
    ),
    "Split": (
        axis(),
        at_least("num_outputs", 1),
        meets("num_outputs", _parts, False),
        meets("split", _lengths_of_parts),
    ),
    "Squeeze": (axes(), meets("axes", _ones)),
    "StringNormalizer": (one_of("case_change_action", "NONE", "LOWER", "UPPER"),),
    "TensorScatter": (axis(), one_of("mode", "linear", "circular")),
    "TfIdfVectorizer": (one_of("mode", "TF", "IDF", "TFIDF"),),
    "Tile": (at_least("repeats", 0, True), same_length("repeats", rank, "axis of the input")),
    "TopK": (axis(), meets("k", _top)),
    "Transpose": permutation("perm"),
    "Trilu": (ranks("x", 0, 2, 64, "matrices: at least 2 axes"),),
    "Unsqueeze": (axes(adds=True),),
}
