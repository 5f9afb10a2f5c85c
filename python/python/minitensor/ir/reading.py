"""An IR from JSON. The text is not trusted."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .error import IRError
from .meta import Constant, TensorMeta
from .node import Input, OpNode
from .symbols import Sym
from .writing import FORMAT, VERSION

if TYPE_CHECKING:
    from .graph import IR

__all__ = ["MAX_BYTES", "from_json"]

#: The most bytes of a text, unless the caller allows more.
MAX_BYTES = 2**28
#: The depth of the JSON: a section, an item of it, its attributes, and nested lists.
MAX_DEPTH = 16

T = TypeVar("T")
_OPENING, _CLOSING = "[{", "]}"
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def from_json(cls: type[IR], text: str | bytes, max_bytes: int = MAX_BYTES) -> IR:
    """Reads an IR. Raises IRError for any defect."""
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"from_json takes a str or bytes, got {type(text).__name__}")
    if len(text) > max_bytes:
        raise IRError(f"the JSON has {len(text)} bytes; at most {max_bytes} are allowed, see the argument max_bytes")
    root = _Place("", _parsed(text)).object()
    form = root.get("format", "nothing")
    if form != FORMAT:
        raise IRError(f"the JSON is not an IR: 'format' must be {FORMAT!r}, got {form!r}")
    version = root.get("version")
    if type(version) is not int or version != VERSION:
        raise IRError(f"the IR has the version {version!r}, but this minitensor reads {VERSION}; write it again")
    place = _Place("", root)
    fields = place.fields(
        "format", "version", "name", "symbols", "inputs", "weights", "constants", "nodes", "outputs", "updates"
    )
    known: dict[str, TensorMeta] = {}
    inputs = fields["inputs"].each(lambda p: _defined(p, known))
    weights = fields["weights"].each(lambda p: _defined(p, known))
    constants = fields["constants"].each(lambda p: _constant(p, known))
    nodes = fields["nodes"].each(lambda p: _node(p, known))
    ir = cls(
        name=fields["name"].text(),
        inputs=inputs,
        weights=weights,
        nodes=nodes,
        outputs=fields["outputs"].each(lambda p: _reference(p, known)),
        constants=constants,
        symbols={name: _limits(p) for name, p in fields["symbols"].items()},
        updates={name: p.text() for name, p in fields["updates"].items()},
    )
    ir.check()
    return ir


class _Place:
    """A value, and where it is."""

    def __init__(self, where: str, value: Any) -> None:
        self.where = where or "the JSON"
        self.value = value

    def error(self, expected: str) -> IRError:
        shown = repr(self.value)
        return IRError(f"{self.where}: expected {expected}, got {shown if len(shown) < 80 else shown[:80] + '…'}")

    def object(self) -> dict[str, Any]:
        if type(self.value) is not dict:
            raise self.error("an object")
        return self.value

    def fields(self, *names: str) -> dict[str, _Place]:
        """The fields of an object that has these fields and no others."""
        found = self.object()
        for name in found.keys() - set(names):
            raise IRError(f"{self.where}: unknown field {name!r}; expected {', '.join(names)}")
        for name in names:
            if name not in found:
                raise IRError(f"{self.where}: the field {name!r} is missing")
        prefix = "" if self.where == "the JSON" else f"{self.where}."
        return {name: _Place(prefix + name, found[name]) for name in names}

    def items(self) -> list[tuple[str, _Place]]:
        return [(name, _Place(f"{self.where}.{name}", value)) for name, value in self.object().items()]

    def each(self, read: Callable[[_Place], T]) -> list[T]:
        if type(self.value) is not list:
            raise self.error("a list")
        return [read(_Place(f"{self.where}[{i}]", value)) for i, value in enumerate(self.value)]

    def text(self) -> str:
        if type(self.value) is not str:
            raise self.error("a text")
        return self.value

    def integer(self) -> int:
        if type(self.value) is not int:
            raise self.error("an integer")
        return self.value


def _parsed(text: str | bytes) -> Any:
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        # Python's reader recurses, and its writer rejects lone surrogates.
        decoded.encode("utf-8")
        if _depth(decoded) > MAX_DEPTH:
            raise IRError(f"the JSON is nested more than {MAX_DEPTH} levels deep")
        return json.loads(decoded, object_pairs_hook=_object, parse_constant=_constant_word, parse_float=_float)
    except UnicodeError as error:
        raise IRError(f"the text is not UTF-8: {error}") from None
    except json.JSONDecodeError as error:
        raise IRError(f"the text is not JSON: {error}; is it truncated?") from None
    except RecursionError:
        raise IRError(f"the JSON is nested more than {MAX_DEPTH} levels deep") from None
    except IRError:
        raise
    except ValueError as error:
        raise IRError(f"the JSON has a number that is too long: {error}") from None


def _depth(text: str) -> int:
    """Returns the depth of brackets outside of strings."""
    deepest = depth = 0
    # The parts between quotes alternate, once escaped quotes are removed.
    for part in text.replace("\\\\", "").replace('\\"', "").split('"')[::2]:
        if not any(c in part for c in "[]{}"):
            continue
        for c in part:
            if c in _OPENING:
                depth += 1
                deepest = max(deepest, depth)
            elif c in _CLOSING:
                depth -= 1
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise IRError(f"the JSON has an object with two fields {name!r}")
        found[name] = value
    return found


def _constant_word(word: str) -> Any:
    raise IRError(f'{word} is not JSON; write {{"float": "{word.lower().replace("infinity", "inf")}"}}')


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise IRError(f"the number {text[:40]} is too large")
    return value


def _limits(place: _Place) -> tuple[int, int | None]:
    match place.value:
        case [least, greatest] if type(least) is int and (greatest is None or type(greatest) is int):
            return least, greatest
    raise place.error("[least, greatest or null]")


def _meta(place: _Place, *more: str) -> tuple[TensorMeta, dict[str, _Place]]:
    fields = place.fields("name", "dtype", "shape", *more)
    shape = fields["shape"].each(_size)
    try:
        return TensorMeta(fields["name"].text(), tuple(shape), fields["dtype"].text()), fields
    except IRError as error:
        raise IRError(f"{place.where}: {error}") from None


def _size(place: _Place) -> int | str:
    if type(place.value) is str:
        return place.value
    return place.integer()


def _defined(place: _Place, known: dict[str, TensorMeta]) -> TensorMeta:
    meta, _ = _meta(place)
    return known.setdefault(meta.name, meta) if meta.name not in known else meta


def _constant(place: _Place, known: dict[str, TensorMeta]) -> Constant:
    meta, fields = _meta(place, "data")
    known.setdefault(meta.name, meta)
    text = fields["data"].text()
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise IRError(f"{place.where}.data is not base64: {error}") from None
    if base64.b64encode(data).decode() != text:
        raise IRError(f"{place.where}.data is not canonical base64")
    return Constant(meta, data)


def _reference(place: _Place, known: dict[str, TensorMeta]) -> TensorMeta:
    name = place.text()
    # A tensor that is not known gets a placeholder, which `check` reports.
    return known.get(name) or TensorMeta(name, (), "unknown")


def _node(place: _Place, known: dict[str, TensorMeta]) -> OpNode:
    fields = place.fields("name", "op_type", "inputs", "outputs", "attrs")
    return OpNode(
        name=fields["name"].text(),
        op_type=fields["op_type"].text(),
        inputs=fields["inputs"].each(lambda p: _reference(p, known)),
        outputs=fields["outputs"].each(lambda p: _defined(p, known)),
        attrs={name: _attribute(p) for name, p in fields["attrs"].items()},
    )


def _attribute(place: _Place) -> Any:
    match place.value:
        case list():
            return place.each(_attribute)
        case {"sym": str(text), **others} if not others:
            try:
                return Sym(text)
            except IRError as error:
                raise IRError(f"{place.where}: {error}") from None
        case {"input": int(position), **others} if not others and type(position) is int:
            return Input(position)
        case {"float": str(word), **others} if not others and word in _NOT_FINITE:
            return _NOT_FINITE[word]
        case {"complex": [real, imaginary], **others} if not others:
            parts = [_attribute(_Place(place.where, part)) for part in (real, imaginary)]
            if all(type(part) is float for part in parts):
                return complex(*parts)
        case dict():
            pass
        case value:
            return value
    raise place.error('null, a number, a text, a list, {"sym": …}, {"input": …}, {"float": …} or {"complex": …}')
