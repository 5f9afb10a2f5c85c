"""`LoadedModel`: a model that runs graphs, without the code that made them."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import nn
from .._minitensor import Tensor
from ..ir import IR
from ..ir.symbols import bind
from ..nn.paths import add_tensor, get_tensor
from ..tracing import Jitted, jit
from . import structure
from .carried import Missing
from .interpreter import Interpreter

__all__ = ["Branch", "LoadedModel"]


class Branch(NamedTuple):
    """A graph, and the calls that it is for."""

    ir: IR
    #: The structure of `(args, kwargs)`, and of the result.
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    #: The mode of the module: True in training, False in evaluation, None for both.
    training: bool | None

    def __str__(self) -> str:
        tensors = [str(meta).partition(": ")[2] for meta in self.ir.inputs]
        (args, kwargs) = self.inputs["tuple"]
        shown = [structure.described(item, tensors) for item in args["tuple"]]
        shown += [f"{name}={structure.described(item, tensors)}" for name, item in kwargs["dict"]]
        mode = "" if self.training is None else f" in {'training' if self.training else 'evaluation'} mode"
        return f"({', '.join(shown)}){mode}"


class LoadedModel(nn.Module):
    """A model from a file. It has the parameters and buffers of the saved one, and runs its graphs.

    It can be called with tensors of the shapes and dtypes of the examples with which it was saved. It can be
    differentiated, trained, and saved again. `branches` are its graphs, and `missing` the ops that are neither
    registered nor in the file.
    """

    def __init__(
        self, tensors: dict[str, Tensor], kinds: dict[str, str], branches: list[Branch], missing: list[Missing]
    ) -> None:
        for name, tensor in tensors.items():
            # Constants are part of the graphs, not of the state.
            add_tensor(self, name, tensor, kinds[name])
        #: The kind of each tensor in the file.
        self._saved_kinds = kinds
        self.branches = branches
        self.missing = missing
        messages = {op.name: str(op) for op in missing}
        self._runs = [_Run(branch, messages) for branch in branches]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph for these arguments."""
        for run in self._runs:
            tensors: list[Tensor] = []
            if run.branch.training in (None, self.training) and structure.matches(
                run.branch.inputs, (args, kwargs), tensors
            ):
                metas = run.branch.ir.inputs
                sizes: dict[str, int] = {}
                pairs = list(zip(tensors, metas, strict=True))
                # Twice: a product of sizes may come before the sizes.
                if all(t.dtype.name == m.dtype and bind(m.shape, t.shape, sizes) for t, m in pairs * 2) and all(
                    least <= sizes.get(name, least) for name, (least, _) in run.branch.ir.symbols.items()
                ):
                    return run(tensors, self._weights(run.branch.ir))
        given: list[Tensor] = []
        try:
            shape = structure.written(args, given, "an argument")
            keywords = {name: structure.written(value, given, "an argument") for name, value in kwargs.items()}
        except TypeError as error:
            raise TypeError(str(error).replace("mt.save", "the loaded model")) from None
        texts = [f"{t.dtype.name} {t.shape}" for t in given]
        shown = [structure.described(item, texts) for item in shape["tuple"]]
        shown += [f"{name}={structure.described(item, texts)}" for name, item in keywords.items()]
        expected = "".join(f"\n  {branch}" for branch in self.branches)
        raise TypeError(
            f"the loaded model was called with ({', '.join(shown)}), but it was saved for:{expected}\nsave it with "
            "examples of all "
            "shapes that it is called with"
        )

    def _weights(self, ir: IR) -> list[Tensor]:
        return [get_tensor(self, meta.name) for meta in ir.weights]

    def extra_repr(self) -> str:
        return "".join(f"\n  {branch}" for branch in self.branches).lstrip()


class _Run:
    """A graph as a function under `mt.jit`."""

    def __init__(self, branch: Branch, missing: dict[str, str]) -> None:
        self.branch = branch
        self.interpreter = Interpreter(branch.ir, missing)
        self._jitted: Jitted[..., Any] = jit(self._compute)

    def _compute(self, inputs: list[Tensor], weights: list[Tensor]) -> list[Tensor]:
        names = (meta.name for meta in self.branch.ir.weights)
        return self.interpreter.run(inputs, dict(zip(names, weights, strict=True)))

    def __call__(self, inputs: list[Tensor], weights: list[Tensor]) -> Any:
        return structure.rebuilt(self.branch.outputs, self._jitted(inputs, weights))
