"""An op as an object like NumPy's universal functions."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._definitions import Definition, define
from .._minitensor import _array_function, _infer
from . import reduction
from .block import BlockFunction
from .rule import Rule, core_rule, text, written

__all__ = ["Ufunc"]

#: The arguments of a call that NumPy's ufuncs have. An attribute of the op with the same name takes precedence.
OPTIONS = ("out", "where", "axes", "axis", "keepdims", "casting", "order", "dtype", "subok", "signature")

CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


class Ufunc:
    """An op with the interface of NumPy's ufuncs. `mt.as_ufunc` makes it."""

    def __init__(self, name: str) -> None:
        definition = define(name)
        self._definition = definition
        self._attrs = [a.name for a in definition.attrs]
        self._rule: Rule = core_rule(definition, {}, "as_ufunc")
        self._call: Callable[..., Any] = _array_function(name)
        self._required = sum(i.arity == "one" for i in definition.inputs)
        self.__name__ = self.__qualname__ = definition.name
        self.__doc__ = self._call.__doc__
        #: The number of inputs.
        self.nin = len(definition.inputs)
        #: The number of outputs.
        self.nout = len(definition.outputs)
        #: The number of inputs and outputs.
        self.nargs = self.nin + self.nout
        #: The signature of a generalized ufunc; `None` for an element op.
        self.signature: str | None = None if self._rule.is_elementwise else _signature(self._rule)
        #: The value that changes nothing as an operand, if reductions know one.
        self.identity = reduction.IDENTITIES.get(definition.name)

    @property
    def types(self) -> list[str]:
        """The dtypes of the inputs and outputs that the op computes without conversion, by NumPy's characters."""
        return list(_types(self._definition))

    @property
    def ntypes(self) -> int:
        """The number of `types`."""
        return len(self.types)

    def __repr__(self) -> str:
        return f"<ufunc of minitensor's op '{self.__name__}'>"

    def __reduce__(self) -> tuple[Any, ...]:
        # The process that unpickles it needs the same plugin.
        return _of_block, (BlockFunction(self.__name__, None, {}),)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return ("minitensor.ufunc", BlockFunction(self.__name__, None, {}).__dask_tokenize__())

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Calls the op. `args` are the inputs, and then perhaps the arrays for the outputs."""
        inputs, outs = list(args[: self.nin]), args[self.nin :]
        for option in keywords:
            if option not in self._attrs and option not in OPTIONS:
                raise TypeError(
                    f"{self.__name__}() has no argument '{option}'; it has the attributes {self._attrs} and "
                    f"{list(OPTIONS)}"
                )
        if len(inputs) < self._required or len(outs) > self.nout:
            counts = f"{self._required} to {self.nargs}" if self._required < self.nargs else str(self.nargs)
            raise TypeError(f"{self.__name__}() takes {counts} positional arguments, got {len(args)}")
        options = {k: keywords.pop(k) for k in OPTIONS if k in keywords and k not in self._attrs}
        given = _outputs(self, outs, options.pop("out", None))
        overridden = _override(self, "__call__", inputs, given, options | keywords)
        if overridden is not NotImplemented:
            return overridden
        return self._compute(inputs, given, keywords, **options)

    def _compute(
        self,
        inputs: list[Any],
        outs: tuple[Any, ...],
        attrs: dict[str, Any],
        *,
        where: Any = True,
        casting: Any = "same_kind",
        order: Any = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
        axes: Any = None,
        axis: Any = None,
        keepdims: bool = False,
    ) -> Any:
        for option, value, words in (("casting", casting, CASTINGS), ("order", order, "KACF")):
            if value not in words:
                raise ValueError(f"{self.__name__}(): {option} must be one of {', '.join(words)}, got {value!r}")
        if self.signature is None and (axes is not None or axis is not None or keepdims):
            raise TypeError(f"{self.__name__}() is an element op, which has no axes, axis and keepdims")
        if self.signature is not None and where is not True:
            raise TypeError(f"{self.__name__}() has core dimensions, so it does not support where")
        arrays = [_operand(x, subok) for x in inputs]
        if not any(isinstance(x, np.ndarray | np.generic) for x in arrays):
            arrays = [x if x is None else np.asarray(x) for x in arrays]
        arrays = self._converted(arrays, dtype, signature, casting)
        moves = _Axes(self, arrays, axes, axis, keepdims) if self.signature is not None else None
        if moves is not None:
            arrays = moves.to_last(arrays)
        results = self._results(arrays, attrs)
        if moves is not None:
            results = moves.from_last(results)
        stored = [_store(self, r, out, where, casting, order) for r, out in zip(results, outs, strict=True)]
        return stored[0] if self.nout == 1 else tuple(stored)

    def _results(self, arrays: list[Any], attrs: dict[str, Any]) -> list[np.ndarray]:
        """Returns the results of the op. Inputs without a batch are combined with those that have one by loops."""
        cores = [len(operand.core) for operand in self._rule.inputs[: len(arrays)]]
        is_looped = not self._rule.is_elementwise and any(
            array is not None and not operand.is_batched and np.ndim(array) > core
            for array, operand, core in zip(arrays, self._rule.inputs, cores, strict=False)
        )
        if is_looped:
            return self._looped(arrays, cores, attrs)
        results = self._call(*arrays, **attrs)
        return list(results) if self.nout > 1 else [results]

    def _looped(self, arrays: list[Any], cores: list[int], attrs: dict[str, Any]) -> list[np.ndarray]:
        """Calls the op for each index of the dimensions before the core dimensions of inputs without a batch."""
        shapes = [np.shape(a)[: np.ndim(a) - core] for a, core in zip(arrays, cores, strict=True) if a is not None]
        batched = [o.is_batched for a, o in zip(arrays, self._rule.inputs, strict=False) if a is not None]
        depth = max(len(shape) for shape, is_batched in zip(shapes, batched, strict=True) if not is_batched)
        loops = np.broadcast_shapes(*(shape[-depth:] for shape in shapes))

        def part(array: Any, core: int, index: tuple[int, ...]) -> Any:
            if array is None:
                return None
            loop = array.shape[: array.ndim - core][-depth:]
            chosen = tuple(0 if n == 1 else i for n, i in zip(loop, index[depth - len(loop) :], strict=True))
            return array[(slice(None),) * (array.ndim - core - len(loop)) + chosen]

        if 0 in loops:
            metas = [None if a is None else _meta(a, core, depth) for a, core in zip(arrays, cores, strict=True)]
            metas += [None] * (self.nin - len(metas))
            found = _infer(self.__name__, metas, attrs)
            made = [(shape, len(o.core), dtype) for (shape, dtype), o in zip(found, self._rule.outputs, strict=True)]
            return [np.empty(s[: len(s) - n] + loops + s[len(s) - n :], dtype) for s, n, dtype in made]
        outs: list[np.ndarray] = []
        for index in np.ndindex(*loops):
            results = self._call(*(part(a, core, index) for a, core in zip(arrays, cores, strict=True)), **attrs)
            for k, result in enumerate(results if self.nout > 1 else [results]):
                lead = result.ndim - len(self._rule.outputs[k].core)
                if len(outs) <= k:
                    outs.append(np.empty(result.shape[:lead] + loops + result.shape[lead:], result.dtype))
                outs[k][(slice(None),) * lead + index] = result
        return outs

    def _converted(self, arrays: list[Any], dtype: Any, signature: Any, casting: Any) -> list[Any]:
        """Returns the inputs with the dtypes that `dtype` or `signature` requests."""
        if dtype is None and signature is None:
            return arrays
        if dtype is not None and signature is not None:
            raise TypeError(f"{self.__name__}(): pass dtype or signature, not both")
        definition = self._definition
        rules = [i.dtype for i in definition.inputs] + [o.dtype for o in definition.outputs]
        wanted = [None] * self.nin + [dtype] * self.nout if signature is None else _requested(self, signature)
        chosen: dict[str, np.dtype] = {}
        for rule, request in zip(rules, wanted, strict=True):
            if request is None:
                continue
            request = np.dtype(request)
            known = definition.dtypes.get(rule)
            if (
                request.name not in (known if known is not None else [rule])
                or chosen.setdefault(rule, request) != request
            ):
                takes = f"one of {known}" if known is not None else f"'{rule}'"
                raise TypeError(
                    f"{self.__name__}() has no loop for the dtype {request}; the dtype of '{rule}' is {takes}"
                )
        converted = []
        for array, spec in zip(arrays, definition.inputs, strict=False):
            target = chosen.get(spec.dtype)
            if target is None or array is None:
                converted.append(array)
            elif isinstance(array, np.ndarray | np.generic):
                _check_cast(self, f"input '{spec.name}'", array.dtype, target, casting)
                converted.append(array.astype(target))
            else:
                converted.append(np.asarray(array, target))
        return converted

    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = reduction.ABSENT,
        where: Any = True,
        **attrs: Any,
    ) -> Any:
        """Applies the op to the elements along the axes, as `np.ufunc.reduce`. Ops of which NumPy knows the identity,
        such as `add`,
        are applied to pairs; all others from the left to the right."""
        options = _given(axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        own = functools.partial(reduction.reduce, self, array, axis, dtype, out, keepdims, initial, where, attrs)
        return self._by_operands("reduce", [array], out, options | attrs, own)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None, **attrs: Any) -> Any:
        """Returns all intermediate results of a reduction from the left to the right, as `np.ufunc.accumulate`."""
        own = functools.partial(reduction.accumulate, self, array, axis, dtype, out, attrs)
        return self._by_operands("accumulate", [array], out, _given(axis=axis, dtype=dtype) | attrs, own)

    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None, **attrs: Any
    ) -> Any:
        """Reduces slices of an axis, as `np.ufunc.reduceat`."""
        own = functools.partial(reduction.reduceat, self, array, indices, axis, dtype, out, attrs)
        return self._by_operands("reduceat", [array, indices], out, _given(axis=axis, dtype=dtype) | attrs, own)

    def outer(self, a: Any, b: Any, /, **keywords: Any) -> Any:
        """Applies the op to all pairs of elements, as `np.ufunc.outer`."""
        options = {name: value for name, value in keywords.items() if name != "out"}
        own = functools.partial(reduction.outer, self, a, b, keywords)
        return self._by_operands("outer", [a, b], keywords.get("out"), options, own)

    def at(self, array: Any, indices: Any, b: Any = reduction.ABSENT, /, **attrs: Any) -> Any:
        """Applies the op in place to the elements at the indices, as `np.ufunc.at`: an index that occurs twice counts
        twice."""
        operands = [array, indices] if b is reduction.ABSENT else [array, indices, b]
        own = functools.partial(reduction.at, self, array, indices, b, attrs)
        return self._by_operands("at", operands, None, attrs, own)

    def _by_operands(
        self, method: str, inputs: list[Any], out: Any, options: dict[str, Any], own: Callable[[], Any]
    ) -> Any:
        """Returns the result of a method by `__array_ufunc__` of an operand, else that of `own`."""
        outs = out if isinstance(out, tuple) else (out,)
        overridden = _override(self, method, inputs, outs, options)
        return own() if overridden is NotImplemented else overridden


def _given(**options: Any) -> dict[str, Any]:
    """Returns the options of a method that differ from the defaults."""
    defaults = {"axis": 0, "initial": reduction.ABSENT, "where": True, "keepdims": False, "dtype": None}
    return {name: value for name, value in options.items() if value is not defaults[name]}


def _of_block(block: BlockFunction) -> Ufunc | BlockFunction:
    """Returns the ufunc of an op. Without the op, or of another version, returns a function whose call raises."""
    return Ufunc(block.__name__) if block.is_available() else block


def _signature(rule: Rule) -> str:
    """Returns the signature. A size that is neither a name nor a number is written as in the definition of the op."""
    return text(*([[written(d) for d in o.core] for o in side] for side in (rule.inputs, rule.outputs)))


def _types(definition: Definition) -> Iterable[str]:
    """Yields the dtypes of each loop, such as `ff->f`. NumPy has no character for bfloat16."""
    rules = [i.dtype for i in definition.inputs], [o.dtype for o in definition.outputs]
    variables = {r: definition.dtypes[r] for side in rules for r in side if r in definition.dtypes}
    defaults = {f"={a.name}": str(a.default) for a in definition.attrs}
    for dtypes in itertools.product(*variables.values()):
        names = dict(zip(variables, dtypes, strict=True)) | defaults
        if "bfloat16" not in names.values():
            yield "->".join("".join(_character(names.get(r, r)) for r in side) for side in rules)


def _character(dtype: str) -> str:
    try:
        return np.dtype(dtype).char
    except TypeError:
        return "?" if dtype == "bool" else "O"


def _operand(x: Any, subok: bool) -> Any:
    """Returns an input as an array; Python's numbers stay numbers, whose dtype is that of the arrays."""
    if x is None or (isinstance(x, bool | int | float | complex) and not isinstance(x, np.generic)):
        return x
    return np.asanyarray(x) if subok else np.asarray(x)


def _outputs(ufunc: Ufunc, positional: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """Returns the arrays for the outputs: `None` for a new one, and `...` for a new one that never becomes a scalar."""
    if positional and out is not None:
        raise TypeError(f"{ufunc.__name__}(): out is passed by position and by keyword")
    given = positional if positional else out if isinstance(out, tuple) else (out,)
    if isinstance(out, tuple) and len(out) != ufunc.nout:
        raise ValueError(f"{ufunc.__name__}(): the tuple out must have {ufunc.nout} items, got {len(out)}")
    given += (given[0] if given[0] is ... else None,) * (ufunc.nout - len(given))
    for item in given:
        if item is not None and item is not ... and not hasattr(item, "__array_ufunc__"):
            raise TypeError(f"{ufunc.__name__}(): out must be an array, got {type(item).__name__}")
    return given


def _override(ufunc: Ufunc, method: str, inputs: list[Any], outs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Calls `__array_ufunc__` of the operands that define it, such as arrays of Dask; `NotImplemented` if there are
    none."""
    operands: list[Any] = []
    for x in (*inputs, *outs):
        own = getattr(type(x), "__array_ufunc__", np.ndarray.__array_ufunc__)
        if own is None:
            raise TypeError(f"operand of {type(x).__name__} does not support ufuncs (__array_ufunc__=None)")
        if own is not np.ndarray.__array_ufunc__ and all(type(x) is not type(y) for y in operands):
            # A subclass precedes its base.
            place = next((k for k, y in enumerate(operands) if isinstance(x, type(y))), len(operands))
            operands.insert(place, x)
    if not operands:
        return NotImplemented
    if any(out is not None for out in outs):
        keywords = keywords | {"out": outs}
    for x in operands:
        result = x.__array_ufunc__(ufunc, method, *inputs, **keywords)
        if result is not NotImplemented:
            return result
    classes = ", ".join(type(x).__name__ for x in operands)
    raise TypeError(f"operand types do not support {ufunc.__name__}(): {classes}; convert them with np.asarray")


def _requested(ufunc: Ufunc, signature: Any) -> list[Any]:
    """Returns the dtypes of a signature such as `ff->f`, of a tuple with a dtype for each operand, or of one dtype."""
    if isinstance(signature, str) and "->" in signature:
        left, _, right = signature.partition("->")
        signature = tuple(left + right)
    elif not isinstance(signature, tuple):
        signature = (None,) * ufunc.nin + (signature,) * ufunc.nout
    if len(signature) != ufunc.nargs:
        raise ValueError(f"{ufunc.__name__}(): signature needs {ufunc.nargs} dtypes, got {len(signature)}")
    return list(signature)


def _check_cast(ufunc: Ufunc, what: str, source: np.dtype, target: np.dtype, casting: Any) -> None:
    if not np.can_cast(source, target, casting):
        raise TypeError(
            f"{ufunc.__name__}(): cannot cast {what} from {source} to {target} with casting rule '{casting}'"
        )


def _store(ufunc: Ufunc, result: Any, out: Any, where: Any, casting: Any, order: Any) -> Any:
    """Returns a result in the form that the caller requests."""
    if where is not True:
        where = np.asarray(where)
        if where.dtype != bool:
            raise TypeError(f"{ufunc.__name__}(): where must be an array of bool, got {where.dtype}")
    if out is None or out is ...:
        if where is not True:
            made = np.empty(np.broadcast_shapes(result.shape, where.shape), result.dtype)
            np.copyto(made, result, where=where)
            result = made
        if order in ("C", "F"):
            result = np.asanyarray(result, order=order)
        return result[()] if result.ndim == 0 and out is None and type(result) is np.ndarray else result
    shape = result.shape if where is True else np.broadcast_shapes(result.shape, where.shape)
    if np.broadcast_shapes(shape, out.shape) != out.shape:
        raise ValueError(f"{ufunc.__name__}(): out has the shape {out.shape}, but the result has {shape}")
    _check_cast(ufunc, "the result", result.dtype, out.dtype, casting)
    np.copyto(out, result, casting=casting, where=where)
    return out


def _meta(array: Any, core: int, depth: int) -> tuple[tuple[int, ...], str]:
    """Returns the shape and dtype of the parts of an array."""
    loop = array.shape[: array.ndim - core]
    return loop[: max(len(loop) - depth, 0)] + array.shape[array.ndim - core :], array.dtype.name


class _Axes:
    """The axes of the core dimensions of a call, which the op expects last."""

    def __init__(self, ufunc: Ufunc, arrays: list[Any], axes: Any, axis: Any, keepdims: bool) -> None:
        name = ufunc.__name__
        operands = [*ufunc._rule.inputs, *ufunc._rule.outputs]
        self.cores = [len(o.core) for o in operands]
        self.nin = ufunc.nin
        if axes is not None and axis is not None:
            raise TypeError(f"{name}(): pass axes or axis, not both")
        if "axis" in ufunc._attrs and axes is not None:
            raise TypeError(f"{name}(): the op has the attribute axis; pass axis instead of axes")
        inputs, outputs = self.cores[: self.nin], self.cores[self.nin :]
        self.keepdims = keepdims
        if keepdims and (any(outputs) or len(set(inputs)) != 1):
            raise TypeError(
                f"{name}() does not support keepdims: its inputs must have the same number of core dimensions, and "
                "its outputs none"
            )
        if axis is not None:
            names = {d for o in operands for d in o.core}
            if len(names) != 1 or max(self.cores) != 1:
                raise TypeError(f"{name}(): axis needs exactly one core dimension, got {ufunc.signature}; pass axes")
            axes = [(axis,) * n if n or not keepdims else (axis,) for n in self.cores]
        self.axes = None if axes is None else self._checked(name, axes)

    def _checked(self, name: str, axes: Any) -> list[tuple[int, ...]]:
        made = [(a,) if isinstance(a, int) else tuple(a) for a in axes]
        if len(made) == self.nin and not any(self.cores[self.nin :]):
            made += [made[0] if self.keepdims else ()] * (len(self.cores) - self.nin)
        wanted = self.cores[: self.nin] + [self.cores[0] if self.keepdims else n for n in self.cores[self.nin :]]
        if [len(a) for a in made] != wanted:
            raise ValueError(f"{name}(): axes must have {wanted} axes for the inputs and outputs, got {axes}")
        return made

    def to_last(self, arrays: list[Any]) -> list[Any]:
        """Moves the core axes of the inputs to the end."""
        if self.axes is None:
            return arrays
        pairs = zip(arrays, self.axes, strict=False)
        return [a if a is None else np.moveaxis(np.asanyarray(a), at, range(-len(at), 0)) for a, at in pairs]

    def from_last(self, results: list[Any]) -> list[Any]:
        """Moves the core axes of the outputs to their places."""
        if self.keepdims:
            count = self.cores[0]
            results = [r.reshape(*r.shape, *(1,) * count) for r in results]
        if self.axes is None:
            return results
        pairs = zip(results, self.axes[self.nin :], strict=True)
        return [np.moveaxis(r, range(-len(at), 0), at) for r, at in pairs]
