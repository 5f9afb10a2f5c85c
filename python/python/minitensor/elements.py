"""Elements: symbols that record the program of a function of numbers or rows."""

from __future__ import annotations

import difflib
import functools
import json
import math
import numbers
import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from . import _minitensor, ops
from ._definitions import INTEGER_FUNCTIONS, define
from ._minitensor import Tensor

__all__ = ["Element"]

_Function = Callable[..., Any]
#: The functions of programs whose results are truth values.
_CONDITIONS = {
    "equal",
    "truthy",
    "less",
    "less_equal",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
    "truth",
    "and",
    "or",
    "not",
}
#: Functions of elements that are not ops, with the number of their arguments.
_FUNCTIONS = {"mul_add": 3, "normal_cdf": 1, "normal_pdf": 1, "recip": 1}
#: Functions whose operands are truth values, by the number of these operands.
_OF_CONDITIONS = {"and": 2, "or": 2, "not": 1, "select": 1}
#: The largest number of nodes of a program.
_MOST_NODES = 1 << 14
#: The largest exponent of a product of factors.
_MOST_FACTORS = 64

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
    "argsort",
    "take",
    "put",
}
#: Nodes that are the same for all elements of a row.
_REDUCTIONS = {"sum", "prod", "max", "min"}

#: Functions of rows with a second argument.
_OF_TWO = {
    "dot": ["y"],
    "at": ["index"],
    "recurrence": ["coefficients"],
    "reverse_recurrence": ["coefficients"],
    "take": ["index"],
    "put": ["index"],
}

#: The operators of Python that NumPy computes by a ufunc, for a number of NumPy on the left.
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}
#: Functions of elements by the names that NumPy has for them, where these differ.
_NUMPY_NAMES = {"fabs": "abs", "rint": "round", "fmax": "maximum", "fmin": "minimum", "float_power": "power"}

#: Functions of rows that differ from the ops of these names.
_METHODS = {"sort", "argsort", "take"}

_Node = tuple[Any, ...]


@functools.cache
def _row_functions() -> dict[str, dict[str, Any]]:
    """The functions of rows, as programs."""
    return {name: json.loads(program) for name, program in _minitensor._row_functions()}


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
        """What the op computes."""
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
        function, *operands = node
        if function in _VARYING:
            return not (function == "input" and operands[0] in self._numbers)
        count = 0 if function in {"uniform", "constant", "truth", *_REDUCTIONS} else len(operands)
        count = 1 if function in INTEGER_FUNCTIONS else count
        return any(self._varies[node] for node in operands[:count])

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
        raise TypeError(f"op '{self.op}': expected a real number, got {type(given).__name__}")

    def has(self, name: str) -> bool:
        """Returns whether elements have a function of this name. It may still reject the element."""
        return self._is_own(name) or _minitensor._op_identity(name) is not None

    def _is_own(self, name: str) -> bool:
        """Returns whether elements have a function of this name that is not an op."""
        of_rows = self.is_of_rows and (name in _row_functions() or name == "shift")
        return of_rows or name in _FUNCTIONS or name == "detach"

    def lacks(self, name: str) -> str:
        """Returns the message for a function that elements do not have."""
        things, decorator = ("rows", "row_op") if self.is_of_rows else ("elements", "element_op")
        if hasattr(Tensor, name):
            return f"op '{self.op}': '{name}' is an attribute of tensors, not of {things}; see help(mt.{decorator})"
        known = [*_FUNCTIONS, *(name for name in dir(ops) if not name.startswith("_") and not name.endswith("_"))]
        known += [*_row_functions(), "shift"] if self.is_of_rows else ["detach"]
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
        """Returns the value of a function of `_FUNCTIONS`."""
        count = _FUNCTIONS[function]
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
        is_function = self.is_of_rows and name in _row_functions()
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
        program = _row_functions()[name]
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
            elif function in ("constant", "epsilon", "truth"):
                made.append(self.add(function, *operands))
            else:
                count = 1 if function in INTEGER_FUNCTIONS else len(operands)
                conditions = _OF_CONDITIONS.get(function, 0)
                for k in operands[conditions:count]:
                    self.number(op, made[k])
                made.append(self.add(function, *(made[k]._node for k in operands[:count]), *operands[count:]))
        outputs = tuple(made[node] for _, node in program["outputs"])
        return outputs[0] if len(outputs) == 1 else outputs


def call(name: str, arguments: dict[str, Any]) -> Element | tuple[Element, ...]:
    """Calls an op on elements."""
    lists = [v if isinstance(v, (list, tuple)) else [v] for v in arguments.values()]
    (trace, *_) = (v._trace for values in lists for v in values if isinstance(v, Element))
    return trace.call(name, arguments)


def _binary(op: str, *, is_reflected: bool = False, of_conditions: str | None = None) -> _Function:
    def method(self: Element, other: object) -> Any:
        other = self._trace.value(other)
        x, y = (other, self) if is_reflected else (self, other)
        if of_conditions is not None and (x._is_condition or y._is_condition):
            x, y = self._trace.condition(x), self._trace.condition(y)
            return getattr(self, "_" + of_conditions)(x, y)
        first, second = (declared.name for declared in define(op).inputs)
        return self._trace.call(op, {first: x, second: y})

    return method


class Element:
    """A number or a truth value in the function of an element op, or a row of them in the function of a row op.

    It has the operators of Python. Functions are ops (`mt.ops.exp(x)`), or methods of the same names (`x.exp()`). A
    comparison is a truth value. Combine truth values with `&`, `|` and `~`, and select by
    `mt.ops.where(condition, x, y)`.
    """

    __slots__ = ("_node", "_trace")

    def __init__(self, trace: Trace, node: int) -> None:
        self._trace = trace
        self._node = node

    @property
    def _is_condition(self) -> bool:
        return self._trace.nodes[self._node][0] in _CONDITIONS

    __add__, __radd__ = _binary("add"), _binary("add", is_reflected=True)
    __sub__, __rsub__ = _binary("subtract"), _binary("subtract", is_reflected=True)
    __mul__, __rmul__ = _binary("multiply"), _binary("multiply", is_reflected=True)
    __truediv__, __rtruediv__ = _binary("divide"), _binary("divide", is_reflected=True)
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _binary("floor_divide", is_reflected=True)
    __mod__, __rmod__ = _binary("remainder"), _binary("remainder", is_reflected=True)
    __rpow__ = _binary("power", is_reflected=True)
    __lshift__, __rlshift__ = _binary("bitwise_left_shift"), _binary("bitwise_left_shift", is_reflected=True)
    __rshift__, __rrshift__ = _binary("bitwise_right_shift"), _binary("bitwise_right_shift", is_reflected=True)
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __eq__, __ne__ = _binary("equal"), _binary("not_equal")
    __and__ = _binary("bitwise_and", of_conditions="and")
    __rand__ = _binary("bitwise_and", is_reflected=True, of_conditions="and")
    __or__ = _binary("bitwise_or", of_conditions="or")
    __ror__ = _binary("bitwise_or", is_reflected=True, of_conditions="or")
    __xor__ = _binary("bitwise_xor", of_conditions="xor")
    __rxor__ = _binary("bitwise_xor", is_reflected=True, of_conditions="xor")
    __hash__ = None  # type: ignore[assignment]

    def _and(self, x: Element, y: Element) -> Element:
        return self._trace.add("and", x._node, y._node)

    def _or(self, x: Element, y: Element) -> Element:
        return self._trace.add("or", x._node, y._node)

    def _xor(self, x: Element, y: Element) -> Element:
        return self._and(self._or(x, y), ~self._and(x, y))

    def __invert__(self) -> Any:
        if self._is_condition:
            return self._trace.add("not", self._node)
        return self._trace.call("bitwise_invert", {"x": self})

    def __pow__(self, exponent: object) -> Any:
        is_integer = isinstance(exponent, numbers.Integral) and not isinstance(exponent, bool)
        count = int(exponent) if is_integer else 0  # type: ignore[call-overload]
        if 0 < abs(count) <= _MOST_FACTORS and not self._is_condition:
            product = self._product(abs(count))
            return product if count > 0 else 1 / product
        return _binary("power")(self, exponent)

    def _product(self, count: int) -> Any:
        """The product of `count` factors, by repeated squaring."""
        if count == 1:
            return self
        root = self._product(count // 2)
        return root * root if count % 2 == 0 else root * root * self

    def __neg__(self) -> Any:
        return self._trace.call("negative", {"x": self})

    def __pos__(self) -> Element:
        return self

    def __abs__(self) -> Any:
        return self._trace.call("abs", {"x": self})

    def __getattr__(self, name: str) -> _Function:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _FUNCTIONS:
            return lambda *args: self._trace.apply(name, self, *args)
        if (self._trace.is_of_rows or name == "detach") and name in _row_functions():
            return functools.partial(self._of_row, name)
        if _minitensor._op_identity(name) is None:
            raise AttributeError(self._trace.lacks(name))
        function = getattr(ops, name)
        return lambda *args, **keywords: function(self, *args, **keywords)

    def _of_row(self, name: str, *args: object, **keywords: object) -> Any:
        # Some take another row, or an index. Others work along the row, and take no axis.
        takes = _OF_TWO.get(name, [])
        if len(args) > len(takes):
            raise TypeError(
                f"op '{self._trace.op}': '{name}' works along the row and takes no axis: expected {len(takes)} "
                f"positional arguments, got {len(args)}"
            )
        return self._trace.call_row(name, {"x": self} | dict(zip(takes, args, strict=False)) | keywords)

    def shift(self, places: int) -> Element:
        """The element `places` before this one, or after it if `places` is negative; 0 outside of the row."""
        if not self._trace.is_of_rows:
            raise AttributeError(f"op '{self._trace.op}': an element has no neighbours; define a row op with mt.row_op")
        if isinstance(places, bool) or not isinstance(places, numbers.Integral):
            raise TypeError(
                f"op '{self._trace.op}': 'shift' takes the number of places as an int, got {type(places).__name__}; "
                "annotate an attribute with int"
            )
        if not -(2**63) <= int(places) < 2**63:
            raise ValueError(f"op '{self._trace.op}': 'shift' by {places} places does not fit into int64")
        return self._trace.add("shift", self._trace.number("shift", self)._node, int(places))

    def __bool__(self) -> NoReturn:
        self._refuse_attribute()
        raise TypeError(
            f"op '{self._trace.op}': 'if', 'while', 'and', 'or' and 'not' cannot depend on {self._trace.kind}, because "
            "the function runs once for all elements; use mt.ops.where(condition, x, y), and '&', '|', '~' for "
            "conditions"
        )

    def _refuse_attribute(self) -> None:
        if self._trace.nodes[self._node][0] == "uniform":
            raise TypeError(
                f"op '{self._trace.op}': a float attribute has no value while the function runs; annotate it with int, "
                "bool or str, so that the function gets its value"
            )

    def _refuse(self, *_: object) -> NoReturn:
        self._refuse_attribute()
        raise TypeError(
            f"op '{self._trace.op}': {self._trace.kind} has no value while the op is defined; use methods, such as "
            "x.exp(), and the functions of mt.ops"
        )

    __float__ = __int__ = __complex__ = __index__ = _refuse

    def _refuse_as(self, of_rows: str, of_elements: str = "") -> NoReturn:
        self._refuse_attribute()
        instead = of_rows if self._trace.is_of_rows else of_elements or "define a row op with mt.row_op"
        raise TypeError(f"op '{self._trace.op}': {self._trace.kind} has no value while the op is defined; {instead}")

    def __getitem__(self, index: object) -> NoReturn:
        self._refuse_as("use x.at(index) for one element of the row, and x.take(index) for one at each position")

    def __len__(self) -> NoReturn:
        self._refuse_as("use x.count() for the length of the row")

    def __iter__(self) -> NoReturn:
        self._refuse_as("use reductions, such as x.sum() and x.max(), or x.at(index) for one element")

    def __round__(self, ndigits: object = None) -> NoReturn:
        self._refuse_as("use x.round()", "use x.round()")

    def __floor__(self) -> NoReturn:
        self._refuse_as("use x.floor()", "use x.floor()")

    def __ceil__(self) -> NoReturn:
        self._refuse_as("use x.ceil()", "use x.ceil()")

    def __trunc__(self) -> NoReturn:
        self._refuse_as("use x.trunc()", "use x.trunc()")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        # Of an operator with a number of NumPy on the left, NumPy calls the ufunc.
        name = ufunc.__name__
        if method == "__call__" and name in _OPERATORS and not keywords:
            return _OPERATORS[name](*(self._trace.value(x) for x in inputs))
        return self._refuse_numpy(name, inputs if method == "__call__" else ())

    def __array_function__(self, function: Any, _: object, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        name = _NUMPY_NAMES.get(function.__name__, function.__name__)
        if args and isinstance(args[0], Element) and self._trace.has(name):
            return getattr(args[0], name)(*args[1:], **keywords)
        return self._refuse_numpy(function.__name__, ())

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            f"op '{self._trace.op}': {self._trace.kind} cannot become an array, because it has no value while the op "
            "is defined; use methods, such as x.exp(), and the functions of mt.ops"
        )

    def _refuse_numpy(self, name: str, operands: tuple[Any, ...]) -> NoReturn:
        """Raises the error for a function of NumPy. The operands are those for which there may be a method."""
        own = _NUMPY_NAMES.get(name, name)
        if operands and self._trace.has(own):
            instead = f"write x.{own}()" if len(operands) == 1 else f"write mt.ops.{own}(x, y)"
        elif name.startswith("logical_"):
            instead = "combine conditions with '&', '|' and '~'"
        else:
            instead = "use methods, such as x.exp(), and the functions of mt.ops"
        raise TypeError(
            f"op '{self._trace.op}': NumPy's '{name}' cannot compute {self._trace.kind}, which has no value while the "
            f"op is defined; {instead}"
        )

    def __repr__(self) -> str:
        return f"<{self._trace.kind.split()[-1]} of op '{self._trace.op}'>"
