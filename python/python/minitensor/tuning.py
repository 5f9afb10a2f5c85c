"""The measured values of tuned attributes.

An op lists candidates for an attribute that only changes the speed, such as the size of a tile. If a call does not
pass the attribute, the first call of each class is run with every candidate, and the fastest is kept: in memory, and in
a file for later processes. A class consists of the op, dtypes, attributes other than floats, layouts, shapes with sizes
rounded up to powers of two, the number of threads, and the SIMD level.

| environment variable | meaning |
|---|---|
| `MINITENSOR_TUNE=off` | nothing is measured: the first candidate is used |
| `MINITENSOR_CACHE_DIR` | the folder of the file; by default `minitensor` in the user's cache folder |

>>> import minitensor as mt
>>> mt.tuning.choices()  # doctest: +SKIP
{'blur(float32[1024, 1024]; tile=16|32|64; 8 threads, avx512)': (32,)}
"""

from __future__ import annotations

from . import _minitensor

__all__ = ["choices", "clear"]


def choices() -> dict[str, tuple[int, ...]]:
    """Returns, for each class of calls, the values that its tuned attributes get."""
    return _minitensor._tuned()


def clear() -> None:
    """Forgets all values, and deletes the file."""
    _minitensor._clear_tuned()
