"""Ops that are programs, written in Python. They need no compiler.

A function of numbers, or of rows, is run with symbols in place of its arguments, once for each choice of its static
attributes and optional inputs. The symbols record the program of the function. So the op is like one written in Rust:
it broadcasts, takes every dtype that supports its functions, and has derivatives of any order.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _minitensor
from ._trace import Trace
from ._writer import Writer
from .custom import _replace, _Schema, check_properties

if typing.TYPE_CHECKING:
    from ._minitensor import DTypeLike

__all__ = ["element_op", "row_op"]

_Function = Callable[..., Any]
#: An input of a shape clause that is one number per row.
_NUMBER = re.compile(r"(\w+)\s*:\s*\[\s*(?:\.\.)?\s*\]")


@typing.overload
def element_op(function: _Function, /) -> _Function: ...
@typing.overload
def element_op(
    *,
    name: str | None = None,
    outputs: Sequence[str] | None = None,
    where: str | None = None,
    dtypes: Mapping[str, DTypeLike] | None = None,
    properties: str | None = None,
) -> Callable[[_Function], _Function]: ...
def element_op(
    function: _Function | None = None,
    /,
    *,
    name: str | None = None,
    outputs: Sequence[str] | None = None,
    where: str | None = None,
    dtypes: Mapping[str, DTypeLike] | None = None,
    properties: str | None = None,
) -> Any:
    """Registers a function of numbers as an element op, and returns `mt.ops.<name>`.

    The function is run with symbols in place of numbers. It may use operators, the functions of `mt.ops` that are
    computed element by element, and other element ops. The op is like one written in Rust: its inputs broadcast, it
    takes every dtype that supports its functions, half-precision numbers are computed in `float32`, and it has
    derivatives of any order.

    A parameter that is annotated with `float`, or has a number as its default, is an attribute, and a symbol.
    Attributes of the other types of `mt.custom_op` are static: the function gets their values, and is run once for
    each of them. All other parameters are inputs. One whose default is `None` is optional, and `None` if not given.
    A function that returns a tuple has several outputs, named `out0`, `out1`, …, or as `outputs` says.
    `where="b >= 0"` states conditions on attributes, separated by commas. A call that violates one raises an error.
    `dtypes={"steps": "int8"}` says which inputs and outputs are stored as integers: the function computes with floats,
    and results are converted, without their fraction, and limited to the range of the dtype. The only output is `out`.
    `properties="symmetric"` states identities that the results satisfy, as in `mt.custom_op`.

    >>> import minitensor as mt
    >>> @mt.element_op(name="docs::squareplus", where="b >= 0")
    ... def squareplus(x, b: float = 4.0):
    ...     \"\"\"A smooth `max(x, 0)`.\"\"\"
    ...     return (x + (x * x + b).sqrt()) / 2
    >>> x = mt.Tensor([0.0, 1.5], requires_grad=True)
    >>> y = squareplus(x)
    >>> y.tolist()
    [1.0, 2.0]
    >>> y.sum().backward()
    >>> x.grad.tolist()
    [0.5, 0.800000011920929]
    >>> mt.unregister_custom_op_py("docs::squareplus")
    """
    if function is None:
        return lambda f: _register(f, name, outputs, where, dtypes, properties)
    return _register(function, name, outputs, where, dtypes, properties)


@typing.overload
def row_op(function: _Function, /) -> _Function: ...
@typing.overload
def row_op(
    *,
    name: str | None = None,
    outputs: Sequence[str] | None = None,
    shape: str | None = None,
    where: str | None = None,
    axis: int | None = ...,
    dtypes: Mapping[str, DTypeLike] | None = None,
    properties: str | None = None,
) -> Callable[[_Function], _Function]: ...
def row_op(
    function: _Function | None = None,
    /,
    *,
    name: str | None = None,
    outputs: Sequence[str] | None = None,
    shape: str | None = None,
    where: str | None = None,
    axis: Any = ...,
    dtypes: Mapping[str, DTypeLike] | None = None,
    properties: str | None = None,
) -> Any:
    """Registers a function of rows as a row op, and returns `mt.ops.<name>`.

    A row is the last axis of a tensor. The function is run with symbols in place of rows. It is written for one
    element: operators and functions apply to each element, as in `mt.element_op`, and a reduction such as `x.sum()` is
    a number that all elements of the row share. The reductions are `sum`, `mean`, `prod`, `max`, `min`, `argmax`,
    `argmin`, `any`, `all`, `var` and `std` (with `correction=0`), `logsumexp`, `dot(y)`, and `at(index)`, which is NaN
    if there is no such element. `cumsum`, `reverse_cumsum`, `cumprod`, `cummax` and `cummin` are running results, and
    `x.recurrence(a)` is `h[i] = a[i] * h[i - 1] + x[i]`; `reverse_recurrence` begins at the end. `x.scan(step)` is any
    other: `h[i] = step(h[i - 1], x[i])`, and `h[0] = x[0]`. With `x.scan(step, y)`, the step takes and returns pairs.
    `shift(places)`, `reverse`, `sort`, `argsort`, `take(index)` and `put(index)` rearrange the row. `count` is the
    length of the row, and `position` the index of the element. `detach` stops gradients. Other row ops may be called,
    such as `mt.ops.softmax(x)`.

    The op takes floating dtypes, computes half-precision numbers in `float32`, and has derivatives of any order.
    Attributes, optional inputs, `outputs`, `where`, `dtypes` and `properties` are those of `mt.element_op`.

    Every input is a row, and their other axes broadcast. A result that is the same for all elements is one number per
    row. `shape` says otherwise, as in Rust: `(x: [.., n], t: [..], weight: [n]) -> [.., n]` takes one number `t` per
    row, and one `weight` for all rows.

    `axis=-1` lets the caller choose the axis of the row, with that default. With `axis=None` a caller may choose
    several, and the default is all. Rows `[.., n]` must then have the same number of dimensions. If a result is a
    number per row, the op also takes `keepdims`.

    >>> import minitensor as mt
    >>> @mt.row_op(name="docs::rms_norm", where="eps >= 0")
    ... def rms_norm(x, weight, eps: float = 0.0):
    ...     \"\"\"`x` divided by the root of its mean square.\"\"\"
    ...     return x / ((x * x).mean() + eps).sqrt() * weight
    >>> x = mt.Tensor([[1.0, 7.0], [3.0, 3.0]], requires_grad=True)
    >>> rms_norm(x, mt.Tensor([1.0, 2.0])).tolist()
    [[0.20000000298023224, 2.799999952316284], [1.0, 2.0]]
    >>> mt.unregister_custom_op_py("docs::rms_norm")
    """
    row = (shape, None if axis is ... else (axis,))
    if function is None:
        return lambda f: _register(f, name, outputs, where, dtypes, properties, row)
    return _register(function, name, outputs, where, dtypes, properties, row)


#: The shape clause of a row op, and the default of its axis.
_Row = tuple[str | None, tuple[int | None] | None]


def _register(
    function: _Function,
    name: str | None,
    outputs: Sequence[str] | None,
    where: str | None,
    dtypes: Mapping[str, DTypeLike] | None,
    properties: str | None,
    row: _Row | None = None,
) -> _Function:
    kind = "element" if row is None else "row"
    if not callable(function):
        raise TypeError(f"{kind}_op takes a function, got {type(function).__name__}; pass the name as name=")
    name = name or getattr(function, "__name__", None)
    if name is None:
        raise TypeError(f"{kind}_op: a {type(function).__name__} has no name; pass name=")
    for key, text, example in (
        ("where", where, "b >= 0"),
        ("shape", row and row[0], "(x: [.., n], t: [..]) -> [.., n]"),
    ):
        if text is not None and not isinstance(text, str):
            raise TypeError(f"op '{name}': {key} must be a text such as '{example}', got {type(text).__name__}")
    check_properties(name, properties)
    if not isinstance(dtypes or {}, Mapping) or not all(isinstance(key, str) for key in dtypes or {}):
        raise TypeError(f"op '{name}': dtypes must be a dict such as {{'steps': 'int8'}}, got {dtypes!r}")
    if outputs is not None and (isinstance(outputs, str) or not all(isinstance(o, str) for o in outputs)):
        raise TypeError(f"op '{name}': outputs must be a list of names, got {outputs!r}")
    if row and row[1] and row[1] != (None,) and (type(row[1][0]) is not int):
        raise TypeError(f"op '{name}': axis must be an int, or None for all axes, got {type(row[1][0]).__name__}")
    schema = _schema(function, name, kind)
    if not schema.inputs:
        raise TypeError(f"op '{name}': expected at least one input, a parameter without a default, got none")
    if outputs is not None and len(set(outputs)) < len(outputs):
        raise ValueError(f"op '{name}': the names of outputs must differ, got {list(outputs)}")
    clause = (row and row[0]) or ""
    per_row = _NUMBER.findall(clause.partition("->")[0])
    numbers = frozenset(k for k, (n, _) in enumerate(schema.inputs) if n in per_row)
    new_trace = functools.partial(Trace, name, is_of_rows=row is not None, numbers=numbers)
    writer = Writer(function, schema, new_trace, None if outputs is None else list(outputs))
    doc = inspect.getdoc(function) or f"The op {name}, defined in Python."
    code = getattr(inspect.unwrap(function), "__code__", None)
    place = (code.co_filename, code.co_firstlineno) if code else ("<python>", 0)
    stored = list((dtypes or {}).items())
    op = _minitensor._build_program_op(
        name, writer, schema.inputs, schema.attrs, row, where, properties, stored, doc, *place
    )
    origin = [getattr(function, part, None) or "<lambda>" for part in ("__module__", "__qualname__")]
    return _replace(op, ".".join(origin))


def _schema(function: _Function, name: str, kind: str) -> _Schema:
    schema = _Schema(function, name, takes_lists=False)
    for input_name, how in schema.inputs:
        if how == "variadic":
            article = "an element" if kind == "element" else "a row"
            raise TypeError(f"op '{name}': the input '{input_name}' of {article} op cannot be {how}")
    # A number is the default of a float, unless an annotation says otherwise.
    schema.attrs = [
        (attribute, "float" if of == "int" and attribute in schema.not_annotated else of, default)
        for attribute, of, default in schema.attrs
    ]
    return schema
