"""Texts and files that claim to be something: what can't be read raises."""

import io
import json
import pickle
import tempfile
from pathlib import Path

import claims
import tensors

import minitensor as mt

CONFIG = {"name": "my_ops", "version": "0.1.0", "minitensor": ">=0.1", "library": "lib.so", "ops": ["a"], "files": []}
WORDS = ["true", "null", "1e999", "-1", str(2**64), "NaN", "[", "{}"]
ALPHABET = "[](){}<>,.:;|&*+-/=!'\"\\ \n\0abxyn_0159é𝄞\u202e"


def mutated(rng, text):
    """The text with a few changes: characters and parts of it removed, doubled, exchanged, inserted."""
    for _ in range(rng.choice([0, 1, 1, 2, 3, 8])):
        i, j = sorted(rng.randint(0, len(text)) for _ in range(2))
        text = rng.choice(
            [
                lambda t, i, j: t[:i] + t[j:],
                lambda t, i, j: t[:j] + t[i:j] * rng.choice([1, 2, 50]) + t[j:],
                lambda t, i, j: t[:i] + rng.choice(ALPHABET) * rng.choice([1, 1, 1, 300]) + t[i:],
                lambda t, i, j: t[:i] + rng.choice(WORDS) + t[j:],
            ]
        )(text, i, j)[:100_000]
    return text


def nested(rng, depth=0):
    """Any value of JSON."""
    kind = rng.choice(["number", "text", "none", "list", "dict"] if depth < 4 else ["number", "text"])
    if kind == "list":
        return [nested(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    if kind == "dict":
        return {rng.choice([*CONFIG, "x", ""]): nested(rng, depth + 1) for _ in range(rng.randint(0, 3))}
    return {"number": rng.choice([0, -1, 1.5, 2**70]), "text": mutated(rng, "../a"), "none": None}[kind]


def configuration(rng, told):
    """A plugin.json, or a folder without one."""
    config = {k: nested(rng) if rng.random() < 0.3 else v for k, v in CONFIG.items() if rng.random() < 0.9}
    text = mutated(rng, json.dumps(config)) if rng.random() < 0.8 else "[" * rng.choice([10, 100_000])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plugin.json"
        path.write_bytes(text.encode(errors="surrogatepass"))
        told["call"] = text[:300]
        return claims.attempt(mt.plugins.load_plugin, path)


def library(rng, told):
    """A file that claims to be a library."""
    data = bytearray(rng.randbytes(rng.choice([0, 1, 64, 4096])))
    data[: rng.choice([0, 4, 16])] = rng.choice([b"\x7fELF\x02\x01\x01", b"MZ", b"\xcf\xfa\xed\xfe"])
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(data)
        file.flush()
        told["call"] = data[:40].hex()
        return claims.attempt(mt.plugins.load_plugin, file.name)


def clause(rng, told):
    """Names of ops, attributes and inputs, and what look-ups of them say."""
    name = mutated(rng, "fuzz::op_a")
    told["call"] = name[:200]

    def build():
        builder = mt.CustomOpBuilder(name, rng.choice([0, 1, 2])).forward(lambda *x: x[0] if x else mt.ones(1))
        if rng.random() < 0.3:
            builder = builder.attr(mutated(rng, "alpha"), rng.choice([float, int, bool, str, list[int], list]), 1)
        if rng.random() < 0.3:
            builder = builder.outputs(*[mutated(rng, "out") for _ in range(rng.randint(0, 2))])
        built = builder.build()
        built(mt.ones(2))

    claims.attempt(mt.ops.describe, name)
    claims.attempt(mt.execute_custom_op_py, name, [mt.ones(2)])
    return claims.attempt(build)


def dtype(rng, told):
    """Names of dtypes and devices, and shapes."""
    word = mutated(rng, rng.choice([*tensors.DTYPES, "cpu", "cuda:0", "meta"]))
    told["call"] = word[:200]
    claims.attempt(lambda: mt.zeros(2, dtype=word))
    claims.attempt(lambda: mt.zeros(2, device=word))
    return claims.attempt(lambda: mt.ones(2).to(word))


def pickled(rng, told):
    """A tensor's pickle with other arguments in it."""
    function, arguments, *rest = mt.ones((2, 3)).__reduce_ex__(rng.choice([2, 4]))[:3]
    arguments = [nested(rng) if rng.random() < 0.4 else a for a in arguments]
    told["call"] = repr(arguments)[:300]

    def load():
        x = function(*arguments)
        for state in rest:
            if state is not None:
                x.__setstate__(nested(rng))
        return pickle.loads(pickle.dumps(x, protocol=rng.choice([2, 5])))

    return claims.attempt(load)


def data(rng, told):
    """What a tensor is made of: nested lists, buffers and objects of any kind."""
    value = rng.choice([nested, lambda rng: bytearray(rng.randbytes(9)), lambda rng: io.BytesIO(), odd_array])(rng)
    told["call"] = repr(value)[:300]
    kind = rng.choice([None, *tensors.DTYPES])
    claims.attempt(lambda: mt.asarray(value, dtype=kind))
    return claims.attempt(lambda: mt.Tensor(value, dtype=kind, device=rng.choice(["cpu", "meta"])))


def odd_array(rng):
    np = tensors.np
    kinds = [">f4", "U3", "S2", "O", "M8[s]", "m8[D]", "f2", "c16", "i4,f4", "?", "V5", "g", "G"]
    a = np.zeros(tensors.shape(rng, 2), rng.choice(kinds))
    return rng.choice([a, a.T, a[::-1], np.broadcast_to(a, (3, *a.shape)), np.ma.array(a), a.view(np.recarray)])


def created(rng, told):
    """The functions that make tensors, with numbers at the ends of their ranges."""
    numbers = [0, 1, -1, 3, 2.5, -0.0, 1e300, float("nan"), float("inf"), 2**63, -(2**63), 2**70, True, 1j, None, "a"]
    name = rng.choice(["arange", "linspace", "full", "eye", "rand", "randn", "randint", "zeros", "ones", "empty"])
    arguments = [rng.choice([*numbers, (2, 3), (0, 2), (-1,)]) for _ in range(rng.randint(0, 4))]
    named = {"dtype": rng.choice(tensors.DTYPES)} if rng.random() < 0.5 else {}
    told["call"] = f"{name}{arguments} {named}"
    made = claims.attempt(lambda: getattr(mt, name)(*arguments, **named))
    return type(made).__name__


KINDS = [configuration, configuration, library, clause, dtype, pickled, data, created]


def case(rng, told):
    result = rng.choice(KINDS)(rng, told)
    return type(result).__name__ if claims.failed(result) else "returned"
