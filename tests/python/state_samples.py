"""Tensors of all dtypes for tests of states."""

from minitensor.saving import safetensors

import minitensor as mt

DTYPES = [dtype for dtype, _ in safetensors.DTYPES.values()] + ["complex128"]


def sample(dtype, shape):
    values = mt.randint(0, 2 if dtype == "bool" else 100, shape)
    return values.astype(dtype) if dtype in ("bool", "uint64", "int64") else (values * 0.37).astype(dtype)


def samples(dtypes=DTYPES):
    shapes = [(), (0,), (3, 0, 2), (1,), (2, 3), (2, 1, 5)]
    return {f"{dtype}.{k}": sample(dtype, shape) for dtype in dtypes for k, shape in enumerate(shapes)}
