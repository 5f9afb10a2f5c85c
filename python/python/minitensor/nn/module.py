"""`Module`: parameters, buffers and submodules, and a method `forward` that computes with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from .._minitensor import Tensor
from . import state
from .conversion import Conversion
from .hooks import HookHandle, Hooks
from .parameter import is_parameter

if TYPE_CHECKING:
    from .._minitensor import DeviceLike, DTypeLike

__all__ = ["Module"]

Kind = Literal["parameter", "buffer", "non-persistent buffer", "module"]
PARAMETER: tuple[Kind, ...] = ("parameter",)
BUFFER: tuple[Kind, ...] = ("buffer", "non-persistent buffer")
#: The type of attributes of each kind, besides None.
EXPECTED = {"parameter": "a Tensor", "buffer": "a Tensor", "non-persistent buffer": "a Tensor", "module": "a Module"}


class Module:
    """The base class of modules.

    The type of an attribute determines its role: a leaf tensor that requires a gradient is a parameter, and a Module is
    a submodule. `register_buffer` adds tensors that are saved but not trained.

    >>> import minitensor as mt
    >>> class Scale(mt.nn.Module):
    ...     def __init__(self, n):
    ...         self.factor = mt.ones(n, requires_grad=True)
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale(2)
    >>> scale(mt.Tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    >>> [name for name, _ in scale.named_parameters()]
    ['factor']
    """

    #: Whether the module is in training mode. `train()` and `eval()` set it, also in all submodules.
    training: bool
    # The kinds of parameters, buffers and submodules, in order of registration. The values are in `__dict__`, which
    # makes reading one as fast as reading any attribute.
    _kinds: dict[str, Kind]
    _pre_hooks: Hooks
    _hooks: Hooks

    def __new__(cls, *_: Any, **__: Any) -> Self:
        # Not in `__init__`, so subclasses need not call `super().__init__()`.
        module = super().__new__(cls)
        vars(module).update(training=True, _kinds={}, _pre_hooks={}, _hooks={})
        return module

    def __init__(self) -> None:
        pass

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the output. Subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward method; define forward(self, x)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._pre_hooks and not self._hooks:
            return self.forward(*args, **kwargs)
        for before in tuple(self._pre_hooks.values()):
            changed = before(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        output = self.forward(*args, **kwargs)
        for after in tuple(self._hooks.values()):
            changed = after(self, args, output)
            if changed is not None:
                output = changed
        return output

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Adds a function `hook(module, args)` to call before each `forward`.

        A result other than None replaces the arguments.
        """
        return HookHandle.of(self._pre_hooks, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Adds a function `hook(module, args, output)` to call after each `forward`.

        A result other than None replaces the output.

        >>> import minitensor as mt
        >>> module = mt.nn.Function(mt.ops.relu)
        >>> with module.register_forward_hook(lambda module, args, output: output + 1):
        ...     module(mt.Tensor([-1.0])).item()
        1.0
        """
        return HookHandle.of(self._hooks, hook)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._kinds.get(name)
        if isinstance(value, Module):
            kind = "module"
        elif kind is None and is_parameter(value):
            kind = "parameter"
        elif kind is not None and value is not None:
            self._check(name, kind, value)
        super().__setattr__(name, value)
        if kind is not None:
            self._kinds[name] = kind

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self._kinds.pop(name, None)

    def _check(self, name: str, kind: Kind, value: object) -> None:
        what = f"{type(self).__name__}: '{name}' is a {kind.removeprefix('non-persistent ')}"
        if kind == "module" or not isinstance(value, Tensor):
            raise TypeError(f"{what}; set it to {EXPECTED[kind]} or None, got {type(value).__name__}; or del it first")
        if kind == "parameter" and not value.is_leaf:
            raise ValueError(f"{what} and cannot be the result of an op; set it to nn.Parameter(…), or del it first")

    def _register(self, name: str, kind: Kind, value: Tensor | Module | None) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise ValueError(f"{type(self).__name__}: a name must be a non-empty string without dots, got {name!r}")
        if name not in self._kinds and hasattr(self, name):
            raise ValueError(f"{type(self).__name__} already has an attribute '{name}'; choose another name")
        expected = Module if kind == "module" else Tensor
        if value is not None and not isinstance(value, expected):
            raise TypeError(
                f"{type(self).__name__}: '{name}' must be {EXPECTED[kind]} or None, got {type(value).__name__}"
            )
        if kind == "parameter" and value is not None:
            self._check(name, kind, value)
        self._kinds[name] = kind
        object.__setattr__(self, name, value)

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Adds a parameter. It may be a tensor that requires no gradient, or None as a placeholder."""
        self._register(name, "parameter", param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is not trained, such as a running mean. With `persistent=False`, it is not saved.

        >>> import minitensor as mt
        >>> module = mt.nn.Module()
        >>> module.register_buffer("mean", mt.zeros(2))
        >>> list(module.state_dict())
        ['mean']
        """
        self._register(name, "buffer" if persistent else "non-persistent buffer", tensor)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule. The name need not be a Python identifier."""
        self._register(name, "module", module)

    def register_module(self, name: str, module: Module | None) -> None:
        """An alias of `add_module`."""
        self.add_module(name, module)

    def _attributes(self, kinds: Iterable[Kind]) -> Iterator[tuple[str, Any]]:
        """Yields the attributes of these kinds, without those of submodules."""
        for name, kind in self._kinds.items():
            value = vars(self).get(name)
            if kind in kinds and value is not None:
                yield name, value

    def _named(self, kinds: Iterable[Kind], prefix: str, recurse: bool) -> Iterator[tuple[str, Tensor]]:
        """Yields the tensors of these kinds, each once, with the first of its names."""
        seen = set()
        for path, module in self.named_modules(prefix) if recurse else [(prefix, self)]:
            for name, tensor in module._attributes(kinds):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield f"{path}.{name}" if path else name, tensor

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yields all parameters with names such as `part.weight`. A parameter that occurs twice is yielded once."""
        return self._named(PARAMETER, prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields all parameters, for example for an optimizer."""
        return (tensor for _, tensor in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yields all buffers with their names."""
        return self._named(BUFFER, prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields all buffers."""
        return (tensor for _, tensor in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yields the direct submodules with their names, each once."""
        seen = set()
        for name, module in self._attributes(("module",)):
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yields the direct submodules, each once."""
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Yields this module and all its submodules, recursively, each once."""
        seen, waiting = set(), [(prefix, self)]
        while waiting:
            path, module = waiting.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield path, module
            parts = [(f"{path}.{name}" if path else name, part) for name, part in module._attributes(("module",))]
            waiting += reversed(parts)

    def modules(self) -> Iterator[Module]:
        """Yields this module and all its submodules, recursively, each once."""
        return (module for _, module in self.named_modules())

    def apply(self, function: Callable[[Module], object]) -> Self:
        """Calls a function with every submodule, then with this module, for example to initialize parameters."""
        waiting: list[tuple[Module, bool]] = [(self, False)]
        done = set()
        while waiting:
            module, are_parts_done = waiting.pop()
            if are_parts_done:
                function(module)
            elif id(module) not in done:
                done.add(id(module))
                waiting.append((module, True))
                waiting += [(part, False) for part in reversed(list(module.children()))]
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets the training mode of this module and all submodules."""
        if not isinstance(mode, bool):
            raise TypeError(f"train takes True or False, got {type(mode).__name__}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Sets this module and all submodules to evaluation mode."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets the gradients of the parameters to `None`, or to zeros."""
        for param in self.parameters():
            param.zero_grad(set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freezes or unfreezes all parameters. Frozen parameters remain parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def to(
        self,
        target: DTypeLike | DeviceLike | None = None,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
    ) -> Self:
        """Converts parameters and buffers to a dtype, except integers, or moves them to a device.

        The tensors and their gradients are replaced by new ones, so create optimizers afterwards.

        >>> import minitensor as mt
        >>> mt.nn.Linear(1, 1).to("float64").weight.dtype
        minitensor.float64
        """
        conversion = Conversion(target, dtype, device)
        changed = [
            (module, name, conversion(tensor))
            for module in self.modules()
            for name, tensor in module._attributes(PARAMETER + BUFFER)
        ]
        for module, name, tensor in changed:
            object.__setattr__(module, name, tensor)
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """Returns copies of all parameters and buffers by name. A tensor that occurs twice is listed under both names.

        >>> import minitensor as mt
        >>> {name: t.shape for name, t in mt.nn.Linear(3, 2).state_dict().items()}
        {'weight': (2, 3), 'bias': (2,)}
        """
        return {name: tensor.detach().clone() for name, tensor in self._saved()}

    def load_state_dict(self, saved: Mapping[str, Any], strict: bool = True) -> state.LoadedKeys:
        """Copies a saved state into the parameters and buffers, in place. Existing optimizers remain valid.

        `saved` maps names to tensors or arrays, such as the result of `state_dict` or `numpy.load`. If names are
        missing or unexpected, or shapes or dtypes do not match, raises an error that lists all differences, and changes
        nothing. With `strict=False`, missing and unexpected names are not errors; they are returned.
        """
        return state.load(type(self).__name__, dict(self._saved()), saved, strict)

    def _saved(self) -> Iterator[tuple[str, Tensor]]:
        for path, module in self._paths():
            for name, tensor in module._attributes(("parameter", "buffer")):
                yield path + name, tensor

    def _paths(self, prefix: str = "", above: tuple[Module, ...] = ()) -> Iterator[tuple[str, Module]]:
        """Yields every path to every module, as a prefix of names. Cycles are not followed."""
        yield prefix, self
        for name, part in self._attributes(("module",)):
            if part is not self and part not in above:
                yield from part._paths(f"{prefix}{name}.", (*above, self))

    def extra_repr(self) -> str:
        """Returns the options of the module for its `repr`."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        parts = [f"({name}): " + repr(part).replace("\n", "\n  ") for name, part in self._attributes(("module",))]
        if not parts:
            return f"{type(self).__name__}({extra})"
        lines = [*([extra] if extra else []), *parts]
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"
