"""The conditions on the arguments of operators, as tables.

Conditions on attributes alone are checked when a model is loaded, and those that read the inputs in each run. What is
not here is checked by the ops of minitensor, such as whether shapes broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import images, layers, learning, tensors, windows
from .condition import Arguments, Condition, one_of, require

__all__ = ["CONDITIONS", "FLAGS", "Arguments", "require"]

#: The conditions on attributes that are truth values, by their names: they are the same for all operators.
FLAGS: dict[str, Condition] = {
    name: one_of(name, 0, 1)
    for name in (
        *("align_corners", "allowzero", "antialias", "ceil_mode", "center_point_box", "count_include_pad"),
        *("detect_negative", "detect_positive", "exclude_outside", "exclusive", "fmod", "input_forget", "interleaved"),
        *("inverse", "is_causal", "keepdims", "largest", "linear_before_reset", "new_axis", "noop_with_empty_axes"),
        *("one_class", "onesided", "reverse", "saturate", "select_last_index", "sorted", "training_mode", "transA"),
        *("transB", "upper", "zeros"),
    )
}

#: The conditions by the domains and names of operators.
CONDITIONS: dict[tuple[str, str], Sequence[Condition]] = {
    **{("", name): found for family in (images, layers, tensors, windows) for name, found in family.CONDITIONS.items()},
    **{("ai.onnx.ml", name): found for name, found in learning.CONDITIONS.items()},
    ("ai.onnx.preview.training", "Momentum"): (one_of("mode", "standard", "nesterov"),),
}
