"""The modes: what one case of each does. A case gets a generator of random numbers and tells what it calls."""

import calls
import claims
import graphs
import methods
import texts
import threads

import minitensor as mt

EXCEPTIONS = {e.__name__ for e in claims.DOCUMENTED} | {"NotImplementedError", "UnicodeDecodeError"}


def ops(rng, told):
    """A call of an op, with all that is claimed of it."""
    mt.manual_seed(rng.getrandbits(32))
    call = calls.random_call(rng)
    told["call"] = str(call)
    return claims.check(call)


def levels(rng, told):
    """A call of an op and its gradients, for a digest to compare among SIMD levels."""
    mt.manual_seed(0)
    call = calls.random_call(rng)
    told["call"] = str(call)
    if calls.LEVELS_MAY_DIFFER.search(call.name):
        return "skipped"
    results = claims.attempt(call)
    if claims.failed(results):
        return type(results).__name__
    if not claims.small(results):
        return "large"
    return " ".join(claims.tensors.digest(x) for x in results)


MODES = {
    "ops": ops,
    "levels": levels,
    "graphs": graphs.case,
    "methods": methods.case,
    "threads": threads.case,
    "texts": texts.case,
}
