"""Reference implementations of the random ops: Philox 4x32-10 and the distributions, with NumPy's integers."""

import numpy as np

LOW = np.uint64(0xFFFFFFFF)


def blocks(key, n):
    """Returns the two 64-bit words of each of `n` blocks of a key."""
    index = key[1] + np.arange(n, dtype=np.uint64)
    counter = [index & LOW, index >> np.uint64(32), np.zeros_like(index), np.zeros_like(index)]
    k0, k1 = int(key[0]) & 0xFFFFFFFF, int(key[0]) >> 32
    for _ in range(10):
        a, b = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            (b >> np.uint64(32)) ^ counter[1] ^ np.uint64(k0),
            b & LOW,
            (a >> np.uint64(32)) ^ counter[3] ^ np.uint64(k1),
            a & LOW,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([counter[0] << np.uint64(32) | counter[1], counter[2] << np.uint64(32) | counter[3]], -1)


def units(key, n):
    """Returns pairs of numbers in [0, 1) with 53 bits, for `n` numbers."""
    return (blocks(key, (n + 1) // 2) >> np.uint64(11)).astype(np.float64) / 2**53


def uniform(key, shape, bits=24):
    n = int(np.prod(shape))
    return (np.floor(units(key, n) * 2**bits) / 2**bits).ravel()[:n].reshape(shape)


def normal(key, shape):
    n = int(np.prod(shape))
    a, b = units(key, n).T
    radius, angle = np.sqrt(-2 * np.log1p(-a)), 2 * np.pi * b
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).ravel()[:n].reshape(shape)


def integers(key, low, high, shape):
    n = int(np.prod(shape))
    numbers = [((int(a) << 64 | int(b)) * (high - low) >> 128) + low for a, b in blocks(key, n)]
    return np.array(numbers).reshape(shape)


def dropout(x, key, p):
    kept = uniform(key, x.shape, {2: 24, 4: 24, 8: 53}[x.dtype.itemsize]) >= p
    return np.where(kept, x / (1 - p), 0)
