"""The file format safetensors: a header in JSON, then the elements of all tensors.

The format is that of https://github.com/huggingface/safetensors, which has readers in many languages. It has no
`complex128`; such a tensor is stored as `F64` with a last axis of 2, and the metadata lists its name. It has no
checksum either; the metadata has one, which is checked if it is there.
"""

from __future__ import annotations

import json
import math
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from .. import _minitensor
from .._minitensor import Tensor
from . import atomic
from .error import FileError

__all__ = ["COMPLEX", "Contents", "read", "write"]

#: The dtypes of the format, with the bytes of an element.
DTYPES = {
    "BOOL": ("bool", 1),
    "U8": ("uint8", 1),
    "I8": ("int8", 1),
    "U16": ("uint16", 2),
    "I16": ("int16", 2),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "U32": ("uint32", 4),
    "I32": ("int32", 4),
    "F32": ("float32", 4),
    "U64": ("uint64", 8),
    "I64": ("int64", 8),
    "F64": ("float64", 8),
    "C64": ("complex64", 8),
}
_CODES = {name: code for code, (name, _) in DTYPES.items()} | {"complex128": "F64"}
#: The key of the metadata that lists the tensors of complex128.
COMPLEX = "minitensor.complex128"
#: The key of the metadata with a checksum of everything else in the file.
CHECKSUM = "minitensor.crc32"
_METADATA = "__metadata__"
#: The largest header that readers of the format accept, in bytes.
MAX_HEADER = 100_000_000
#: The beginnings of files of other formats.
_OTHERS = {
    b"PK\x03\x04": "a zip archive, such as a file of torch.save or numpy.savez",
    b"\x80\x02": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
    b"\x93NUMPY": "a file of numpy.save",
    b"\x89HDF": "an HDF5 file",
    b"GGUF": "a GGUF file",
}


class _Entry(NamedTuple):
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Contents(NamedTuple):
    """The metadata and the tensors of a file."""

    metadata: dict[str, str]
    tensors: dict[str, Tensor]


def write(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes a file. A crash leaves the old file or the new one."""
    # Large elements first, so that all are aligned.
    names = sorted(tensors, key=lambda name: (-_itemsize(tensors[name]), name))
    texts = dict(metadata or {})
    paired = sorted(name for name in names if tensors[name].dtype.name == "complex128")
    if paired:
        texts[COMPLEX] = json.dumps(paired)
    elements = ((name, tensors[name], _minitensor._tensor_bytes(tensors[name].detach())) for name in names)
    texts[CHECKSUM] = _checksum(texts, elements)
    header: dict[str, Any] = {_METADATA: texts}
    offset = 0
    for name in names:
        tensor = tensors[name]
        if name == _METADATA:
            raise ValueError(f"a tensor cannot have the name '{_METADATA}' in a file; choose another")
        shape = [*tensor.shape, 2] if name in paired else list(tensor.shape)
        end = offset + math.prod(tensor.shape) * _itemsize(tensor)
        header[name] = {"dtype": _CODES[tensor.dtype.name], "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ValueError(f"the header of '{path}' would have {len(text)} bytes, but the format allows {MAX_HEADER}")

    def chunks() -> Iterator[bytes]:
        yield struct.pack("<Q", len(text)) + text
        for name in names:
            yield _minitensor._tensor_bytes(tensors[name].detach())

    atomic.write(path, chunks())


def _checksum(texts: Mapping[str, str], elements: Iterable[tuple[str, Tensor, bytes]]) -> str:
    """Returns the CRC-32 of the metadata, and of the names, dtypes, shapes and elements of tensors."""
    checksums = sorted(
        (name, zlib.crc32(data, zlib.crc32(f"{t.dtype.name} {tuple(t.shape)}".encode()))) for name, t, data in elements
    )
    known = sorted((key, text) for key, text in texts.items() if key != CHECKSUM)
    return f"{zlib.crc32(json.dumps([known, checksums]).encode()):08x}"


def _itemsize(tensor: Tensor) -> int:
    return tensor.dtype.itemsize


def read(path: str | os.PathLike[str]) -> Contents:
    """Reads a file. It need not be trusted."""
    with open(path, "rb") as file:
        header, size = _header(path, file)
        start = file.tell()
        metadata = _metadata(path, header.pop(_METADATA, {}))
        entries = {name: _entry(path, name, value) for name, value in header.items()}
        _check_offsets(path, entries, size - start)
        paired = _paired(path, metadata, entries)
        tensors: dict[str, Tensor] = {}

        def elements() -> Iterator[tuple[str, Tensor, bytes]]:
            for name, entry in sorted(entries.items(), key=lambda item: item[1].begin):
                file.seek(start + entry.begin)
                data = file.read(entry.end - entry.begin)
                shape, dtype = entry.shape, DTYPES[entry.dtype][0]
                if name in paired:
                    shape, dtype = shape[:-1], "complex128"
                try:
                    tensors[name] = _minitensor._tensor_from_bytes(data, dtype, shape)
                except ValueError as error:
                    raise FileError(f"'{path}': tensor '{_shown(name)}': {error}") from None
                yield name, tensors[name], data

        if CHECKSUM not in metadata:
            for _ in elements():
                pass
        elif _checksum(metadata, elements()) != metadata[CHECKSUM]:
            raise FileError(
                f"'{path}' is damaged: its checksum is not '{_shown(metadata[CHECKSUM])}', which its metadata has as "
                f"'{CHECKSUM}'; copy or save it again, or remove the checksum if another program has changed the file"
            )
        # In the order of the header.
        return Contents(metadata, {name: tensors[name] for name in entries})


def _header(path: object, file: BinaryIO) -> tuple[dict[str, Any], int]:
    size = os.fstat(file.fileno()).st_size
    start = file.read(8)
    for magic, what in _OTHERS.items():
        if start.startswith(magic):
            raise FileError(f"'{path}' is {what}, not a safetensors file; save it with mt.save or mt.save_state")
    if len(start) < 8:
        raise FileError(f"'{path}' has {size} bytes, so it is not a safetensors file, or truncated; save it again")
    (length,) = struct.unpack("<Q", start)
    if length > MAX_HEADER:
        raise FileError(
            f"'{path}' is not a safetensors file: its header would have {length} bytes, but the format allows "
            f"{MAX_HEADER}"
        )
    if length > size - 8:
        raise FileError(
            f"'{path}' is truncated: its header has {length} bytes, but the file ends after {size - 8}; copy it again"
        )
    text = file.read(length)
    if not text.startswith(b"{"):
        raise FileError(f"'{path}' is not a safetensors file: its header does not begin with '{{'")
    header = parsed(path, "the header", text)
    if not isinstance(header, dict):
        raise FileError(f"'{path}': the header must be a JSON object")
    return header, size


def parsed(path: object, what: str, text: str | bytes) -> Any:
    """Returns the value of a JSON text. An object with two equal keys is an error."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise FileError(
                    f"'{path}': {what} has two entries '{_shown(name)}'; the file is damaged, save it again"
                )
            found[name] = value
        return found

    def refuse(word: str) -> Any:
        raise FileError(f"'{path}': {what} has the number {word}, which JSON does not have")

    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
        # A lone surrogate cannot be written or shown.
        text.encode("utf-8")
        json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except FileError:
        raise
    except RecursionError:
        raise FileError(f"'{path}': {what} is nested too deeply") from None
    except ValueError as error:
        raise FileError(f"'{path}': {what} is not valid JSON: {error}; the file is damaged, save it again") from None


def _metadata(path: object, given: Any) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise FileError(f"'{path}': the metadata must be an object of strings")
    return given


def _shown(name: str) -> str:
    return name if len(name) <= 80 else name[:80] + "…"


def _entry(path: object, name: str, value: Any) -> _Entry:
    where = f"'{path}': tensor '{_shown(name)}'"
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise FileError(f"{where} must have the fields 'dtype', 'shape' and 'data_offsets' in the header")
    code, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(code, str) or code not in DTYPES:
        raise FileError(
            f"{where} has the dtype {_shown(repr(code))}, which is not supported; convert it to one of "
            f"{', '.join(DTYPES)}"
        )
    if not isinstance(shape, list) or not all(_is_size(n) for n in shape) or len(shape) > 64:
        raise FileError(f"{where}: the shape must be a list of at most 64 sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_size(n) for n in offsets):
        raise FileError(f"{where}: the offsets must be two sizes")
    begin, end = offsets
    expected = math.prod(shape) * DTYPES[code][1]
    if end < begin or end - begin != expected:
        raise FileError(
            f"{where} has the offsets [{begin}, {end}], but {code} of shape {_shown(str(shape))} has {expected} bytes"
        )
    return _Entry(code, tuple(shape), begin, end)


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _check_offsets(path: object, entries: Mapping[str, _Entry], size: int) -> None:
    """The tensors follow each other without gaps, and fill the file."""
    position, before = 0, "the header"
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != position:
            how = "overlaps" if entry.begin < position else "leaves a gap after"
            raise FileError(f"'{path}': tensor '{_shown(name)}' {how} {before}; the file is damaged, save it again")
        position, before = entry.end, f"tensor '{_shown(name)}'"
    if position > size:
        raise FileError(f"'{path}' is truncated: {before} ends at byte {position} of the data, which has {size} bytes")
    if position < size:
        raise FileError(f"'{path}' has {size - position} bytes after {before}, which belong to no tensor")


def _paired(path: object, metadata: Mapping[str, str], entries: Mapping[str, _Entry]) -> list[str]:
    names = parsed(path, f"the metadata '{COMPLEX}'", metadata.get(COMPLEX, "[]"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FileError(f"'{path}': the metadata '{COMPLEX}' must be a list of names")
    for name in names:
        entry = entries.get(name)
        if entry is None or entry.dtype != "F64" or entry.shape[-1:] != (2,):
            raise FileError(f"'{path}': tensor '{_shown(name)}' is not F64 with a last axis of 2, as complex128 needs")
    return names
