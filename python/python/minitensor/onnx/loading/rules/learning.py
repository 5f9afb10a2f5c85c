"""Features and labels of classical machine learning: the domain `ai.onnx.ml`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import _minitensor as mt
from .... import ops
from ..error import OnnxError
from ..rule import rule
from ..values import Known, Tensor, Value, is_text, known, tensor

DOMAIN = "ai.onnx.ml"


@rule("ArrayFeatureExtractor", domain=DOMAIN, moves=True)
def _array_feature_extractor(x: Tensor, index: Tensor) -> Tensor:
    rows = ops.reshape(x, [1, -1]) if x.ndim == 1 else x
    return ops.take(rows, ops.reshape(index, [index.size]), -1)


@rule("Binarizer", domain=DOMAIN)
def _binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    return ops.astype(ops.gt(x, threshold), x.dtype)


@rule("Scaler", domain=DOMAIN)
def _scaler(x: Tensor, *, offset: list[float], scale: list[float]) -> Tensor:
    first, factor = (tensor(np.array(v, dtype="float32")) for v in (offset, scale))
    return (ops.astype(x, "float32") - first) * factor


@rule("Normalizer", domain=DOMAIN)
def _normalizer(x: Tensor, *, norm: str = "MAX") -> Tensor:
    x = ops.astype(x, "float32")
    if norm == "MAX":
        size = ops.amax(ops.abs(x), -1, True)
    elif norm == "L1":
        size = ops.sum(ops.abs(x), -1, True)
    else:
        size = ops.sqrt(ops.sum(x * x, -1, True))
    return x / ops.where(ops.eq(size, 0.0), ops.zeros_like(size) + 1.0, size)


def _items(value: Value) -> list[Any]:
    return [] if value is None else (value if is_text(value) else known(value)).reshape(-1).tolist()


@rule("LabelEncoder", domain=DOMAIN, since=2)
def _label_encoder(
    x: Value,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Value = None,
    keys_floats: list[float] | None = None,
    keys_int64s: list[int] | None = None,
    keys_strings: list[str] | None = None,
    keys_tensor: Value = None,
    values_floats: list[float] | None = None,
    values_int64s: list[int] | None = None,
    values_strings: list[str] | None = None,
    values_tensor: Value = None,
) -> Value:
    keys = keys_floats or keys_int64s or keys_strings or _items(keys_tensor)
    dtype: str
    values: Sequence[Any]
    default: Any
    if values_strings is not None:
        values, default, dtype = values_strings, default_string, "object"
    elif values_floats is not None:
        values, default, dtype = values_floats, default_float, "float32"
    elif values_int64s is not None:
        values, default, dtype = values_int64s, default_int64, "int64"
    else:
        is_of_text = is_text(values_tensor)
        values, dtype = _items(values_tensor), "object" if is_of_text else values_tensor.dtype.name
        fallback: Any = default_string if is_of_text else default_float if "float" in dtype else default_int64
        default = fallback if default_tensor is None else _items(default_tensor)[0]
    # A NaN is a key, too.
    table = {_key(k): v for k, v in zip(keys, values, strict=True)}
    found = [table.get(_key(item), default) for item in _items(x)]
    array = np.empty(len(found), dtype=dtype)
    array[:] = found
    return array.reshape(x.shape)


def _key(item: Any) -> Any:
    return "NaN" if isinstance(item, float) and math.isnan(item) else item


@rule("LabelEncoder", domain=DOMAIN)
def _label_encoder_1(
    x: Value, *, classes_strings: list[str] | None = None, default_int64: int = -1, default_string: str = "_Unused"
) -> Value:
    return _mapped(x, list(range(len(classes_strings or []))), classes_strings or [], default_int64, default_string)


@rule("CategoryMapper", domain=DOMAIN)
def _category_mapper(
    x: Value,
    *,
    cats_int64s: list[int],
    cats_strings: list[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Value:
    return _mapped(x, cats_int64s, cats_strings, default_int64, default_string)


def _mapped(x: Value, numbers: list[int], texts: list[str], number: int, text: str) -> Value:
    """Strings as their numbers, or numbers as their strings."""
    if is_text(x):
        return _label_encoder(x, keys_strings=texts, values_int64s=numbers, default_int64=number)
    return _label_encoder(x, keys_int64s=numbers, values_strings=texts, default_string=text)


@rule("Imputer", domain=DOMAIN)
def _imputer(
    x: Tensor,
    *,
    imputed_value_floats: list[float] | None = None,
    imputed_value_int64s: list[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Tensor:
    is_float = x.dtype.is_floating_point
    value = replaced_value_float if is_float else replaced_value_int64
    filled = imputed_value_floats if is_float else imputed_value_int64s
    is_missing = ops.isnan(x) if math.isnan(value) else ops.eq(x, value)
    return ops.where(is_missing, tensor(np.array(filled)).astype(x.dtype), x)


@rule("FeatureVectorizer", domain=DOMAIN)
def _feature_vectorizer(*xs: Tensor, inputdimensions: list[int] | None = None) -> Tensor:
    rows = [ops.astype(ops.reshape(x, [-1, 1]) if x.ndim == 1 else x, "float32") for x in xs]
    sizes = [row.shape[1] for row in rows] if inputdimensions is None else inputdimensions
    found = []
    for row, size in zip(rows, sizes, strict=True):
        # Features that are missing are 0, and those that are too many are cut.
        missing = size - row.shape[1]
        found.append(ops.pad(row, [0, missing]) if missing > 0 else ops.slice(row, 1, 0, size))
    return ops.concat(found, 1) if len(found) > 1 else found[0]


@rule("OneHotEncoder", domain=DOMAIN)
def _one_hot_encoder(
    x: Value, *, cats_int64s: list[int] | None = None, cats_strings: list[str] | None = None, zeros: int = 1
) -> Tensor:
    if is_text(x):
        labels = cats_strings or []
        at = tensor(_label_encoder(x, keys_strings=labels, values_int64s=list(range(len(labels)))))
        found = ops.eq(ops.expand_dims(at, -1), mt.arange(len(labels), dtype="int64"))
    else:
        numbers = tensor(np.array(cats_int64s or [], dtype="int64"))
        found = ops.eq(ops.expand_dims(ops.astype(tensor(x), "int64"), -1), numbers)
    if not zeros and not known(ops.any(found, [-1])).all():
        raise OnnxError("an element is no category, which zeros=0 forbids; add the category, or set zeros=1")
    return ops.astype(found, "float32")


@rule("ZipMap", domain=DOMAIN)
def _zip_map(
    x: Known, *, classlabels_int64s: list[int] | None = None, classlabels_strings: list[str] | None = None
) -> tuple[Value]:
    labels: Sequence[Any] = classlabels_int64s or classlabels_strings or []
    return ([dict(zip(labels, row, strict=True)) for row in x.tolist()],)
