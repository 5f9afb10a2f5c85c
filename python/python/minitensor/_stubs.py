"""Generates type stubs from the registry: `python -m minitensor stubs` writes `ops.pyi` and `_methods.pyi`."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from ._minitensor import Tensor, _op_names, describe

HEADER = '"""{doc} Made by `python -m minitensor stubs`; don\'t edit."""\n\n'
IMPORTS = "from collections.abc import Sequence\nfrom typing import Any, Literal, NamedTuple\n\n"
#: Methods that differ from their op. They are declared in `_minitensor.pyi`.
OWN = ("astype", "detach")
TYPES = {
    "bool": "bool",
    "int": "int",
    "float": "float",
    "list[int]": "int | Sequence[int]",
    "list[float]": "Sequence[float]",
    "dtype": "DTypeLike",
}


def _attribute_type(attr: dict[str, Any]) -> str:
    kind = attr["kind"]
    if words := attr.get("words"):
        base = "Literal[" + ", ".join(f'"{w}"' for w in words) + "]"
    else:
        base = TYPES.get(kind, kind)
    return f"{base} | None" if attr["optional"] else base


def _default(value: object) -> str:
    """Returns the source text of a default, or `...` if it has no literal."""
    is_plain = (
        value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
    )
    return json.dumps(value) if isinstance(value, str) else repr(value) if is_plain else "..."


def _parameters(op: dict[str, Any]) -> list[str]:
    """Returns parameters such as `x: TensorLike`. A required parameter after an optional one gets the default `...`."""
    parameters = []
    for i in op["inputs"]:
        kind = "Tensor" if i["mutated"] else "Sequence[Tensor]" if i["variadic"] else "TensorLike"
        parameters.append(f"{i['name']}: {kind} | None = None" if i["optional"] else f"{i['name']}: {kind}")
    for a in op["attributes"]:
        default = "" if a["required"] else f" = {_default(a['default'])}"
        parameters.append(f"{a['name']}: {_attribute_type(a)}{default}")
    seen = False
    for k, parameter in enumerate(parameters):
        seen = seen or " = " in parameter
        if seen and " = " not in parameter:
            parameters[k] = f"{parameter} = ..."
    return parameters


def _result_class(op: dict[str, Any]) -> str:
    words = "".join(c if c.isalnum() else " " for c in op["name"]).split()
    return "".join(w[:1].upper() + w[1:] for w in words) + "Result"


def _returned(op: dict[str, Any]) -> list[str]:
    return [o["name"] for o in op["outputs"] if o["role"] == "returned"]


def _result(op: dict[str, Any], prefix: str = "") -> str:
    returned = _returned(op)
    mutated = [i for i in op["inputs"] if i["mutated"]]
    if not returned:
        return "Tensor" if len(mutated) == 1 else "None"
    if len(returned) > 1:
        return prefix + _result_class(op)
    return "tuple[Tensor, ...]" if returned == ["outs"] else "Tensor"


def _function(name: str, parameters: list[str], result: str, indent: str) -> str:
    head = f"{indent}def {name}({', '.join(parameters)}) -> {result}: ..."
    if len(head) <= 120:
        return head + "\n"
    lines = "".join(f"{indent}    {p},\n" for p in parameters)
    return f"{indent}def {name}(\n{lines}{indent}) -> {result}: ...\n"


def _tree(ops: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the ops as a tree of namespaces."""
    root: dict[str, Any] = {}
    for op in ops:
        for name in [op["name"], *op["aliases"]]:
            *namespaces, last = name.split("::")
            node = root
            for namespace in namespaces:
                node = node.setdefault(namespace, {})
            node[last] = op
    return root


def _write_tree(tree: dict[str, Any], indent: str) -> str:
    out = ""
    for name, node in sorted(tree.items()):
        if "inputs" in node and isinstance(node["inputs"], list):
            out += (f"{indent}@staticmethod\n" if indent else "") + _function(
                name, _parameters(node), _result(node), indent
            )
        else:
            out += f"{indent}class {name}:\n{_write_tree(node, indent + '    ')}\n"
    return out


def built_in() -> list[dict[str, Any]]:
    """Returns the descriptions of all ops defined in Rust, without gradients."""
    ops = [describe(name) for name in _op_names()]
    return [op for op in ops if not op["location"].partition(":")[0].endswith((".py", ">"))]


def _functions(ops: list[dict[str, Any]]) -> str:
    """Returns the stubs of all ops, in classes for the namespaces, after the result classes."""
    out = ""
    for op in ops:
        if len(_returned(op)) > 1:
            fields = "".join(f"    {name}: Tensor\n" for name in _returned(op))
            out += f"class {_result_class(op)}(NamedTuple):\n{fields}\n"
    return out + _write_tree(_tree(ops), "")


def ops_stub() -> str:
    """Returns the text of `ops.pyi`."""
    out = HEADER.format(doc="The functions of `mt.ops`.") + IMPORTS
    out += "from ._minitensor import DTypeLike, Tensor, TensorLike\n\n"
    out += _functions(built_in())
    out += "def describe(name: str) -> dict[str, Any]: ...\ndef __getattr__(name: str) -> Any: ...\n"
    return out


def plugin_stub(name: str, ops: list[str]) -> str:
    """Returns the stub of a plugin's package, whose attributes are the ops in the namespace of the same name."""
    described = [describe(op) for op in ops]
    for op in described:
        op["name"] = op["name"].removeprefix(f"{name}::")
        op["aliases"] = [alias.removeprefix(f"{name}::") for alias in op["aliases"]]
    text = _functions(described)
    names = {
        "collections.abc": ["Sequence"],
        "typing": ["Literal", "NamedTuple"],
        "minitensor": ["Tensor"],
        "minitensor._minitensor": ["DTypeLike", "TensorLike"],
    }
    used = {module: [n for n in names[module] if re.search(rf"\b{n}\b", text)] for module in names}
    lines = [f"from {module} import {', '.join(words)}\n" for module, words in used.items() if words]
    return f'"""The ops of {name}."""\n\n{"".join(lines)}\n{text}'


def methods_stub() -> str:
    """Returns the text of `_methods.pyi`, the methods of `Tensor` that are ops."""
    by_name = {name: op for op in built_in() for name in [op["name"], *op["aliases"]]}
    out = HEADER.format(doc="Methods of tensors that are ops.")
    out += "from collections.abc import Sequence\nfrom typing import Literal\n\n"
    out += "from . import ops\nfrom ._minitensor import DTypeLike, Tensor, TensorLike\n\nclass TensorMethods:\n"
    for name in sorted(vars(Tensor)):
        op = by_name.get(name)
        if op is None or type(vars(Tensor)[name]).__name__ != "method_descriptor" or name in OWN:
            continue
        parameters = ["self", *_parameters(op)[1:]]
        attrs = op["attributes"]
        if len(op["inputs"]) == 1 and [a["kind"] for a in attrs] == ["list[int]"]:
            # `x.reshape(2, 3)` is the same as `x.reshape((2, 3))`.
            parameters.append("*more: int")
        out += _function(name, parameters, _result(op, "ops."), "    ")
    return out


FILES = {"ops.pyi": ops_stub, "_methods.pyi": methods_stub}


def write(folder: Path = Path(__file__).parent) -> list[Path]:
    """Writes the stubs into the package."""
    for name, text in FILES.items():
        (folder / name).write_text(text())
    return [folder / name for name in FILES]
