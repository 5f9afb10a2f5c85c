"""Elements: symbols with which a function of numbers or rows records its program."""

from __future__ import annotations

import functools
import json
import numbers
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from . import _minitensor, ops
from ._definitions import define

if TYPE_CHECKING:
    from ._trace import Trace

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
    "bits_equal",
    "bits_less",
    "truth",
    "and",
    "or",
    "not",
}
#: Functions of elements that are no element ops, with the number of their arguments.
FUNCTIONS = {"conj": 1, "mul_add": 3, "normal_cdf": 1, "normal_pdf": 1, "recip": 1}
#: The largest exponent of a product of factors.
_MOST_FACTORS = 64

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


@functools.cache
def row_functions() -> dict[str, dict[str, Any]]:
    """The functions of rows, as programs."""
    return {name: json.loads(program) for name, program in _minitensor._row_functions()}


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
            # The inverse comes first: the derivative of a product that underflows would be 0, not infinite.
            base = self if count > 0 else 1 / self
            return base._product(abs(count))
        return _binary("power")(self, exponent)

    def _product(self, count: int) -> Any:
        """The product of `count` factors, by repeated squaring."""
        if count == 1:
            return self
        root = self._product(count // 2)
        return root * root if count % 2 == 0 else root * root * self

    def __matmul__(self, other: object) -> NoReturn:
        of_rows = "use x.dot(y) for the product of two rows"
        advice = of_rows if self._trace.is_of_rows else "define a row op with mt.row_op"
        raise TypeError(f"op '{self._trace.op}': '@' is not defined for {self._trace.kind}; {advice}")

    def __divmod__(self, other: object) -> NoReturn:
        raise TypeError(f"op '{self._trace.op}': 'divmod' is not defined here; write x // y and x % y")

    __rmatmul__, __rdivmod__ = __matmul__, __divmod__

    def __neg__(self) -> Any:
        return self._trace.call("negative", {"x": self})

    def __pos__(self) -> Element:
        return self

    def __abs__(self) -> Any:
        return self._trace.call("abs", {"x": self})

    def __getattr__(self, name: str) -> _Function:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in FUNCTIONS:
            return lambda *args: self._trace.apply(name, self, *args)
        if (self._trace.is_of_rows or name == "detach") and name in row_functions():
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
                f"op '{self._trace.op}': '{name}' works along the row and takes no axis"
                + (f"; it takes only {', '.join(takes)}" if takes else "")
                + f": got {len(args)} positional argument{'' if len(args) == 1 else 's'}"
            )
        return self._trace.call_row(name, {"x": self} | dict(zip(takes, args, strict=False)) | keywords)

    def _expect_row(self) -> None:
        if not self._trace.is_of_rows:
            raise AttributeError(f"op '{self._trace.op}': an element has no neighbours; define a row op with mt.row_op")

    def shift(self, places: int | None = None) -> Element:
        """The element `places` before this one, or after it if `places` is negative; 0 outside of the row."""
        self._expect_row()
        if isinstance(places, bool) or not isinstance(places, numbers.Integral):
            raise TypeError(
                f"op '{self._trace.op}': 'shift' takes the number of places as an int, got {type(places).__name__}; "
                "annotate an attribute with int"
            )
        if not -(2**63) <= int(places) < 2**63:
            raise ValueError(f"op '{self._trace.op}': 'shift' by {places} places does not fit into int64")
        return self._trace.add("shift", self._trace.number("shift", self)._node, int(places))

    def scan(self, step: Callable[[Any, Any], Any], *others: object) -> Any:
        """The results `h` of a step from the first element on: `h[i] = step(h[i - 1], x[i])`, and `h[0] = x[0]`.

        With other rows, `step` takes and returns tuples, with one element of each row.
        """
        self._expect_row()
        return self._trace.scan(self, others, step)

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
