"""Writes the programs of an op that is a Python function."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ._trace import Trace
from .custom import _Schema
from .elements import Element

__all__ = ["Writer"]


class Writer:
    """Runs the function of an op with symbols, and returns its program.

    Floats are symbols. The function gets the values of other attributes, and `None` for what is not given.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        schema: _Schema,
        new_trace: Callable[[], Trace],
        outputs: list[str] | None,
    ) -> None:
        self._function = function
        self._schema = schema
        self._new_trace = new_trace
        #: The names of the outputs, which the first run determines if they are not given.
        self._outputs = outputs

    def __call__(self, values: list[Any], given: list[bool]) -> str:
        """Returns the program for the values of the attributes, and for the inputs that are given, as JSON."""
        trace, schema = self._new_trace(), self._schema
        inputs = [trace.add("input", k) if is_given else None for k, is_given in enumerate(given)]
        floats = [name for name, kind, _ in schema.attrs if kind == "float"]
        attributes: dict[str, Any] = {}
        for (name, _, _), value in zip(schema.attrs, values, strict=True):
            is_symbol = name in floats and value is not None
            attributes[name] = trace.add("uniform", floats.index(name)) if is_symbol else schema.value(name, value)
        try:
            results = self._results(trace, self._function(*inputs, **attributes))
        except Exception as error:
            static = [f"{k}={v!r}" for k, v in attributes.items() if not isinstance(v, Element)]
            static += [f"{name}=None" for (name, _), x in zip(schema.inputs, inputs, strict=True) if x is None]
            note = f"op '{trace.op}' was called with {', '.join(static)}"
            if static and note not in getattr(error, "__notes__", []):
                error.add_note(note)
            raise
        nodes, places = trace.program([at for _, at in results])
        program = {
            "inputs": [name for name, _ in schema.inputs],
            "uniforms": floats,
            "nodes": nodes,
            "outputs": [(name, at) for (name, _), at in zip(results, places, strict=True)],
        }
        return json.dumps(program)

    def _results(self, trace: Trace, returned: object) -> list[tuple[str, int]]:
        results = returned if isinstance(returned, tuple) else (returned,)
        if returned is None or not results:
            raise TypeError(f"op '{trace.op}': the function returned nothing; check that it has a return statement")
        if self._outputs is None:
            self._outputs = [f"out{k}" for k in range(len(results))] if len(results) > 1 else ["out"]
        if len(self._outputs) != len(results):
            raise ValueError(
                f"op '{trace.op}': the function returned {len(results)} outputs, expected {len(self._outputs)}: "
                f"{self._outputs}"
            )
        values = [trace.value(result) for result in results]
        return [(name, value._node) for name, value in zip(self._outputs, values, strict=True)]
