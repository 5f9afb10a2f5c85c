"""Layers: recurrent ones, attention, normalization and losses."""

from __future__ import annotations

from collections.abc import Sequence

from .condition import Arguments, Condition, at_least, axes, axis, divides, equals, meets, one_of, ranks
from .sizes import channels, size_of

__all__ = ["CONDITIONS"]


def _fraction(value: float, _: Arguments) -> str | None:
    return None if 0 <= value < 1 else "a number from 0 to 1, without 1"


_LOSS = (one_of("reduction", "none", "sum", "mean"),)


def _directions(value: str, arguments: Arguments) -> str | None:
    count = size_of(1, 0)(arguments)
    wanted = 2 if value == "bidirectional" else 1
    right = "bidirectional" if count == 2 else "forward or reverse"
    return None if count in (None, wanted) else f"{right}, as the weight has {count} directions"


def _recurrent(functions: int) -> tuple[Condition, ...]:
    def count(arguments: Arguments) -> int:
        return 2 if arguments["direction"] == "bidirectional" else 1

    return (
        one_of("direction", "forward", "reverse", "bidirectional"),
        one_of("layout", 0, 1),
        meets(
            "activations",
            lambda value, arguments: (
                None
                if len(value) == functions * count(arguments)
                else f"{functions * count(arguments)} functions, {functions} for each direction"
            ),
            is_of_run=False,
        ),
        meets("direction", _directions),
        equals("hidden_size", size_of(2, -1), "the size of the states by the weight"),
    )


def _heads(name: str, position: int) -> list[Condition]:
    def size(arguments: Arguments) -> int | None:
        return arguments.shape(position)[2] if arguments.rank(position) == 3 else None

    return [at_least(name, 1), divides(name, size, "the last size of its input")]


def _rotated(value: int, arguments: Arguments) -> str | None:
    shape = arguments.shape()
    size = shape[-1] if len(shape) == 4 else shape[-1] // max(arguments["num_heads"] or 1, 1)
    return None if value % 2 == 0 and 0 <= value <= size else f"an even number from 0 to {size}, the size of a head"


#: The conditions by the names of operators.
CONDITIONS: dict[str, Sequence[Condition]] = {
    "Attention": (
        *_heads("q_num_heads", 0),
        *_heads("kv_num_heads", 1),
        one_of("qk_matmul_output_mode", 0, 1, 2, 3),
        divides("kv_num_heads", lambda arguments: arguments["q_num_heads"], "the number of heads of the queries"),
    ),
    "Dropout": (meets("ratio", _fraction),),
    "Gelu": (one_of("approximate", "none", "tanh"),),
    "GlobalLpPool": (at_least("p", 1),),
    "GroupNormalization": (
        at_least("num_groups", 1),
        divides("num_groups", channels, "the number of channels of the input"),
    ),
    "GRU": _recurrent(2),
    "LpNormalization": (axis(), one_of("p", 1, 2)),
    "LRN": (at_least("size", 1), ranks("x", 0, 2, 64, "a batch and channels: at least 2 axes")),
    "LSTM": _recurrent(3),
    "MeanVarianceNormalization": (axes(),),
    "NegativeLogLikelihoodLoss": _LOSS,
    "RNN": _recurrent(1),
    "RotaryEmbedding": (
        at_least("num_heads", 0),
        meets("rotary_embedding_dim", _rotated),
        ranks("x", 0, 3, 4, "3 or 4 axes"),
    ),
    "SoftmaxCrossEntropyLoss": _LOSS,
}
