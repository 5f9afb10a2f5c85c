"""`OnnxModel`: a module that computes an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _minitensor as mt
from ... import nn
from ..._minitensor import Tensor
from ...nn.paths import add_tensor, get_tensor
from .error import OnnxError
from .names import paths
from .narrow import Format, NarrowTensor
from .preparation import Prepared, Variable
from .values import Value, described, from_array, is_text, may_be_known, public

__all__ = ["OnnxModel"]

#: Integers of at most this size and of at most one axis are shapes and axes, not data.
MAX_SHAPE = 64


class OnnxModel(nn.Module):
    """A model of an ONNX file.

    Parameters are the initializers of floats that have axes. Buffers are the others: scalars, integers, running means.
    Initializers that say shapes, axes and the like are constants of the graph.

    `inputs` and `outputs` describe the arguments and results. The model computes the same in training and in
    evaluation mode: ONNX says in each node whether it drops elements or updates means.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.inputs = prepared.inputs
        self.outputs = prepared.outputs
        self._run = run = _Run(prepared)
        for name, path in run.paths.items():
            is_parameter = name in run.parameters
            tensor = run.tensors.pop(name).requires_grad_(is_parameter)
            add_tensor(self, path, tensor, "parameter" if is_parameter else "buffer")

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs, in order. Those with a default are passed by name only."""
        return tuple(variable.name for variable in self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs, in order."""
        return tuple(variable.name for variable in self.outputs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the output, or a tuple of the outputs if there are several."""
        run = self._run
        scope: dict[str, Value] = dict(run.constants)
        for name, path in run.paths.items():
            found = get_tensor(self, path)
            scope[name] = NarrowTensor(found, run.formats[name]) if name in run.formats else found
        scope.update(self._arguments(args, kwargs))
        missing = [str(variable) for variable in self.inputs if variable.name not in scope]
        if missing:
            raise OnnxError(f"the model {self._name!r} misses the input {', '.join(missing)}; pass it")
        results = tuple(public(value) for value in run.graph.run(scope, [scope[name] for name in self.input_names]))
        return results[0] if len(results) == 1 else results

    @property
    def _name(self) -> str:
        return self._run.graph.name

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Value]:
        required = [v for v in self.inputs if v.name not in self._run.defaults]
        if len(args) > len(required):
            names = ", ".join(variable.name for variable in required)
            raise OnnxError(f"the model {self._name!r} has {len(required)} inputs ({names}), got {len(args)}")
        named = {variable.name: value for variable, value in zip(required, args, strict=False)}
        for name in kwargs:
            if name in named:
                raise OnnxError(f"the model {self._name!r} got the input '{name}' by position and by name")
        variables = {variable.name: variable for variable in self.inputs}
        for name, value in (named | kwargs).items():
            if name not in variables:
                names = ", ".join(map(str, self.inputs)) or "none"
                raise OnnxError(f"the model {self._name!r} has no input '{name}'; it has {names}")
            named[name] = _accepted(variables[name], value)
        return named

    def extra_repr(self) -> str:
        lines = [f"\n  {arrow} {v}" for arrow, vs in (("<-", self.inputs), ("->", self.outputs)) for v in vs]
        return "".join([repr(self._name), *lines])


class _Run:
    """What a model runs. Slots: `mt.jit` does not watch them for changes."""

    __slots__ = ("constants", "defaults", "formats", "graph", "parameters", "paths", "tensors")

    def __init__(self, prepared: Prepared) -> None:
        self.graph = prepared.graph
        readers = prepared.graph.readers()
        self.constants: dict[str, Value] = {}
        self.formats: dict[str, Format] = {}
        self.parameters: set[str] = set()
        self.tensors: dict[str, Tensor] = {}
        #: The inputs that need not be passed.
        self.defaults = {v.name for v in prepared.inputs} & prepared.arrays.keys()
        for name in list(prepared.arrays):
            # Removed, so that the memory of the arrays is freed one by one.
            array = prepared.arrays.pop(name)
            kinds = readers.get(name, {"Value"})
            if is_text(array) or may_be_known(array) and ("Known" in kinds or _is_shape(array)):
                self.constants[name] = array
                continue
            value = from_array(array)
            if isinstance(value, NarrowTensor):
                self.formats[name] = value.format
                value = value.values
            elif value.dtype.is_floating_point and value.ndim and "Fixed" not in kinds:
                self.parameters.add(name)
            self.tensors[name] = value
        #: The path of each tensor in the module.
        self.paths = paths(self.tensors, (*dir(OnnxModel), "inputs", "outputs", "_run"))


def _is_shape(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind in "biu" and array.ndim <= 1 and array.size <= MAX_SHAPE


def _accepted(variable: Variable, value: Any) -> Value:
    """Returns the value of an input, if it is of its type."""
    if isinstance(value, np.ndarray | np.generic):
        value = from_array(np.asarray(value))
    elif isinstance(value, list):
        return [from_array(item) if isinstance(item, np.ndarray) else item for item in value]
    elif not isinstance(value, Tensor | NarrowTensor) and hasattr(value, "__dlpack__"):
        value = mt.from_dlpack(value)
    if variable.shape is None and variable.dtype in ("sequence", "optional", "map", "value"):
        return value
    if not isinstance(value, Tensor | NarrowTensor) and not is_text(value):
        raise OnnxError(f"the input {variable}: expected a tensor, got {described(value)}")
    dtype = value.format.name if isinstance(value, NarrowTensor) else "STRING" if is_text(value) else value.dtype.name
    shape = tuple(value.shape)
    fits = variable.shape is None or (
        len(shape) == len(variable.shape)
        and all(not isinstance(want, int) or want == size for want, size in zip(variable.shape, shape, strict=True))
    )
    if dtype != variable.dtype or not fits:
        raise OnnxError(f"the input {variable}: got {described(value)}")
    return value
