"""Calls on memory that other threads change meanwhile. What they return may be anything; the process must survive."""

import sys
import threading

import calls
import claims
import numpy as np
import tensors

import minitensor as mt

PATTERNS = [0, 1, -1, 2**62, -(2**63), 255, 3]


class Writers:
    """Threads that write to the memory of tensors until the block ends."""

    def __init__(self, arrays, seed):
        self.arrays, self.seed, self.done = arrays, seed, False
        self.threads = [threading.Thread(target=self.write, args=(k,), daemon=True) for k in range(2)]

    def write(self, k):
        draw = np.random.default_rng([self.seed, k])
        while not self.done:
            for bytes_, whole in self.arrays:
                pattern = int(draw.integers(0, len(PATTERNS) + 2))
                if pattern >= len(PATTERNS):
                    bytes_[...] = draw.integers(0, 256, bytes_.shape, dtype="uint8")
                elif whole.dtype.kind in "iu":
                    whole[...] = np.array(PATTERNS[pattern], "int64").astype(whole.dtype)
                elif whole.dtype.kind in "fc":
                    whole[...] = tensors.SPECIAL[pattern]
                else:
                    bytes_[...] = PATTERNS[pattern] & 255

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *error):
        self.done = True
        for thread in self.threads:
            thread.join()


def shared(x):
    """The memory of a tensor as bytes and as elements, or None if NumPy can't write to it."""
    if x.dtype == mt.bfloat16 or not x.is_contiguous() or not x.numel():
        return None
    a = x.detach().numpy().reshape(-1)
    return a.view("uint8"), a


def rounds(call, leaf):
    for _ in range(4):
        results = claims.attempt(call, leaf)
        if claims.failed(results):
            continue
        outputs = [r for r in results if r.requires_grad and r.numel() <= 1 << 22]
        if not outputs:
            continue
        wrt = [x for x in claims.flat(leaf) if x.requires_grad]
        seeds = [mt.ones_like(r) for r in outputs]
        claims.attempt(lambda wrt=wrt, outputs=outputs, seeds=seeds: gradients(outputs, seeds, wrt))


def gradients(outputs, seeds, wrt):
    """Two orders. NumPy's writes are not counted as changes, so what is saved is used although it has changed."""
    first = mt.grad(outputs, wrt, seeds, create_graph=True, allow_unused=True)
    again = [g for g in first if g is not None and g.requires_grad]
    if again:
        mt.grad(again, wrt, [mt.ones_like(g) for g in again], allow_unused=True)


def case(rng, told):
    sys.setswitchinterval(1e-6)
    call = calls.random_call(rng, large=True)
    told["call"] = str(call)
    leaf = claims.leaves(call.inputs)
    if calls.OPS[call.name]["inputs"] and calls.OPS[call.name]["inputs"][0]["mutated"]:
        leaf = call.inputs
    arrays = [pair for pair in map(shared, claims.flat(leaf)) if pair]
    with Writers(arrays, rng.getrandbits(32)), np.errstate(all="ignore"):
        rounds(call, leaf)
    return "returned"
