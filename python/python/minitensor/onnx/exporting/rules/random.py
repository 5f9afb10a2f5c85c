"""Random numbers."""

from __future__ import annotations

from typing import NoReturn

from ..builder import Value
from ..call import Call
from ..rule import rule

__all__: list[str] = []


_DRAWS = ("key", "skip", "uniform", "normal", "integers", "dropout")


@rule("rand_like", *(f"random::{name}" for name in _DRAWS), only_moves=True)
def random(call: Call) -> NoReturn:
    raise call.error(
        "it draws random numbers, which a runtime would draw differently",
        "export the model in evaluation mode, or pass the random numbers as an argument",
    )


@rule("dropout", only_moves=True)
def dropout(call: Call) -> Value:
    if call.plain("training") and call.plain("p") > 0:
        random(call)
    return call["x"].apply("Identity")
