"""`mt.save` and `mt.load`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .. import _minitensor, nn, ops
from .._grad_mode import no_grad
from .._minitensor import DType, Graph, Tensor, get_rng_state, set_rng_state, zeros
from ..ir import IR, IRError
from ..tracing import Jitted, tree, watch
from ..tracing.jitted import ORIGINS
from . import carried, interpreter, manifest, safetensors, sizes, structure
from .carried import Missing
from .error import FileError
from .manifest import Manifest, TensorInfo
from .model import Branch, LoadedModel
from .recording import Call, Recorded, record

__all__ = ["load", "save"]

#: The arguments of a call: positional ones, and those by name.
Example = tuple[tuple[Any, ...], dict[str, Any]]


def save(
    path: str | os.PathLike[str],
    model: nn.Module | Jitted[..., Any] | Graph | IR,
    examples: Any = None,
    *,
    dynamic: Mapping[int, str] | Sequence[Mapping[int, str]] | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> None:
    """See `mt.save`."""
    if isinstance(model, LoadedModel) and examples is None:
        tensors, branches = _tensors_of(model), model.branches
        for name, (info, tensor) in tensors.items():
            if model._saved_kinds.get(name) == "constant":
                tensors[name] = info._replace(kind="constant"), tensor
        calls = list(_calls(branches))
    elif isinstance(model, nn.Module):
        tensors, branches, calls = _of_module(model, _examples(model, examples), dynamic)
    elif isinstance(model, Jitted):
        tensors, branches, calls = _of_function(model, _examples_of_function(model, examples), dynamic)
    elif isinstance(model, IR):
        tensors, branches, calls = _of_ir(model, weights)
    elif isinstance(model, Graph):
        origin, example = ORIGINS[model]
        function = origin()
        if function is None:
            raise ValueError("mt.save: the function of the graph no longer exists; keep it, or save it instead")
        tensors, branches, calls = _of_function(function, [example.replaced(_zeros)], dynamic)
    else:
        raise TypeError(
            f"mt.save takes a module, a function under mt.jit or an IR, got {type(model).__name__}; write "
            "mt.jit(function), or "
            "use mt.save_state for a dict of tensors"
        )
    if weights is not None and not isinstance(model, IR):
        raise TypeError("mt.save: weights= is for an IR; a module and a function have their own")
    ops = carried.collect(calls)
    for op in ops.missing:
        warnings.warn(f"mt.save: the file will not contain {_without(op)}", UserWarning, stacklevel=3)
    infos = {name: info for name, (info, _) in tensors.items()}
    text = manifest.written(
        Manifest(
            _minitensor.__version__,
            branches,
            infos,
            ops.definitions,
            ops.missing,
            bool(getattr(model, "training", True)),
        )
    )
    elements = {name: tensor for name, (info, tensor) in tensors.items() if info.same_as is None}
    safetensors.write(path, elements, {manifest.KEY: text})


def _without(op: Missing) -> str:
    source = f"plugin '{op.plugin}' {op.version}" if op.plugin else "Python code that defines it"
    return f"op '{op.name}', because {op.reason}; a process that loads the file needs the {source}"


#: The tensors of a model by name, with their roles.
_Tensors = dict[str, tuple[TensorInfo, Tensor]]


def _examples(model: nn.Module, examples: Any) -> list[Example]:
    if examples is None:
        raise TypeError(
            "mt.save: a module is recorded by a call; pass an example: mt.save(path, model, x). To save only the "
            "parameters of "
            f"{type(model).__name__}, use mt.save_state(path, model.state_dict())"
        )
    found = [examples] if not isinstance(examples, list) else examples
    if not found:
        raise TypeError("mt.save: examples must not be empty; pass a tensor, a tuple of arguments, or a list of tuples")
    for example in found:
        if not isinstance(example, (Tensor, tuple)):
            raise TypeError(
                f"mt.save: an example must be a tensor or a tuple of positional arguments, got {type(example).__name__}"
            )
    return [((example,) if isinstance(example, Tensor) else example, {}) for example in found]


def _examples_of_function(function: Jitted[..., Any], examples: Any) -> list[Example]:
    if examples is not None:
        return _examples(nn.Module(), examples)
    found = [entry.example.replaced(_zeros) for entry in function.entries]
    if not found:
        raise TypeError("mt.save: the function was not called yet; call it, or pass an example: mt.save(path, f, x)")
    return found


def _zeros(shape: tuple[int, ...], dtype: DType) -> Tensor:
    return zeros(shape, dtype=dtype)


def _tensors_of(module: nn.Module) -> _Tensors:
    """The parameters and buffers of a module, by all of their names."""
    found: _Tensors = {}
    names: dict[int, str] = {}
    for prefix, part in module._paths():
        for name, kind in part._kinds.items():
            tensor = vars(part).get(name)
            if kind != "module" and isinstance(tensor, Tensor):
                first = names.setdefault(id(tensor), prefix + name)
                same_as = None if first == prefix + name else first
                kind = found[first][0].kind if same_as else kind  # type: ignore[assignment]
                found[prefix + name] = TensorInfo(kind, tensor.requires_grad, same_as), tensor
    return found


def _of_module(model: nn.Module, examples: list[Example], dynamic: Any) -> tuple[_Tensors, list[Branch], list[Call]]:
    tensors = _tensors_of(model)
    for name in tensors:
        if hasattr(LoadedModel, first := name.split(".")[0]):
            raise ValueError(
                f"mt.save: '{first}' is an attribute of every loaded model; rename that of {type(model).__name__}"
            )
    modes = {part: part.training for part in model.modules()}
    named = {name: tensor for name, (info, tensor) in tensors.items() if info.same_as is None}
    recorded: list[tuple[bool, Recorded]] = []
    try:
        for mode in (True, False):
            model.train(mode)
            for args, kwargs in examples:
                with _restored(named):
                    recorded.append((mode, _recorded(model, args, kwargs, named, type(model).__name__, dynamic)))
                for name, (_, tensor) in _tensors_of(model).items():
                    if tensors.get(name, (None, None))[1] is not tensor:
                        raise RuntimeError(
                            f"mt.save: the call replaces '{name}', which a graph cannot repeat; change it in place, "
                            "as by "
                            f"self.{name}.copy_(…)"
                        )
    finally:
        for part, mode in modes.items():
            part.training = mode
    count = len(examples)
    pairs = zip(recorded[:count], recorded[count:], strict=True)
    # A graph that is the same in both modes is needed once.
    both = [_is_same(a, b) for (_, a), (_, b) in pairs]
    merged = [
        (None if both[k % count] else mode, r)
        for k, (mode, r) in enumerate(recorded)
        if not (both[k % count] and k >= count)
    ]
    return _merged(tensors, named, merged)


def _recorded(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    named: dict[str, Tensor],
    name: str,
    dynamic: Any,
) -> Recorded:
    if dynamic is None:
        return record(function, args, kwargs, named, name)
    tensors: list[Tensor] = []
    structure.written((args, kwargs), tensors, "an argument")
    axes = [dynamic] * len(tensors) if isinstance(dynamic, Mapping) else list(dynamic)
    given: dict[str, int] = {}
    if len(axes) != len(tensors):
        raise ValueError(f"mt.save: dynamic= must be a dict, or a list with one for each of {len(tensors)} tensors")
    for t, of in zip(tensors, axes, strict=True):
        for axis, symbol in of.items():
            if type(axis) is not int or not 0 <= axis < t.ndim or not str(symbol).isidentifier():
                raise ValueError(
                    f"mt.save: dynamic= must map axes of a tensor of shape {t.shape}, counted from 0, to names, got "
                    f"{of!r}"
                )
            if given.setdefault(symbol, t.shape[axis]) != t.shape[axis] or not t.shape[axis]:
                raise ValueError(
                    f"mt.save: '{symbol}' has the sizes {given[symbol]} and {t.shape[axis]} in the example"
                )
    if not 1 <= len(given) <= sizes.MOST:
        raise ValueError(f"mt.save: dynamic= must have 1 to {sizes.MOST} names, got {len(given)}")

    def at(wanted: dict[str, int]) -> Recorded:
        resized = [
            _resized(t, {a: wanted[symbol] for a, symbol in of.items()}) for t, of in zip(tensors, axes, strict=True)
        ]
        inner_args, inner_kwargs = tree.replaced((args, kwargs), iter(resized))
        return record(function, inner_args, inner_kwargs, named, name)

    return sizes.generalized(at, given)


def _resized(t: Tensor, wanted: Mapping[int, int]) -> Tensor:
    """Repeats or shortens a tensor along axes."""
    t = t.detach()
    for axis, size in wanted.items():
        whole = ops.concat([t] * -(-size // t.shape[axis]), axis=axis)
        t = whole[(slice(None),) * axis + (slice(0, size),)]
    return t.clone()


def _is_same(a: Recorded, b: Recorded) -> bool:
    return a.ir == b.ir and a.outputs == b.outputs and _are_equal(a.constants, b.constants)


def _are_equal(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> bool:
    bytes_of = _minitensor._tensor_bytes
    return a.keys() == b.keys() and all(bytes_of(a[name]) == bytes_of(b[name]) for name in a)


class _restored:
    """Restores the elements of tensors, and the state of the random numbers: recording runs the function."""

    def __init__(self, named: Mapping[str, Tensor]) -> None:
        self._named = named

    def __enter__(self) -> None:
        self._before = [(t, _minitensor._tensor_bytes(t.detach())) for t in self._named.values()]
        self._state = get_rng_state()

    def __exit__(self, *_: object) -> None:
        set_rng_state(self._state)
        with no_grad():
            for t, before in self._before:
                if _minitensor._tensor_bytes(t.detach()) != before:
                    t.copy_(_minitensor._tensor_from_bytes(before, t.dtype, t.shape))


def _of_function(
    function: Jitted[..., Any], examples: list[Example], dynamic: Any
) -> tuple[_Tensors, list[Branch], list[Call]]:
    named = _tensors_read(function._function)
    name = getattr(function, "__name__", "function").strip("<>")
    recorded = []
    for args, kwargs in examples:
        with _restored(named):
            recorded.append((None, _recorded(function._function, args, kwargs, named, name, dynamic)))
    # The function may refer to more than it reads.
    read = {meta.name for _, r in recorded for meta in r.ir.weights}
    named = {name: tensor for name, tensor in named.items() if name in read}
    return _merged({}, named, recorded)


def _tensors_read(function: Callable[..., Any]) -> dict[str, Tensor]:
    """The tensors to which a function refers, by names such as `model.weight`."""
    found: dict[int, tuple[str, Tensor]] = {}
    taken: set[str] = set()
    for place, values in watch.State(function, []).values.items():
        for value in values:
            tensor = value._tensor() if isinstance(value, watch._Same) else None
            if tensor is None or id(tensor) in found or not tensor.is_leaf:
                continue
            words = "".join(c if c.isalnum() or c in "._" else "." for c in place)
            base = name = ".".join(part for part in words.split(".") if part) or "tensor"
            number = 1
            while name in taken or hasattr(LoadedModel, name.split(".")[0]):
                name, number = f"{base}_{number}", number + 1
            taken.add(name)
            found[id(tensor)] = name, tensor
    folders = {name.rsplit(".", k)[0] for name in taken for k in range(1, name.count(".") + 1)}
    return {(f"{name}_" if name in folders else name): tensor for name, tensor in found.values()}


def _of_ir(ir: IR, weights: Mapping[str, Tensor] | None) -> tuple[_Tensors, list[Branch], list[Call]]:
    ir.check()
    if ir.symbols or ir.updates:
        raise ValueError(
            "mt.save: an IR with symbols or updates cannot be saved as a model; extract it with plain sizes"
        )
    tensors: _Tensors = {}
    for meta in ir.weights:
        if weights is None or meta.name not in weights:
            raise ValueError(f"mt.save: weights= lacks the weight {meta}")
        t = weights[meta.name]
        if t.shape != meta.shape or t.dtype.name != meta.dtype:
            raise ValueError(f"mt.save: the IR has the weight {meta}, but weights= has {t.dtype.name} {t.shape}")
        is_differentiable = t.dtype.kind in ("float", "complex")
        tensors[meta.name] = TensorInfo("parameter" if is_differentiable else "buffer", is_differentiable, None), t
    constants = {
        c.name: _minitensor._tensor_from_bytes(c.data, c.meta.dtype, tuple(int(size) for size in c.meta.shape))
        for c in ir.constants
    }
    tensors |= {name: (TensorInfo("constant", False, None), t) for name, t in constants.items()}
    ir = IR(ir.name, ir.inputs, [*ir.weights, *(c.meta for c in ir.constants)], ir.nodes, ir.outputs)
    args = {"tuple": [{"tensor": k} for k in range(len(ir.inputs))]}
    outputs = {"tuple": [{"tensor": k} for k in range(len(ir.outputs))]}
    branch = Branch(ir, {"tuple": [args, {"dict": []}]}, outputs, None)
    return tensors, [branch], list(_calls([branch]))


def _calls(branches: Sequence[Branch]) -> Iterator[Call]:
    """The calls of ops that are not built in."""
    from . import nodes

    for branch in branches:
        for op in interpreter.ops_of(branch.ir):
            if _minitensor._is_built_in(op) is not False:
                continue
            declared, attributes = nodes.inputs(op), nodes.attributes(op)
            for node in branch.ir.nodes:
                if node.op_type == nodes.PREFIX + op:
                    given = [node.attrs.get(name, True) is not None for name, _ in declared]
                    attrs = {name: value for name, value in node.attrs.items() if name in attributes}
                    yield Call(op, attrs, given)


def _merged(
    tensors: _Tensors, named: Mapping[str, Tensor], recorded: Sequence[tuple[bool | None, Recorded]]
) -> tuple[_Tensors, list[Branch], list[Call]]:
    """Gives the constants of all graphs different names, and collects all tensors."""
    tensors = dict(tensors)
    for name, tensor in named.items():
        kind = "parameter" if tensor.requires_grad else "buffer"
        tensors.setdefault(name, (TensorInfo(kind, tensor.requires_grad, None), tensor))
    branches, calls = [], []
    known: dict[tuple[object, ...], str] = {}
    for mode, r in recorded:
        names = {}
        for name, t in r.constants.items():
            # Equal constants of several graphs are one.
            content = (t.shape, t.dtype.name, _minitensor._tensor_bytes(t))
            names[name] = known.setdefault(content, _free(f"constants.{len(known)}", tensors))
            tensors[names[name]] = TensorInfo("constant", False, None), t
        branches.append(Branch(_renamed(r.ir, names) if names else r.ir, r.inputs, r.outputs, mode))
        calls += r.calls
    return tensors, branches, calls


def _free(name: str, tensors: _Tensors) -> str:
    while name in tensors:
        name += "_"
    return name


def _renamed(ir: IR, names: Mapping[str, str]) -> IR:
    import dataclasses

    def new(meta: Any) -> Any:
        return dataclasses.replace(meta, name=names.get(meta.name, meta.name))

    nodes = [dataclasses.replace(node, inputs=[new(meta) for meta in node.inputs]) for node in ir.nodes]
    return dataclasses.replace(
        ir, weights=[new(meta) for meta in ir.weights], nodes=nodes, outputs=[new(meta) for meta in ir.outputs]
    )


def load(path: str | os.PathLike[str], *, allow_missing: bool = False) -> LoadedModel:
    """See `mt.load`."""
    contents = safetensors.read(path)
    described = manifest.read(path, contents.metadata, contents.tensors)
    registered = carried.register(path, described.ops)
    try:
        missing = _missing(path, described, allow_missing)
        model = LoadedModel(*_made(described, contents.tensors), described.branches, missing)
        for k, run in enumerate(model._runs):
            with no_grad():
                try:
                    run.interpreter.check()
                except IRError as error:
                    raise FileError(f"'{path}': graph {k}: {error}") from None
    except FileError:
        registered.undo()
        raise
    except (ValueError, TypeError) as error:
        registered.undo()
        raise FileError(f"'{path}': {error}") from None
    except BaseException:
        registered.undo()
        raise
    return model.train(described.training)


def _made(described: Manifest, tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    made: dict[str, Tensor] = {}
    kinds: dict[str, str] = {}
    for name, info in sorted(described.tensors.items(), key=lambda item: item[1].same_as is not None):
        made[name] = made[info.same_as] if info.same_as else tensors[name].requires_grad_(info.requires_grad)
        kinds[name] = info.kind
    return {name: made[name] for name in described.tensors}, kinds


def _missing(path: object, described: Manifest, allow_missing: bool) -> list[Missing]:
    """The ops that are neither registered nor in the file."""
    known = {op.name: op for op in described.missing}
    found: dict[str, Missing] = {}
    for branch in described.branches:
        try:
            called = interpreter.ops_of(branch.ir)
        except IRError as error:
            raise FileError(f"'{path}': {error}") from None
        for op, node in called.items():
            if _minitensor.is_custom_op_registered_py(op):
                own = _minitensor.describe(op)["signature"]
                if op in known and known[op].signature != own:
                    raise FileError(
                        f"'{path}': the registered op '{own}' is not the op '{known[op].signature}' of the model; "
                        "install "
                        f"plugin '{known[op].plugin}' {known[op].version}"
                    )
            elif op in known:
                found[op] = known[op]
            elif not allow_missing:
                raise FileError(
                    f"'{path}': node '{node}' calls op '{op}', which minitensor {_minitensor.__version__} does not "
                    "have, and which "
                    f"the file, written by minitensor {described.minitensor}, does not contain; upgrade minitensor, "
                    "or register the op"
                )
            else:
                found[op] = Missing(op, f"{op}(…)", None, None, "the file does not describe it")
    if found and not allow_missing:
        listed = "".join(f"\n  {op}" for op in found.values())
        raise FileError(f"'{path}' needs ops that are missing; mt.load(…, allow_missing=True) shows the rest:{listed}")
    return list(found.values())
