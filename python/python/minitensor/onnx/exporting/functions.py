"""`Functions`: the functions of a model, which any runtime can execute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import onnx
from onnx import helper

if TYPE_CHECKING:
    from .builder import Builder

__all__ = ["DOMAIN", "MATH", "Functions"]

#: The domain of functions that belong to no plugin.
DOMAIN = "minitensor"
#: The domain of functions of numbers that ONNX lacks.
MATH = "minitensor.math"

#: Writes the nodes of a function, given its inputs. Returns the names of the outputs.
Write = Callable[["Builder", Sequence[str]], list[str]]


class Functions:
    """The functions of a model. Equal ones are written once."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self._made: dict[tuple[str, str], onnx.FunctionProto] = {}

    @property
    def protos(self) -> list[onnx.FunctionProto]:
        """The functions, each after those that it calls."""
        return list(self._made.values())

    def named(self, name: str, inputs: Sequence[str], write: Write) -> onnx.FunctionProto:
        """Returns the function of this name, which is the same in all models."""
        found = self._made.get((MATH, name))
        return found or self._add(self._written(MATH, name, inputs, [], write, ""))

    def of(
        self, domain: str, name: str, inputs: Sequence[str], attributes: Sequence[str], write: Write, doc: str
    ) -> onnx.FunctionProto:
        """Returns a function with this body. If another function has its name, it gets a number."""
        number = 1
        while True:
            unique = name if number == 1 else f"{name}_{number}"
            made = self._written(domain, unique, inputs, attributes, write, doc)
            found = self._made.get((domain, unique))
            if found is None:
                return self._add(made)
            if found == made:
                return found
            number += 1

    def _add(self, made: onnx.FunctionProto) -> onnx.FunctionProto:
        self._made[made.domain, made.name] = made
        return made

    def _written(
        self, domain: str, name: str, inputs: Sequence[str], attributes: Sequence[str], write: Write, doc: str
    ) -> onnx.FunctionProto:
        from .builder import Builder

        builder = Builder(self)
        builder.taken.update(inputs)
        outputs = write(builder, inputs)
        imports = [helper.make_opsetid(used, self.opset if used == "" else 1) for used in sorted(builder.domains)]
        return helper.make_function(
            domain, name, list(inputs), outputs, builder.nodes, imports, list(attributes), doc_string=doc or None
        )
