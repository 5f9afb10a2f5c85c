"""Ops written in Python. They share the registry, the checks and autograd with ops written in Rust."""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import sys
import types
import typing
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from . import _minitensor
from ._adapters import by_input_id, with_separate_inputs
from ._minitensor import BackwardContext, CustomOp, DType, Tensor, describe

__all__ = ["BackwardContext", "CustomOpBuilder", "custom_op", "forward_of"]

_Function = Callable[..., Any]
#: The kind of an attribute: the name of a type, or the words of an enum.
Kind = str | list[str]
_REQUIRED = inspect.Parameter.empty
_SCALARS: dict[object, str] = {bool: "bool", int: "int", float: "float", str: "str", DType: "dtype"}
_SEQUENCES = (list, tuple, Sequence, Iterable)
_COLLECTIONS = (*_SEQUENCES, dict, set, frozenset, Mapping, Collection)


def _without_none(annotation: Any) -> Any:
    """Returns `T` for the annotation `T | None`."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        rest = [a for a in typing.get_args(annotation) if a is not type(None)]
        return rest[0] if len(rest) == 1 else annotation
    return annotation


def _is_enum(of: object) -> typing.TypeGuard[type[enum.Enum]]:
    return isinstance(of, type) and issubclass(of, enum.Enum)


def _kind_of_annotation(annotation: Any) -> Kind | None:
    """Returns the kind of attribute for an annotation, or `None` for a tensor."""
    annotation = _without_none(annotation)
    if _is_enum(annotation):
        return _words([member.value for member in annotation], f"the enum '{annotation.__name__}'")
    if typing.get_origin(annotation) is typing.Literal:
        return _words(typing.get_args(annotation), str(annotation).removeprefix("typing."))
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if typing.get_origin(annotation) in _SEQUENCES:
        element = typing.get_args(annotation)[:1]
        if element in ((int,), (float,)):
            return f"list[{element[0].__name__}]"
    return None


def _is_list(annotation: Any) -> bool:
    """Returns whether an annotation is a list or another collection, and not one that is an attribute."""
    annotation = _without_none(annotation)
    of = typing.get_origin(annotation) or annotation
    return of in _COLLECTIONS and _kind_of_annotation(annotation) is None


def _words(values: Sequence[object], of: str) -> list[str]:
    if not values or not all(isinstance(value, str) for value in values):
        raise TypeError(f"the values of {of} must be strings; for numbers, state conditions with where=")
    return [str.__str__(value) for value in values]


def _kind_of_default(default: object) -> Kind | None:
    """Returns the kind of attribute for a default value, or `None` for a tensor."""
    if isinstance(default, enum.Enum):
        return _kind_of_annotation(type(default))
    if isinstance(default, (bool, int, float, str)):
        return next(_SCALARS[t] for t in (bool, int, float, str) if isinstance(default, t))
    if isinstance(default, (list, tuple)) and default:
        return "list[int]" if all(isinstance(v, int) for v in default) else "list[float]"
    return "dtype" if isinstance(default, DType) else None


def _hints(function: _Function) -> dict[str, Any]:
    """Returns the annotations that have a meaning here. A name that only a type checker knows has none."""
    try:
        return typing.get_type_hints(function)
    except Exception:
        pass
    hints = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        try:
            hints[name] = (
                eval(annotation, getattr(function, "__globals__", {})) if isinstance(annotation, str) else annotation
            )
        except Exception:
            continue
    return hints


def _are_integers(values: object) -> bool:
    """Returns whether it is a list of integers."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        return False
    return all(isinstance(v, Integral) and not isinstance(v, bool) for v in values)


class _Schema:
    """The signature of a function: tensor parameters first, then attributes.

    The last part of an attribute is its default, if it has one. Of a tuned attribute, it is the candidates.
    """

    def __init__(self, function: _Function, name: str, *, takes_lists: bool = True) -> None:
        self._takes_lists = takes_lists
        self.inputs: list[tuple[str, str]] = []
        self.attrs: list[tuple[str, Kind, list[object]]] = []
        #: The enums of attributes whose values are members.
        self._enums: dict[str, type[enum.Enum]] = {}
        #: The attributes that are not annotated.
        self.not_annotated: set[str] = set()
        hints = _hints(function)
        for parameter in inspect.signature(function).parameters.values():
            self._add(name, parameter, hints.get(parameter.name, _REQUIRED))
        self.outputs = self._returned(hints.get("return"))

    def value(self, attribute: str, value: Any) -> Any:
        """Returns the value of an attribute as the function takes it: the member of an enum for a word."""
        return self._enums[attribute](value) if attribute in self._enums and value is not None else value

    def taking_members(self, function: _Function) -> _Function:
        """Returns the function as a function that takes words for the members of enums."""
        if not self._enums:
            return function

        @functools.wraps(function)
        def taking_words(*args: Any, **attrs: Any) -> Any:
            return function(*args, **{name: self.value(name, value) for name, value in attrs.items()})

        return taking_words

    def _add(self, op: str, parameter: inspect.Parameter, annotation: Any) -> None:
        name, default = parameter.name, parameter.default
        if parameter.kind is parameter.VAR_KEYWORD:
            raise TypeError(f"op '{op}': '**{name}' cannot be an attribute; name every parameter")
        try:
            annotated = _kind_of_annotation(annotation)
            kind = annotated or _kind_of_default(default)
        except TypeError as error:
            raise TypeError(f"op '{op}': attribute '{name}': {error}") from None
        if not kind and _is_list(annotation):
            number = f"*{name}: mt.Tensor for any number of tensors" if self._takes_lists else "one parameter for each"
            raise TypeError(
                f"op '{op}': '{name}' cannot be a collection of tensors; write {number}. An attribute can be annotated "
                "with list[int] or list[float]"
            )
        if kind:
            if parameter.kind is parameter.VAR_POSITIONAL or parameter.kind is parameter.POSITIONAL_ONLY:
                raise TypeError(f"op '{op}': attribute '{name}' must be a parameter that can be passed by name")
            of = _without_none(annotation) if annotated else type(default)
            if _is_enum(of):
                self._enums[name] = of
            if not annotated:
                self.not_annotated.add(name)
            default = default.value if isinstance(default, enum.Enum) else default
            self.attrs.append((name, kind, [] if default is _REQUIRED else [default]))
            return
        if default is not _REQUIRED and default is not None:
            raise TypeError(
                f"op '{op}': the default of '{name}' must be None, a number, a string or a list of numbers, "
                f"got {type(default).__name__}"
            )
        if self.attrs or parameter.kind is parameter.KEYWORD_ONLY:
            raise TypeError(
                f"op '{op}': the tensor '{name}' comes after an attribute; put tensors first, or annotate '{name}' "
                "with float, int, bool, str or list[int] if it is an attribute"
            )
        how = "one" if default is _REQUIRED else "optional"
        self.inputs.append((name, "variadic" if parameter.kind is parameter.VAR_POSITIONAL else how))

    def tune(self, op: str, candidates: Mapping[str, Sequence[int]]) -> None:
        """Turns attributes into tuned ones."""
        lists = dict(candidates) if isinstance(candidates, Mapping) else {"": None}
        if not all(_are_integers(values) for values in lists.values()):
            raise TypeError(f"op '{op}': expected tune={{name: [integers]}}, got {candidates!r}")
        for name, values in candidates.items():
            if (name, "int", []) not in self.attrs:
                raise TypeError(
                    f"op '{op}': '{name}' cannot be tuned; tune a parameter that is annotated with int "
                    "and has no default"
                )
            self.attrs[self.attrs.index((name, "int", []))] = (name, "tuned", list(values))
        before = None
        for name, kind, default in self.attrs:
            if before is not None and kind != "tuned" and not default:
                raise TypeError(
                    f"op '{op}': '{name}' has no default, but follows the tuned '{before}'; put tuned parameters last"
                )
            before = name if kind == "tuned" else before

    @staticmethod
    def _returned(annotation: Any) -> list[str]:
        if typing.get_origin(annotation) is tuple:
            count = len(typing.get_args(annotation))
            return [f"out{k}" for k in range(count)]
        return ["out"]


def _build(
    name: str,
    forward: _Function,
    inputs: list[tuple[str, str]],
    attrs: list[tuple[str, Kind, list[object]]],
    outputs: list[str],
    backward: _Function | str | None,
    validate: _Function | None,
    doc: str,
    properties: str | None = None,
    jvp: _Function | None = None,
) -> CustomOp:
    if isinstance(backward, str) and backward != "none":
        expected = "a function, None (the gradient follows from the ops called), or 'none' (no gradient)"
        raise ValueError(f"op '{name}': backward must be {expected}, got '{backward}'")
    if jvp is not None and not callable(jvp):
        raise TypeError(f"op '{name}': jvp must be a function or None, got {type(jvp).__name__}")
    if jvp is not None and backward is not None:
        raise ValueError(f"op '{name}': pass either backward or jvp, got both; the gradient follows from jvp")
    code = getattr(inspect.unwrap(forward), "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code else ("<python>", 0)
    op = _minitensor._build_op(
        name, forward, inputs, attrs, outputs, backward, jvp, validate, properties, doc, file, line
    )
    key = hash(op)
    # A callable object may not support weak references.
    with contextlib.suppress(TypeError):
        _FORWARDS[key] = weakref.ref(forward, lambda _: _FORWARDS.pop(key, None))
    return op


#: The functions that compute ops, by the hashes of the ops, which keep them.
_FORWARDS: dict[int, weakref.ref[_Function]] = {}


def forward_of(name: str) -> _Function | None:
    """Returns the Python function that computes a registered op; None if it is not a function of Python."""
    op = _registered(name)
    found = _FORWARDS.get(hash(op)) if op is not None else None
    return found() if found is not None else None


@typing.overload
def custom_op(function: _Function, /) -> _Function: ...
@typing.overload
def custom_op(
    *,
    name: str | None = None,
    backward: _Function | str | None = None,
    jvp: _Function | None = None,
    validate: _Function | None = None,
    outputs: Sequence[str] | None = None,
    tune: Mapping[str, Sequence[int]] | None = None,
    properties: str | None = None,
) -> Callable[[_Function], _Function]: ...
def custom_op(
    function: _Function | None = None,
    /,
    *,
    name: str | None = None,
    backward: _Function | str | None = None,
    jvp: _Function | None = None,
    validate: _Function | None = None,
    outputs: Sequence[str] | None = None,
    tune: Mapping[str, Sequence[int]] | None = None,
    properties: str | None = None,
) -> Any:
    """Registers a function of Tensors as an op, and returns `mt.ops.<name>`.

    A parameter is an attribute if its annotation, or its default, is of type `float`, `int`, `bool`, `str`,
    `list[int]`, `list[float]` or `mt.DType`, a `Literal` of strings, or an `Enum` whose values are strings. Every other
    parameter is a tensor. It is optional if its default is
    `None`; `*xs` takes any number of tensors. To return several outputs, annotate the function with
    `-> tuple[Tensor, Tensor]`, or name them in `outputs`.

    By default, the gradient follows from the ops that the function calls. Pass `backward` to define it: a function
    `backward(ctx, *grads)` takes the gradients of the outputs and returns one gradient for each tensor input, or `None`
    if it is not needed. `ctx` has the attributes `inputs`, `outputs`, `attrs` and `needs_input_grad`. With
    `backward="none"`, differentiating the op raises an error.

    `jvp` defines it in forward mode instead: a function `jvp(ctx, *tangents)` takes the tangents of the tensor inputs
    and returns the tangents of the outputs, by ops that are linear in the tangents. The gradient is its transpose.

    `validate(*inputs)` raises an error if the inputs are invalid.

    `tune={"tile": [16, 32, 64]}` lists candidates for an integer parameter that only changes the speed. If a call does
    not pass it, the fastest is measured, once for each class of calls (see `mt.tuning`).

    `properties="linear = x"` states identities that the results satisfy, separated by commas. `linear = x`: the op is
    linear in `x`, so a single `backward`, even one that uses NumPy, has derivatives of any order, and `mt.jvp` works.
    `symmetric`: the inputs can be exchanged. `replaces = log(softmax(x, axis=axis))`: the op computes this expression,
    and takes its place in graphs. `mt.testing.opcheck` verifies them.

    Defining an op again by the same function of a module, as when a notebook cell is run again, replaces the op. Any
    other op of the same name is an error; `mt.unregister_custom_op_py(name)` removes it first.

    >>> import minitensor as mt
    >>> @mt.custom_op(name="docs::scaled_square")
    ... def scaled_square(x, scale: float = 2.0):
    ...     return x * x * scale
    >>> scaled_square(mt.Tensor([3.0]))
    tensor([18.])
    >>> mt.unregister_custom_op_py("docs::scaled_square")
    """
    if function is None:
        return lambda f: _register(f, name, backward, jvp, validate, outputs, tune or {}, properties)
    if not callable(function):
        raise TypeError(f"custom_op takes a function, got {type(function).__name__}; pass the name as name=")
    return _register(function, name, backward, jvp, validate, outputs, tune or {}, properties)


def _register(
    function: _Function,
    name: str | None,
    backward: _Function | str | None,
    jvp: _Function | None,
    validate: _Function | None,
    outputs: Sequence[str] | None,
    tune: Mapping[str, Sequence[int]],
    properties: str | None,
) -> _Function:
    name = name or function.__name__
    check_properties(name, properties)
    schema = _Schema(function, name)
    schema.tune(name, tune)
    doc = inspect.getdoc(function) or f"The op {name}, defined in Python."
    named = list(outputs) if outputs else schema.outputs
    forward = schema.taking_members(function)
    op = _build(name, forward, schema.inputs, schema.attrs, named, backward, validate, doc, properties, jvp)
    return _replace(op, f"{function.__module__}.{function.__qualname__}")


def check_properties(name: str, properties: object) -> None:
    """Raises TypeError unless `properties` is a text or None."""
    if properties is not None and not isinstance(properties, str):
        got = type(properties).__name__
        raise TypeError(f"op '{name}': properties must be a text such as 'linear = x', got {got}")


#: The function that defined an op, and the function of `mt.ops` that calls it, by name.
_DEFINED: dict[str, tuple[str, weakref.ref[_Function]]] = {}


def _replace(op: CustomOp, origin: str) -> _Function:
    """Registers an op. If the same function of a module defined the registered op of this name, replaces that op."""
    old = _registered(op.name)
    is_redefined = (
        old is not None and "<lambda>" not in origin and _is_of(origin, op.name) and describe(op.name)["plugin"] is None
    )
    if old is None or not is_redefined:
        function = op.register()
    else:
        old.unregister()
        try:
            function = op.register()
        except BaseException:
            _DEFINED[op.name] = (origin, weakref.ref(old.register()))
            raise
    _DEFINED[op.name] = (origin, weakref.ref(function))
    return function


def _is_of(origin: str, name: str) -> bool:
    """Whether this function of a module defined the op that is registered now."""
    defined_by, function = _DEFINED.get(name, ("", None))
    return defined_by == origin and function is not None and function() is _function_of(name)


def _function_of(name: str) -> Any:
    """The function of `mt.ops` with this name, if there is one."""
    *namespace, last = name.split("::")
    module = sys.modules.get(".".join(["minitensor.ops", *namespace]))
    return getattr(module, "__dict__", {}).get(last)


def _registered(name: str) -> CustomOp | None:
    """Returns the registered op of this name, if it is not built in."""
    op = CustomOp.of(_function_of(name))
    return op if op is not None and op.is_registered else None


_MAX_INPUTS = 64


class CustomOpBuilder:
    """Builds an op step by step.

    >>> import minitensor as mt
    >>> double = (
    ...     mt.CustomOpBuilder("docs::double", 1)
    ...     .forward(lambda x: x + x)
    ...     .backward(lambda ctx, grad: grad * 2)
    ...     .register()
    ... )
    >>> double(mt.Tensor([1.5]))
    tensor([3.])
    >>> mt.unregister_custom_op_py("docs::double")
    """

    def __init__(self, name: str, num_inputs: int) -> None:
        if not 0 <= num_inputs <= _MAX_INPUTS:
            raise ValueError(f"op '{name}': num_inputs must be between 0 and {_MAX_INPUTS}, got {num_inputs}")
        names = ["x", "y", "z"] if num_inputs <= 3 else [f"x{i}" for i in range(num_inputs)]
        self._name = name
        self._inputs = [(n, "one") for n in names[:num_inputs]]
        self._attrs: list[tuple[str, Kind, list[object]]] = []
        self._outputs = ["out"]
        self._forward: _Function | None = None
        self._backward: _Function | str | None = None
        self._jvp: _Function | None = None
        self._validate: _Function | None = None
        self._doc = f"The op {name}, defined in Python."

    def forward(self, function: _Function) -> CustomOpBuilder:
        """Sets the computation: `function(*inputs, **attributes)` returns a Tensor or a tuple of Tensors.

        If the first parameter is named `inputs`, the function receives the inputs as a list. The same applies to
        `validate`.
        """
        self._forward = with_separate_inputs(function)
        return self

    def backward(self, function: _Function | str) -> CustomOpBuilder:
        """Sets the gradient: `function(ctx, *grads)`, as for `custom_op`. By default, it follows from the ops called.

        A function with a parameter `input_ids` is called as `function(grad_output, input_ids, input_shapes,
        input_dtypes, input_devices)`, and returns a dict of gradients by input id.
        """
        self._backward = function if isinstance(function, str) else by_input_id(function, self._name)
        return self

    def jvp(self, function: _Function) -> CustomOpBuilder:
        """Sets the tangents of the outputs: `function(ctx, *tangents)`, as for `custom_op`."""
        self._jvp = function
        return self

    def validate(self, function: _Function) -> CustomOpBuilder:
        """Sets the validation: `function(*inputs)` raises an error if the inputs are invalid."""
        self._validate = with_separate_inputs(function)
        return self

    def doc(self, text: str) -> CustomOpBuilder:
        """Sets the documentation."""
        self._doc = text
        return self

    def inputs(self, *names: str) -> CustomOpBuilder:
        """Sets the names of the inputs."""
        if len(names) != len(self._inputs):
            raise ValueError(f"op '{self._name}' has {len(self._inputs)} inputs, got {len(names)} names")
        self._inputs = [(n, "one") for n in names]
        return self

    def attr(self, name: str, kind: type, *default: object) -> CustomOpBuilder:
        """Adds an attribute of type float, int, bool, str, Literal or list[int], optionally with a default."""
        known = _kind_of_annotation(kind)
        if known is None:
            raise TypeError(f"op '{self._name}': attribute '{name}' cannot have the type {kind}")
        self._attrs.append((name, known, list(default)))
        return self

    def tune(self, name: str, *candidates: int) -> CustomOpBuilder:
        """Adds an attribute that only changes the speed. The fastest candidate is measured, as for `custom_op`."""
        self._attrs.append((name, "tuned", list(candidates)))
        return self

    def outputs(self, *names: str) -> CustomOpBuilder:
        """Sets the names of the outputs."""
        self._outputs = list(names)
        return self

    def build(self) -> CustomOp:
        """Returns the op without registering it."""
        if self._forward is None:
            raise ValueError(f"op '{self._name}' has no forward function; call .forward(…)")
        schema = (self._inputs, self._attrs, self._outputs)
        return _build(self._name, self._forward, *schema, self._backward, self._validate, self._doc, jvp=self._jvp)

    def register(self) -> Callable[..., Tensor]:
        """Registers the op, and returns `mt.ops.<name>`."""
        return self.build().register()
