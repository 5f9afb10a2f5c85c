"""Traces: the programs that functions of elements record."""

from __future__ import annotations

import difflib
import json
import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

from . import _minitensor, ops
from ._definitions import define, needed, operands_of, renumbered
from ._minitensor import Tensor
from ._steps import scan
from .elements import FUNCTIONS, Element, row_functions

#: Functions whose operands are truth values, by the number of these operands.
_OF_CONDITIONS = {"and": 2, "or": 2, "not": 1, "select": 1}
#: The largest number of nodes of a program.
_MOST_NODES = 1 << 14
#: Nodes that differ from element to element of a row.
_VARYING = {
    "input",
    "position",
    "cumsum",
    "reverse_cumsum",
    "shift",
    "reverse",
    "cummax",
    "recurrence",
    "scan",
    "argsort",
    "take",
    "put",
}
#: Nodes that are the same for all elements of a row.
_REDUCTIONS = {"sum", "prod", "max", "min"}
#: Functions of rows that differ from the ops of these names.
_METHODS = {"sort", "argsort", "take"}

_Node = tuple[Any, ...]


#: What to write instead of values that no element is computed with, by the names of their types.
_ADVICE = {
    "NoneType": "; an optional input that is not given is None: test 'y is None' first",
    "complex": "; pass its parts as two numbers, or make it an input",
    "list": "; make it a parameter, which may be a row",
    "tuple": "; make it a parameter, which may be a row",
    "ndarray": "; make it a parameter, or a plain number",
    "str": "; compare an attribute with 'attribute == \"word\"', and use the words only in Python's 'if'",
}


class Trace:
    """The program of one op, while its function runs. `numbers` are the inputs of a row op with one number per row."""

    def __init__(self, op: str, *, is_of_rows: bool = False, numbers: frozenset[int] = frozenset()) -> None:
        self.op = op
        self.is_of_rows = is_of_rows
        self.nodes: list[_Node] = []
        self._numbers = numbers
        self._known: dict[str, int] = {}
        #: For each node, whether it differs along a row.
        self._varies: list[bool] = []

    @property
    def kind(self) -> str:
        """Whether it is a row op or an element op, in words for errors."""
        return "a row" if self.is_of_rows else "an element"

    def add(self, *node: Any) -> Element:
        """Returns the value of a node. Equal nodes are one."""
        key = json.dumps(node)
        if key not in self._known:
            if len(self.nodes) == _MOST_NODES:
                raise ValueError(f"op '{self.op}': the function has more than {_MOST_NODES} steps")
            self._known[key] = len(self.nodes)
            self.nodes.append(node)
            self._varies.append(self._does_vary(node))
        return Element(self, self._known[key])

    def _does_vary(self, node: _Node) -> bool:
        if node[0] in _VARYING:
            return not (node[0] == "input" and node[1] in self._numbers)
        return node[0] not in _REDUCTIONS and any(self._varies[operand] for operand in operands_of(node))

    def parameter(self) -> Element:
        """Returns a new element, which only the step of a scan has."""
        return self.add("input", f"parameter {len(self.nodes)}")

    @staticmethod
    def is_of_whole_rows(node: _Node) -> bool:
        """Returns whether a node that is no input needs more than one element of a row."""
        return node[0] in _REDUCTIONS or node[0] in _VARYING - {"input", "position"}

    def scan(self, first: Element, others: tuple[object, ...], step: Callable[[Any, Any], Any]) -> Any:
        """Returns the results of a step along rows."""
        return scan(self, first, others, step)

    def program(self, results: list[int]) -> tuple[list[_Node], list[int]]:
        """Returns the nodes that results need, and the places of the results among them."""
        moved: dict[int, int] = {}
        nodes: list[_Node] = []
        for at in needed(self.nodes, results):
            function, *rest = self.nodes[at]
            if function == "input" and isinstance(rest[0], str):
                raise TypeError(f"op '{self.op}': an element of a step of 'scan' was kept; it exists only in the step")
            moved[at] = len(nodes)
            nodes.append(renumbered(self.nodes[at], moved))
        return nodes, [moved[at] for at in results]

    def value(self, given: object) -> Element:
        """Returns an element or a number as an element."""
        if isinstance(given, Element):
            if given._trace is not self:
                raise TypeError(f"op '{self.op}': an element of op '{given._trace.op}' was kept; it exists only there")
            return given
        if isinstance(given, Tensor):
            raise TypeError(
                f"op '{self.op}': {self.kind} op cannot use a Tensor; make it a parameter, or a plain number"
            )
        if getattr(given, "ndim", None) == 0 and hasattr(given, "item"):
            # A number of NumPy.
            given = given.item()
        if isinstance(given, bool):
            return self.add("constant", given)
        if isinstance(given, numbers.Integral):
            if not -(2**63) <= int(given) < 2**63:
                raise ValueError(f"op '{self.op}': the integer {given} does not fit into int64; write a float")
            return self.add("constant", int(given))
        if isinstance(given, numbers.Real):
            number = float(given)
            # JSON has no text for these numbers.
            text = "NaN" if math.isnan(number) else str(number)
            return self.add("constant", number if math.isfinite(number) else text)
        raise TypeError(
            f"op '{self.op}': expected a real number, got {type(given).__name__}{_ADVICE.get(type(given).__name__, '')}"
        )

    def has(self, name: str) -> bool:
        """Returns whether elements have a function of this name. It may still reject the element."""
        return self._is_own(name) or _minitensor._op_identity(name) is not None

    def _is_own(self, name: str) -> bool:
        """Returns whether elements have a function of this name that is not an op."""
        of_rows = self.is_of_rows and (name in row_functions() or name == "shift")
        return of_rows or name in FUNCTIONS or name == "detach"

    def lacks(self, name: str) -> str:
        """Returns the message for a function that elements do not have."""
        things, decorator = ("rows", "row_op") if self.is_of_rows else ("elements", "element_op")
        if hasattr(Tensor, name):
            return f"op '{self.op}': '{name}' is an attribute of tensors, not of {things}; see help(mt.{decorator})"
        known = [*FUNCTIONS, *(name for name in dir(ops) if not name.startswith("_") and not name.endswith("_"))]
        known += [*row_functions(), "shift"] if self.is_of_rows else ["detach"]
        near = [f"'{n}'" for n in difflib.get_close_matches(name, dict.fromkeys(known), n=8) if self._is_callable(n)]
        question = f"; did you mean {' or '.join(near[:3])}?" if near else ""
        return f"op '{self.op}': there is no function '{name}' of {things}; see help(mt.{decorator}){question}"

    def _is_callable(self, name: str) -> bool:
        """Returns whether a known name is that of a function of elements or, in a row op, of rows."""
        if self._is_own(name):
            return True
        if _minitensor._op_identity(name) is None:
            return False
        described = ops.describe(name)
        return "program" in described and (self.is_of_rows or not described["shape_rule"].startswith("("))

    def condition(self, given: object) -> Element:
        """Returns an element or a number as a truth value."""
        value = self.value(given)
        return value if value._is_condition else self.add("truthy", value._node)

    def apply(self, function: str, *args: object) -> Element:
        """Returns the value of a function of `FUNCTIONS`."""
        count = FUNCTIONS[function]
        if len(args) != count:
            raise TypeError(f"op '{self.op}': '{function}' takes {count - 1} arguments, got {len(args) - 1}")
        return self.add(function, *(self.number(function, self.value(x))._node for x in args))

    def number(self, function: str, value: Element) -> Element:
        """Returns an element that is not a condition."""
        if value._is_condition:
            raise TypeError(
                f"op '{self.op}': '{function}' takes numbers, got a condition; write mt.ops.where(condition, 1.0, 0.0)"
            )
        return value

    def call(self, name: str, arguments: Mapping[str, Any]) -> Element | tuple[Element, ...]:
        """Inserts the program of an op, or of a function of rows."""
        if name in FUNCTIONS:
            return self.apply(name, *arguments.values())
        is_function = self.is_of_rows and name in row_functions()
        if is_function and name not in _METHODS:
            return self.call_row(name, arguments)
        if is_function:
            raise TypeError(
                f"op '{self.op}': a row op cannot call the op '{name}', but the method x.{name}(…) of a row"
            )
        definition = define(name)
        for declared in definition.inputs:
            at = declared.name
            if declared.mutated:
                raise TypeError(f"op '{self.op}': '{name}' changes '{at}' in place; write x = f(x) instead")
            if declared.arity == "one" and arguments.get(at) is None:
                form = ops.describe(name)["signature"]
                raise TypeError(f"op '{self.op}': '{name}' lacks the argument '{at}'; call it as {form}")
        for attribute in definition.attrs:
            if isinstance(arguments.get(attribute.name), Element) and attribute.kind != "float":
                raise TypeError(
                    f"op '{self.op}': attribute '{attribute.name}' of '{name}' must be known when the op is "
                    "defined; pass a plain value"
                )
        inputs = [declared.name for declared in definition.inputs]
        given = [arguments.get(i) is not None for i in inputs]
        attributes = {k: v for k, v in arguments.items() if k not in inputs}
        # The value of an attribute that is a number of the program does not change the program.
        static = {k: 0.5 if isinstance(v, Element) else v for k, v in attributes.items()}
        found = _minitensor._program(name, static, given)
        if found is None or found["is_of_rows"] and not self.is_of_rows:
            how = "along rows" if self.is_of_rows else "element by element"
            reason = f"is not computed {how}; call it in an op of whole tensors, with mt.custom_op"
            reason = "works on rows; define a row op with mt.row_op" if found else reason
            raise TypeError(f"op '{self.op}': {self.kind} op cannot call '{name}', which {reason}")
        self._check_axis(name, attributes)
        program = json.loads(found["program"])
        tensors = [arguments.get(inputs[at]) for _, at in found["inputs"]]
        uniforms = []
        for u, (where, at) in zip(program["uniforms"], found["uniforms"], strict=True):
            number = arguments.get(inputs[at]) if where == "input" else at
            if where == "input" and definition.inputs[at].dtype.startswith("int"):
                raise TypeError(f"op '{self.op}': '{name}' takes positions in the row, '{u}'; use x.at({u})")
            if where == "input" and self._varies[self.value(0 if number is None else number)._node]:
                raise TypeError(f"op '{self.op}': '{u}' of '{name}' must be one number for the row, got a row")
            uniforms.append(attributes[u] if isinstance(attributes.get(u), Element) else number)
        return self._insert(name, program, tensors, uniforms)

    def _check_axis(self, name: str, attributes: Mapping[str, Any]) -> None:
        axis = attributes.get("axis")
        if axis not in (None, -1, [-1], (-1,)):
            raise ValueError(
                f"op '{self.op}': '{name}' works along the row here, got axis={axis}; leave out the axis, and choose "
                "the axis of the op with mt.row_op(axis=…)"
            )

    def call_row(self, name: str, arguments: Mapping[str, Any]) -> Element | tuple[Element, ...]:
        """Inserts a function of rows."""
        program = row_functions()[name]
        takes = [*program["inputs"], *program["uniforms"]]
        for key, value in arguments.items():
            if key not in takes and key not in ("axis", "keepdims") and value is not None:
                raise TypeError(f"op '{self.op}': '{name}' of a row takes {', '.join(takes)}, got '{key}'")
        self._check_axis(name, arguments)
        required = [*program["inputs"], *(key for key in program["uniforms"] if key != "correction")]
        lacking = next((key for key in required if arguments.get(key) is None), None)
        if lacking:
            raise TypeError(f"op '{self.op}': '{name}' of a row lacks the argument '{lacking}'")
        uniforms = [0.0 if arguments.get(key) is None else arguments[key] for key in program["uniforms"]]
        for key, number in zip(program["uniforms"], uniforms, strict=True):
            if self._varies[self.value(number)._node]:
                raise TypeError(f"op '{self.op}': '{key}' of '{name}' must be one number for the row, got a row")
        return self._insert(name, program, [arguments[key] for key in program["inputs"]], uniforms)

    def _insert(
        self, op: str, program: dict[str, Any], tensors: list[Any], uniforms: list[Any]
    ) -> Element | tuple[Element, ...]:
        made: list[Element] = []
        for function, *operands in program["nodes"]:
            if function == "input":
                made.append(self.value(0 if tensors[operands[0]] is None else tensors[operands[0]]))
            elif function == "uniform":
                made.append(self.value(uniforms[operands[0]]))
            elif function == "truthy":
                made.append(self.condition(made[operands[0]]))
            elif function in ("constant", "bits", "epsilon", "truth"):
                made.append(self.add(function, *operands))
            else:
                node = (function, *operands)
                for k in operands_of(node)[_OF_CONDITIONS.get(function, 0) :]:
                    self.number(op, made[k])
                made.append(self.add(*renumbered(node, [value._node for value in made])))
        outputs = tuple(made[node] for _, node in program["outputs"])
        return outputs[0] if len(outputs) == 1 else outputs
