"""The part of a file that describes a model: JSON in the metadata of a safetensors file."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .. import _minitensor
from .._minitensor import Tensor
from ..ir import IR, IRError, Sym
from ..ir.symbols import walk
from . import safetensors, sizes, structure
from .carried import Missing
from .error import FileError
from .model import Branch

__all__ = ["KEY", "Manifest", "TensorInfo", "read", "written"]

#: The key of the metadata.
KEY = "minitensor.model"
VERSION = 1
KINDS = ("parameter", "buffer", "non-persistent buffer", "constant")
_MODES = {"training": True, "evaluation": False, "any": None}


class TensorInfo(NamedTuple):
    """The role of a tensor."""

    kind: str
    requires_grad: bool
    #: The name of the same tensor, if it has several names.
    same_as: str | None


class Manifest(NamedTuple):
    """The description of a model."""

    #: The version of minitensor that wrote the file.
    minitensor: str
    branches: list[Branch]
    tensors: dict[str, TensorInfo]
    #: The definitions of ops, as JSON.
    ops: list[str]
    missing: list[Missing]
    training: bool


def written(manifest: Manifest) -> str:
    """Returns the JSON."""
    modes = {value: name for name, value in _MODES.items()}
    data = {
        "version": VERSION,
        "minitensor": manifest.minitensor,
        "training": manifest.training,
        "graphs": [
            {
                "mode": modes[branch.training],
                "inputs": branch.inputs,
                "outputs": branch.outputs,
                "ir": json.loads(branch.ir.to_json()),
            }
            for branch in manifest.branches
        ],
        "tensors": {name: info._asdict() for name, info in manifest.tensors.items()},
        "ops": [json.loads(definition) for definition in manifest.ops],
        "missing": [op._asdict() for op in manifest.missing],
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def read(path: object, metadata: dict[str, str], tensors: dict[str, Tensor]) -> Manifest:
    """Reads the JSON, without trust."""
    if KEY not in metadata:
        raise FileError(
            f"'{path}' is a safetensors file without a model; read its tensors with mt.load_state('{path}')"
            if "minitensor.state" not in metadata
            else f"'{path}' has a state or a checkpoint, not a model; read it with mt.load_state or mt.load_checkpoint"
        )
    data = safetensors.parsed(path, "the model", metadata[KEY])
    if not isinstance(data, dict):
        raise FileError(f"'{path}': the model must be a JSON object")
    if data.get("version") != VERSION or type(data["version"]) is not int:
        writer = str(data.get("minitensor", "another version"))[:40]
        raise FileError(
            f"'{path}' has version {str(data.get('version'))[:40]} of the format, written by minitensor {writer}, "
            "but minitensor "
            f"{_minitensor.__version__} reads version {VERSION}; upgrade minitensor, or save the model again"
        )
    fields = _fields(
        path,
        "the model",
        data,
        {
            "version": int,
            "minitensor": str,
            "training": bool,
            "graphs": list,
            "tensors": dict,
            "ops": list,
            "missing": list,
        },
    )
    infos = {name: _info(path, name, value) for name, value in fields["tensors"].items()}
    _check_tensors(path, infos, tensors)
    branches = [_branch(path, k, value, infos, tensors) for k, value in enumerate(fields["graphs"])]
    if not branches:
        raise FileError(f"'{path}' has no graph; save the model again")
    return Manifest(
        fields["minitensor"],
        branches,
        infos,
        [json.dumps(op) for op in fields["ops"]],
        [_missing(path, k, value) for k, value in enumerate(fields["missing"])],
        fields["training"],
    )


def _fields(path: object, where: str, value: Any, kinds: dict[str, type]) -> dict[str, Any]:
    """Returns an object with exactly these fields."""
    if not isinstance(value, dict) or value.keys() != kinds.keys():
        raise FileError(f"'{path}': {where} must be an object with the fields {', '.join(kinds)}")
    for name, kind in kinds.items():
        if kind is not object and type(value[name]) is not kind:
            raise FileError(
                f"'{path}': '{name}' of {where} must be of type {kind.__name__}, got {str(value[name])[:60]}"
            )
    return value


def _info(path: object, name: str, value: Any) -> TensorInfo:
    where = f"tensor '{name[:80]}'"
    fields = _fields(path, where, value, {"kind": str, "requires_grad": bool, "same_as": object})
    info = TensorInfo(**fields)
    if info.kind not in KINDS:
        raise FileError(f"'{path}': the kind of {where} must be one of {', '.join(KINDS)}, got '{info.kind[:40]}'")
    if info.same_as is not None and type(info.same_as) is not str:
        raise FileError(f"'{path}': 'same_as' of {where} must be the name of a tensor")
    if not all(name.split(".")):
        raise FileError(f"'{path}': {where} has an empty part in its name")
    return info


def _check_tensors(path: object, infos: dict[str, TensorInfo], tensors: dict[str, Tensor]) -> None:
    """The file has the elements of all tensors, and nothing else. No name is a part of another."""
    own = {name for name, info in infos.items() if info.same_as is None}
    if lacking := sorted(own - tensors.keys()):
        raise FileError(f"'{path}' lacks the elements of the tensors {', '.join(lacking[:10])}; save the model again")
    if unknown := sorted(tensors.keys() - own):
        raise FileError(f"'{path}' has tensors that the model does not have: {', '.join(unknown[:10])}")
    folders = {name.rsplit(".", k)[0] for name in infos for k in range(1, name.count(".") + 1)}
    if both := sorted(folders & infos.keys()):
        raise FileError(f"'{path}': '{both[0]}' is the name of a tensor and of a module")
    for name, info in infos.items():
        if info.same_as is not None and (other := infos.get(info.same_as, info)).same_as is not None:
            raise FileError(f"'{path}': tensor '{name}' is the same as '{info.same_as}', which has no elements")
        if info.same_as is not None and other != info._replace(same_as=None):
            raise FileError(f"'{path}': tensor '{name}' is the same as '{info.same_as}', but has another kind")
        if info.requires_grad and tensors[info.same_as or name].dtype.kind not in ("float", "complex"):
            raise FileError(
                f"'{path}': tensor '{name}' requires a gradient, so it must have a floating or complex dtype"
            )


def _branch(path: object, k: int, value: Any, infos: dict[str, TensorInfo], tensors: dict[str, Tensor]) -> Branch:
    where = f"graph {k}"
    fields = _fields(path, where, value, {"mode": str, "inputs": dict, "outputs": dict, "ir": dict})
    if fields["mode"] not in _MODES:
        raise FileError(f"'{path}': the mode of {where} must be one of {', '.join(_MODES)}")
    try:
        ir = IR.from_json(json.dumps(fields["ir"]))
    except IRError as error:
        raise FileError(f"'{path}': {where}: {error}") from None
    if ir.updates or ir.constants:
        raise FileError(f"'{path}': {where} has updates or constants, which the graph of a model does not have")
    _check_sizes(path, where, ir)
    for meta in ir.weights:
        info = infos.get(meta.name)
        if info is None:
            raise FileError(
                f"'{path}': {where} reads the weight '{meta.name}', which the file does not have; save it again"
            )
        t = tensors[info.same_as or meta.name]
        if t.shape != meta.shape or t.dtype.name != meta.dtype:
            raise FileError(f"'{path}': {where} reads {meta}, but the file has {t.dtype.name} {t.shape}")
    structure.check(path, f"the inputs of {where}", fields["inputs"], len(ir.inputs))
    structure.check(path, f"the outputs of {where}", fields["outputs"], len(ir.outputs))
    match fields["inputs"]:
        case {"tuple": [{"tuple": list()}, {"dict": list()}]}:
            pass
        case _:
            raise FileError(
                f"'{path}': the inputs of {where} must be a tuple of positional arguments and a dict of others"
            )
    return Branch(ir, fields["inputs"], fields["outputs"], _MODES[fields["mode"]])


def _check_sizes(path: object, where: str, ir: IR) -> None:
    """Sizes are bound by the inputs, and all others are polynomials of them."""
    if len(ir.symbols) > sizes.MOST or any(limits != (1, None) for limits in ir.symbols.values()):
        raise FileError(f"'{path}': {where} must have at most {sizes.MOST} symbols, which are at least 1")
    bound = {size for meta in ir.inputs for size in meta.shape if type(size) is str}
    if unbound := ir.symbols.keys() - bound:
        raise FileError(f"'{path}': {where} has the symbol '{min(unbound)}', which is not the size of an input")
    texts = [size for meta in ir.tensors() for size in meta.shape if type(size) is str]
    texts += [v.text for node in ir.nodes for value in node.attrs.values() for v in walk(value) if isinstance(v, Sym)]
    for text in texts:
        if not sizes.is_polynomial(text):
            raise FileError(f"'{path}': {where} has the size '{text[:60]}', which is not a sum of products of symbols")


def _missing(path: object, k: int, value: Any) -> Missing:
    where = f"missing op {k}"
    fields = _fields(
        path, where, value, {"name": str, "signature": str, "plugin": object, "version": object, "reason": str}
    )
    if any(fields[name] is not None and type(fields[name]) is not str for name in ("plugin", "version")):
        raise FileError(f"'{path}': the plugin and the version of {where} must be strings or null")
    return Missing(**fields)
