"""Normalizes an array that is larger than memory, with an op of minitensor on the blocks of a Dask array.

    python examples/large_array.py --gigabytes 20

The array is created block by block, and never exists as a whole. The program prints the peak of its memory, and fails
if that exceeds 2 GB or if the result is wrong.
"""

import argparse
import resource
import sys
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np

import minitensor as mt

COLUMNS = 4096
LIMIT = 2e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="the size of the array")
    parser.add_argument("--block-megabytes", type=float, default=32.0, help="the size of a block")
    options = parser.parse_args()
    rows = int(options.gigabytes * 1e9 / COLUMNS / 4)
    block = max(1, int(options.block_megabytes * 1e6 / COLUMNS / 4))
    rng = da.random.default_rng(0)
    x = rng.standard_normal((rows, COLUMNS), dtype=np.float32, chunks=(block, COLUMNS)) * 3 + 1
    y = mt.map_blocks("layer_norm", x)
    print(f"{x.nbytes / 1e9:.1f} GB in {x.npartitions} blocks, {y.dtype}")
    start = time.perf_counter()
    mean, variance, last = dask.compute(
        y.mean(dtype="float64"), (y * y).mean(dtype="float64"), y[-1], scheduler="threads"
    )
    peak = peak_memory()
    print(f"mean {mean:.4f}, variance {variance:.4f}, in {time.perf_counter() - start:.0f} s")
    print(f"peak of the memory: {peak / 1e9:.2f} GB")
    np.testing.assert_allclose([mean, variance], [0, 1], atol=1e-3)
    np.testing.assert_allclose(last.std(), 1, atol=1e-3)
    if peak > LIMIT:
        sys.exit(f"the peak exceeds {LIMIT / 1e9:.0f} GB")


def peak_memory() -> int:
    """The most memory that this process had, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux, `ru_maxrss` also counts the memory of the process that started this one.
        return 1024 * int(status.read_text(encoding="ascii").split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
