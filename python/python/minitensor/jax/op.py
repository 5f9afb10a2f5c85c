"""The functions of `minitensor.jax`."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._definitions import Definition
from .._minitensor import (
    _array_function,
    _binding_function,
    _encode_call,
    _number_dtypes,
    _op_identity,
    _registry_generation,
    _result_class,
)
from . import primitive
from .abstract import UnknownShapeError, fitting, metas, varying_axes, wide
from .call import Call, flags

#: Python's types of numbers, each before those that include it.
_KINDS: dict[str, type] = {"bool": bool, "int": int, "float": float, "complex": complex}
_PYTHON_NUMBERS = tuple(_KINDS.values())
#: A number of each kind.
_NUMBERS = {name: kind(0) for name, kind in _KINDS.items()}
#: The integers that may be converted to 64 bits.
_NARROW = (np.dtype("int32"), np.dtype("uint32"))
#: The class of arrays that have values.
_Array = type(jnp.zeros(()))
_CONCRETE = (_Array, np.ndarray, np.generic)


class Op:
    """An op as a function of arrays of JAX."""

    def __init__(self, name: str, version: int) -> None:
        self.version = version
        self._generation = _registry_generation()
        self._identity = _op_identity(name)
        self.definition = definition = Definition(name)
        self._binding = _binding_function(name)
        function = _array_function(name)
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__ = function.__doc__
        self.__signature__ = inspect.signature(function)
        is_named = len(definition.outputs) > 1 and not definition.gives_list
        self._result = _result_class(name) if is_named else None
        self._dtypes: dict[tuple[str | None, ...], list[str | None]] = {}
        # The call with arrays and defaults only.
        self._count = -1
        inputs = definition.inputs
        self._text = self._default_text()
        if self._text is not None and all(i.arity == "one" and not i.mutated for i in inputs):
            self._count = len(inputs)
            self._compiled = primitive.compiled(Call(self._text, "1" * len(inputs), version=version))

    def _default_text(self) -> str | None:
        try:
            return _encode_call(self.definition.name, {})
        except TypeError:
            # An attribute has no default.
            return None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._generation != _registry_generation():
            self._check_registered()
        if not kwargs and len(args) == self._count:
            for x in args:
                if type(x) is not _Array or x.weak_type:
                    break
            else:
                try:
                    return self._returned(self._compiled(*args))
                except (UnknownShapeError, TypeError):
                    # The other way may work. If not, it raises the error again.
                    pass
        return self.call(self._binding(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<op '{self.definition.name}' of minitensor.jax>"

    def __reduce__(self) -> Any:
        from .namespace import find

        return find, (self.definition.name,)

    def is_current(self) -> bool:
        """Whether the name still belongs to this op."""
        return bool(_op_identity(self.definition.name) == self._identity)

    def _check_registered(self) -> None:
        generation = _registry_generation()
        if self.is_current():
            self._generation = generation
        else:
            # Raises the reason.
            self._binding()

    def call(self, arguments: dict[str, Any]) -> Any:
        """Calls the op with arguments by name."""
        definition = self.definition
        if definition.mutated is not None:
            raise self._in_place()
        inputs: list[Any] = []
        for i in definition.inputs:
            value = arguments.pop(i.name, None)
            if i.arity == "variadic":
                if not isinstance(value, list | tuple):
                    raise self._wrong_input(i.name, value, "a list or tuple of arrays")
                inputs += [self._array(f"{i.name}[{k}]", x) for k, x in enumerate(value)]
            else:
                inputs.append(None if value is None else self._array(i.name, value))
        arrays = self._converted(inputs)
        text = self._encoded(arguments) if arguments or self._text is None else self._text
        present = self._present(text, flags([x is not None for x in inputs]), arrays)
        call = Call(text, present, version=self.version)
        if all(isinstance(x, _CONCRETE) for x in arrays):
            return self._returned(primitive.compute(call, arrays))
        return self._returned(primitive.bind(call, varying(arrays)))

    def _present(self, text: str, present: str, arrays: list[Any]) -> str:
        """The flags of the tensors. Integers are converted to 64 bits if the op takes no others."""
        if not any(x.dtype in _NARROW for x in arrays) or jax.config.jax_enable_x64:
            return present
        inputs = metas(present, arrays)
        last = len(self.definition.inputs) - 1
        wider = "".join(
            "2"
            if t is not None and self.definition.inputs[min(i, last)].dtype == "any" and wide(t[1]) != t[1]
            else flag
            for i, (t, flag) in enumerate(zip(inputs, present, strict=True))
        )
        found = None if wider == present else fitting(text, inputs, wider)
        if found is not None:
            # The call with arrays and defaults only does not convert.
            self._count = -1
        return found or present

    def _encoded(self, attributes: dict[str, Any]) -> str:
        for name, value in attributes.items():
            if isinstance(value, Tracer):
                raise TypeError(
                    f"op '{self.definition.name}': attribute '{name}' must be known when a function is traced, got a "
                    f"traced value; pass it with static_argnames='{name}' of jax.jit, or close over it"
                )
        return _encode_call(self.definition.name, attributes)

    def _array(self, name: str, value: Any) -> Any:
        """An argument as an array of JAX, or as a number."""
        if isinstance(value, jax.Array):
            if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
                raise TypeError(
                    f"op '{self.definition.name}': '{name}' must be an array of numbers, got {value.dtype}; take the "
                    "data of a key of random numbers with jax.random.key_data"
                )
            return value
        if isinstance(value, _PYTHON_NUMBERS):
            return value
        if isinstance(value, np.ndarray | np.generic):
            return jnp.asarray(value)
        raise self._wrong_input(name, value, "an array of JAX or NumPy, or a number")

    def _converted(self, inputs: list[Any]) -> list[Any]:
        """The inputs as arrays. Numbers, and the arrays that JAX makes of them, adopt the dtype of the others."""
        kinds = [None if x is None else kind_of(x) for x in inputs]
        if not any(kinds):
            return [x for x in inputs if x is not None]
        of = tuple(x.dtype.name if x is not None and not kind else kind for x, kind in zip(inputs, kinds, strict=True))
        converted = []
        for x, kind, dtype in zip(inputs, kinds, self._number_dtypes(of), strict=True):
            if kind is not None:
                x = jax.lax.convert_element_type(x, dtype) if isinstance(x, jax.Array) else np.asarray(x, dtype)
            if x is not None:
                converted.append(x)
        return converted

    def _number_dtypes(self, inputs: tuple[str | None, ...]) -> list[Any]:
        """The dtypes that numbers among the inputs adopt. A number is given by its kind."""
        found = self._dtypes.get(inputs)
        if found is None:
            is_double = "float64" in inputs or "complex128" in inputs
            given = [None if name is None else _NUMBERS.get(name, name) for name in inputs]
            found = _number_dtypes(self.definition.name, given)
            for i, name in enumerate(inputs):
                if name == "complex":
                    found[i] = "complex128" if is_double else "complex64"
            self._dtypes[inputs] = found
        # Whether there are 64 bits may change.
        return [None if dtype is None else jax.dtypes.canonicalize_dtype(dtype) for dtype in found]

    def _returned(self, results: list[Any]) -> Any:
        if self._result is not None:
            return self._result(*results)
        return tuple(results) if self.definition.gives_list else results[0]

    def _wrong_input(self, name: str, value: Any, expected: str) -> TypeError:
        cls = type(value)
        module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
        return TypeError(
            f"op '{self.definition.name}': input '{name}' must be {expected}, got {module}{cls.__qualname__}; convert "
            f"other data with jax.numpy.asarray; the signature is {self.__name__}{self.__signature__}"
        )

    def _in_place(self) -> TypeError:
        name, other = self.definition.name, self.definition.name.removesuffix("_")
        has_other = other != name and _op_identity(other) is not None
        advice = f"use '{other}', which returns a new array" if has_other else "call it on a tensor of minitensor"
        return TypeError(
            f"op '{name}' changes '{self.definition.mutated}' in place, but arrays of JAX cannot change; {advice}"
        )


def kind_of(x: Any) -> str | None:
    """The kind of a number, or of an array without dimensions that JAX made of one; None for other arrays."""
    if isinstance(x, _PYTHON_NUMBERS):
        return next(name for name, kind in _KINDS.items() if isinstance(x, kind))
    if x.ndim != 0 or not getattr(x, "weak_type", False):
        return None
    return {"b": "bool", "i": "int", "u": "int", "f": "float", "V": "float", "c": "complex"}[x.dtype.kind]


def varying(arrays: list[Any]) -> list[Any]:
    """Within `jax.shard_map`, makes all arrays vary over the same mesh axes, so that gradients are summed."""
    own = [varying_axes(jax.typeof(x)) for x in arrays]
    axes = frozenset[Any]().union(*own)
    return [vary(x, tuple(axes - of)) if axes - of else x for x, of in zip(arrays, own, strict=True)]


def vary(x: Any, axes: tuple[Any, ...]) -> Any:
    """Makes an array vary over mesh axes."""
    # Versions of JAX before 0.8 have `pvary`.
    return jax.lax.pcast(x, axes, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(x, axes)
