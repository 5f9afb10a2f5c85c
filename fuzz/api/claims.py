"""What holds for every call, whatever it is given."""

import calls
import tensors

import minitensor as mt

#: The exceptions that a call may raise.
DOCUMENTED = (TypeError, ValueError, IndexError, RuntimeError, MemoryError, OverflowError, BufferError, AttributeError)
#: What no message may say: it would report a fault of the library's own.
INTERNAL = ("panicked", "internal error", "a fault in", "unwrap", "unreachable", "assertion")
#: Results with more elements are not compared.
MOST = 200_000


class Broken(Exception):
    """A claim that does not hold."""


def attempt(call, *args):
    """What a call returns, or the exception that it raises, which must be of a documented kind."""
    try:
        return call(*args)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if not isinstance(error, DOCUMENTED):
            raise Broken(f"raises {type(error).__name__}: {str(error)[:300]}") from error
        message = str(error)
        if any(word in message for word in INTERNAL):
            raise Broken(f"reports a fault: {message[:300]}") from error
        if not message:
            raise Broken(f"raises {type(error).__name__} without a message") from error
        return error


def failed(result):
    return isinstance(result, BaseException)


def mapped(change, x):
    """An argument with all its tensors changed."""
    if isinstance(x, mt.Tensor):
        return change(x)
    if isinstance(x, list) and any(isinstance(v, mt.Tensor) for v in x):
        return [mapped(change, v) for v in x]
    return x


def copies(inputs):
    return [mapped(lambda x: x.detach().clone(), x) for x in inputs]


def differentiable(x):
    return x.dtype.name in tensors.FLOATS + tensors.COMPLEX and x.device == "cpu"


def leaves(inputs):
    """The inputs as leaves that require a gradient where they can, in their layouts."""
    return [mapped(lambda x: x.detach().requires_grad_() if differentiable(x) else x, x) for x in inputs]


def flat(inputs):
    return [v for x in inputs for v in (x if isinstance(x, list) else [x]) if isinstance(v, mt.Tensor)]


def small(results):
    # NumPy has no empty arrays of huge sizes.
    return all(x.numel() <= MOST and x.device == "cpu" and all(n < 1 << 40 for n in x.shape) for x in results)


def tolerance(x):
    return {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-3, "complex64": 1e-3}.get(x.dtype.name, 1e-8)


def same(what, call, first, second, exact, terms=0.0):
    if len(first) != len(second):
        raise Broken(f"{what}: {len(first)} and {len(second)} results")
    for x, y in zip(first, second, strict=True):
        if x is None or y is None:
            if x is not y:
                raise Broken(f"{what}: {x} and {y}")
            continue
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise Broken(f"{what}: {tensors.describe(x)} and {tensors.describe(y)}")
        if x.numel() > MOST or tensors.digest(x) == tensors.digest(y):
            continue
        if exact or not tensors.close(x, y, tolerance(x), terms):
            raise Broken(f"{what}: {tensors.array(x).tolist()!r:.300} and {tensors.array(y).tolist()!r:.300}")


def copied(call, results, kept):
    """Copies of the inputs have the same result as the views that they are copies of."""
    if call.name in calls.RANDOM:
        return
    again = attempt(call, kept)
    if failed(again):
        raise Broken(f"contiguous copies raise {again!r:.300}")
    same("views and copies", call, results, again, exact=not calls.SUMS.search(call.name))


def inferred(call, results, kept):
    """Tensors without values have results of the same shapes and dtypes, unless the op reads values."""
    metas = [mapped(lambda x: x.to("meta"), x) for x in kept]
    again = attempt(call, metas)
    if failed(again):
        if isinstance(again, RuntimeError) and ("meta" in str(again) or "values" in str(again)):
            return
        raise Broken(f"tensors without values raise {again!r:.300}")
    for x, y in zip(results, again, strict=True):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            raise Broken(f"with and without values: {tensors.describe(x)} and {tensors.describe(y)}")


def gradients(call, inputs, orders=2):
    """The gradients of the sum of the squared results, or None if there are none, or an exception."""
    leaf = leaves(inputs)
    results = attempt(call, leaf)
    if failed(results):
        return results
    wrt = [x for x in flat(leaf) if x.requires_grad]
    found = []
    outputs = [r for r in results if r.requires_grad and r.numel()]
    for _ in range(orders):
        if not wrt or not outputs or not small(outputs):
            break
        squares = attempt(lambda made=outputs: [square(r) for r in made])
        if failed(squares):
            return squares
        total = sum(squares[1:], squares[0].astype("float64"))
        step = attempt(lambda total=total: mt.grad([total], wrt, create_graph=True, allow_unused=True))
        if failed(step):
            return step
        found += step
        outputs = [g for g in step if g is not None and g.requires_grad and g.numel()]
    for g, x in zip(found, [*wrt, *wrt], strict=False):
        if g is not None and (g.shape, g.dtype) != (x.shape, x.dtype):
            raise Broken(f"the gradient of {tensors.describe(x)} is {tensors.describe(g)}")
    return found


def square(x):
    return (mt.real(x * mt.conj(x)) if x.dtype.name in tensors.COMPLEX else x * x).astype("float64").sum()


def differentiated(call, kept):
    """Gradients of two orders exist or raise, and those of views and of copies agree."""
    first = gradients(call, call.inputs)
    if failed(first) or call.name in calls.RANDOM:
        return
    second = gradients(call, kept)
    if failed(second):
        raise Broken(f"the gradient raises for copies alone: {second!r:.300}")
    same("gradients of views and of copies", call, first, second, exact=False)


def in_place(call, kept):
    """The op beside an op in place has the result that the latter leaves in its first input."""
    beside = call.name[:-1]
    if not call.name.endswith("_") or beside not in calls.OPS:
        return
    again, target = attempt(calls.Call(beside, kept, call.attrs)), call.inputs[0]
    if failed(again) or not isinstance(target, mt.Tensor):
        return
    if (again[0].dtype, again[0].shape) == (target.dtype, target.shape):
        same("in place and beside", call, [target], again, exact=True)


def check(call):
    """Makes the call, and whatever tells something about it. Returns a digest of its results."""
    kept = attempt(copies, call.inputs)
    results = attempt(call)
    if failed(results):
        return type(results).__name__
    if failed(kept) or not small(results) or any(x.device == "meta" for x in flat(call.inputs)):
        return "large"
    digests = [tensors.digest(x) for x in results]
    copied(call, results, [mapped(lambda x: x.clone(), x) for x in kept])
    inferred(call, results, kept)
    in_place(call, kept)
    if not any(i["mutated"] for i in calls.OPS[call.name]["inputs"]):
        if digests != [tensors.digest(x) for x in attempt(call)] and call.name not in calls.RANDOM:
            raise Broken("a second call returns something else")
        differentiated(call, kept)
    return " ".join(digests)
