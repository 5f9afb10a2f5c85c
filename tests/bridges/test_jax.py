"""minitensor.jax: transformations, arguments, errors, and the life of ops. Every op is compared in test_jax_ops.py."""

# ruff: noqa: E402

import doctest
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
import minitensor.jax as mj
import numpy as np
from minitensor.jax.call import Call

import minitensor as mt

X = jnp.linspace(-3.0, 3.0, 7)
#: The errors of compiled functions. Second calls take a shorter path in JAX, which raises ValueError.
FAILED = (jax.errors.JaxRuntimeError, ValueError)


def swish(x):
    return x * jax.nn.sigmoid(x)


def layer_norm(x, weight, bias):
    centered = x - x.mean(-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def assert_close(found, expected, tolerance=1e-4):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def total(f):
    return lambda *args: jnp.sin(f(*args)).sum()


TRANSFORMATIONS = {
    "eager": lambda f: f,
    "grad": lambda f: jax.grad(total(f)),
    "grad of grad": lambda f: jax.grad(total(jax.grad(total(f)))),
    "third order": lambda f: jax.grad(total(jax.grad(total(jax.grad(total(f)))))),
    "jacrev": jax.jacrev,
    "jacfwd": jax.jacfwd,
    "hessian": lambda f: jax.hessian(total(f)),
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f)),
    "reverse over reverse": lambda f: jax.jacrev(jax.jacrev(f)),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (jnp.cos(x),)),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](jnp.cos(x)),
    "checkpoint": lambda f: jax.grad(total(jax.checkpoint(f))),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x + 1])),
    "vmap of grad": lambda f: lambda x: jax.vmap(jax.grad(total(f)))(jnp.stack([x, x + 1])),
    "vmap of vmap": lambda f: lambda x: jax.vmap(jax.vmap(f))(jnp.stack([x, x + 1])),
    "grad of vmap": lambda f: jax.grad(lambda x: total(jax.vmap(f))(jnp.stack([x, x + 1]))),
    "vmap of jvp": lambda f: lambda x: jax.vmap(lambda t: jax.jvp(f, (x,), (t,))[1])(jnp.eye(7)),
    "scan": lambda f: lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
    "grad of scan": lambda f: jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0].sum()),
    "cond": lambda f: lambda x: jax.lax.cond(x[0] < 0, f, lambda y: y, x),
    "while": lambda f: lambda x: jax.lax.while_loop(lambda c: c.sum() > 0, f, x + 4),
    "map": lambda f: lambda x: jax.lax.map(f, x),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations(name):
    transformed = TRANSFORMATIONS[name]
    expected = transformed(swish)(X)
    assert_close(transformed(mj.swish)(X), expected)
    assert_close(jax.jit(transformed(mj.swish))(X), expected)


@pytest.mark.parametrize("axes", [(0, None, None), (1, None, None), (0, 0, None), (2, None, 0), (None, 0, 0)])
def test_batches_of_some_arguments(axes):
    x = jax.random.normal(jax.random.key(0), (4, 5, 6))
    w = b = jnp.linspace(0.5, 2, 6)
    if axes[0] == 2:
        x = jnp.moveaxis(x, 0, -1)
    args = [x, *(jnp.stack([a, a + 1, a, a]) if axis == 0 else a for a, axis in zip((w, b), axes[1:], strict=True))]
    if axes[0] == 1:
        args[0] = jnp.moveaxis(x, 0, 1)
    for f in (lambda g: g, lambda g: jax.grad(total(g), (0, 1, 2)), lambda g: jax.jacfwd(g, 1)):
        assert_close(jax.vmap(f(mj.layer_norm), axes)(*args), jax.vmap(f(layer_norm), axes)(*args))
    together = [lambda *args, g=g: total(jax.vmap(g, axes))(*args) for g in (mj.layer_norm, layer_norm)]
    assert_close(*[jax.grad(g, (0, 1, 2))(*args) for g in together])


def test_a_batch_of_an_op_with_batch_dimensions_is_one_call():
    x = jnp.ones((3, 4, 5))
    jaxpr = jax.make_jaxpr(jax.vmap(lambda x: mj.softmax(x, axis=0)))(x)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["minitensor"]
    assert_close(jax.vmap(lambda x: mj.softmax(x, axis=0))(x + X[:5]), jax.nn.softmax(x + X[:5], axis=1))
    weights = jnp.ones(5)
    jaxpr = jax.make_jaxpr(jax.vmap(jax.grad(lambda x, w: mj.layer_norm(x, w).sum()), (0, None)))(x, weights)
    assert "scan" not in str(jaxpr)


def test_complex_derivatives_follow_the_convention_of_jax():
    z = jnp.array([1 + 2j, 3 - 1j])
    for ours, theirs in ((mj.exp, jnp.exp), (mj.sin, jnp.sin)):
        for f in (
            lambda g: jax.grad(lambda z: jnp.abs(g(z)).sum()),
            lambda g: jax.grad(lambda z: g(z).sum(), holomorphic=True),
            lambda g: lambda z: jax.jvp(g, (z,), (z * 1j,)),
            lambda g: jax.grad(lambda z: jnp.abs(jax.grad(lambda z: g(z).real.sum())(z)).sum()),
        ):
            assert_close(f(ours)(z), f(theirs)(z), 1e-3)


# Arguments.


def test_numbers_adopt_the_dtype_of_the_arrays():
    for dtype in ("float16", "bfloat16", "float32", "int8"):
        x = jnp.ones(3, dtype)
        assert mj.add(x, 1).dtype == mj.add(1, x).dtype == x.dtype
        assert jax.jit(lambda x, n: mj.add(x, n))(x, 1).dtype == x.dtype
    assert mj.add(jnp.ones(3, "int8"), 1.5).dtype == "float32"
    assert mj.add(X, 1j).dtype == "complex64"
    assert mj.add(jnp.asarray(2.0), jnp.ones(2, "float16")).dtype == "float16"
    assert_close(jax.grad(lambda n: mj.mul(X + 4, n).sum())(2.0), jnp.float32(28.0))
    with pytest.raises(OverflowError):
        mj.add(jnp.ones(3, "int8"), 1000)


def test_optional_inputs_lists_and_several_results():
    x = jnp.arange(12.0).reshape(3, 4)
    assert_close(mj.layer_norm(x), layer_norm(x, 1, 0))
    assert_close(jax.grad(lambda b: mj.layer_norm(x, bias=b).sum())(jnp.ones(4)), jnp.full(4, 3.0))
    assert_close(mj.concat([x, x], axis=1), jnp.concatenate([x, x], 1))
    grads = jax.grad(lambda a, b: (mj.concat([a, b], axis=0) * 2).sum(), (0, 1))(x, x)
    assert_close(grads, (jnp.full((3, 4), 2.0),) * 2)
    result = jax.jit(lambda x: mj.topk(x, k=2))(x)
    assert type(result) is type(mt.ops.topk(mt.Tensor([[1.0, 2.0]]), k=2))
    assert_close(result.values, x[:, :1:-1])
    assert_close(jax.grad(lambda x: mj.topk(x, k=2).values.sum())(x), jnp.zeros((3, 4)).at[:, 2:].set(1))


def test_integers_have_no_gradient():
    index = jnp.array([0, 2])
    value, gradient = jax.value_and_grad(lambda x, i: mj.take(x, i, axis=0).sum())(X, index)
    assert_close(gradient, jnp.zeros(7).at[index].set(1))
    _, back = jax.vjp(lambda x, i: mj.take(x, i, axis=0), X, index)
    assert back(jnp.ones(2))[1].dtype == jax.dtypes.float0
    assert_close(jax.grad(lambda x: (mj.argmax(x) * x).sum())(X), jnp.full(7, 6.0))


def test_without_64_bits_results_and_indices_have_32():
    assert not jax.config.jax_enable_x64
    assert mj.argmax(X).dtype == "int32"
    assert mj.random.uniform(jnp.array([1, 2], "uint32"), shape=(3,)).dtype == "float32"
    assert mj.random.uniform(jnp.array([1, 2], "uint32"), shape=(3,), dtype="float64").dtype == "float32"
    with jax.enable_x64(True):
        assert mj.argmax(X).dtype == "int64"
        key = jnp.array([1, 2], "uint64")
        assert mj.random.uniform(key, shape=(3,), dtype=jnp.float64).dtype == "float64"
        expected = mt.ops.random.uniform(mt.Tensor([1, 2], dtype="uint64"), shape=(3,), dtype="float64")
        assert (np.asarray(mj.random.uniform(key, shape=(3,), dtype="float64")) == expected.numpy()).all()


def test_numpy_arrays_and_the_functions_of_minitensor():
    assert isinstance(mj.swish(np.ones(2, "float32")), jax.Array)
    assert_close(mt.ops.swish(X), mj.swish(X))
    assert_close(jax.jit(jax.grad(lambda x: mt.ops.swish(x).sum()))(X), jax.grad(lambda x: swish(x).sum())(X))
    assert_close(mj.call("clamp", {"x": X, "lo": -1.0}), jnp.clip(X, -1.0))


def test_shapes_that_depend_on_values_work_outside_of_transformations():
    assert mj.nonzero(X > 0).tolist() == [[4], [5], [6]]
    with pytest.raises(jax.errors.JAXTypeError, match="op 'nonzero': the shapes of its results are not known"):
        jax.jit(mj.nonzero)(X)
    with_size = jax.jit(lambda x: (mj.nonzero(x > 0, size=4, fill_value=-1), mj.unique_values(x > 0, size=2)))
    assert [found.tolist() for found in with_size(X)] == [[[4], [5], [6], [-1]], [False, True]]


def test_empty_arrays_and_scalars():
    assert mj.swish(jnp.ones((0, 3))).shape == (0, 3)
    assert jax.vmap(mj.swish)(jnp.ones((0, 3))).shape == (0, 3)
    assert jax.grad(lambda x: mj.swish(x).sum())(jnp.ones((0, 3))).shape == (0, 3)
    assert jax.grad(mj.swish)(1.0).shape == ()


# Errors.


@pytest.mark.parametrize("axis", [2, -3, 7])
@pytest.mark.parametrize("op", ["softmax", "sum", "cumsum"])
def test_an_example_does_not_use_the_batch_as_an_axis(op, axis):
    def f(x):
        return getattr(mj, op)(x, axis=axis)

    x = jnp.ones((2, 3, 4))
    for g in (jax.vmap(f), jax.jit(jax.vmap(f)), jax.vmap(jax.grad(lambda x: f(x).sum()))):
        with pytest.raises(IndexError, match=f"axis {axis} is out of range for a tensor of 2 dimensions"):
            g(x)
    with pytest.raises(ValueError, match="does not match"):
        jax.vmap(lambda x: mj.layer_norm(x, jnp.ones(3)))(jnp.ones(3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mj.swish(X, bogus=1), TypeError, "op 'swish' has no argument 'bogus'"),
        (lambda: mj.swish(), TypeError, "op 'swish': missing argument 'x'"),
        (lambda: mj.swish("a"), TypeError, "input 'x' must be an array of JAX or NumPy, or a number, got str"),
        (lambda: mj.swish(mt.Tensor([1.0])), TypeError, "got minitensor.Tensor"),
        (lambda: mj.concat("ab"), TypeError, "'tensors' must be a list or tuple of arrays"),
        (lambda: mj.clamp(X, lo="a"), TypeError, "op 'clamp': attribute 'lo' takes float, got 'a'"),
        (lambda: jax.jit(lambda v: mj.clamp(X, lo=v))(1.0), TypeError, "static_argnames='lo'"),
        (lambda: mj.matmul(X, jnp.ones((2, 3))), ValueError, "op 'matmul' takes"),
        (lambda: jax.jit(mj.matmul)(X, jnp.ones((2, 3))), ValueError, "op 'matmul' takes"),
        (lambda: mj.add_(X, X), TypeError, "changes 'x' in place, but arrays of JAX cannot change; use 'add'"),
        (lambda: mj.dropout(X), ValueError, "use an op that takes a key, such as random.uniform or random.dropout"),
        (lambda: jax.grad(lambda x: mj.dropout(x).sum())(X), ValueError, "takes a key"),
        (lambda: mj.swish(X.astype("float8_e4m3fn")), ValueError, "unknown dtype 'float8_e4m3fn'"),
        (lambda: mj.random.uniform(jax.random.key(0), shape=(1,)), TypeError, "jax.random.key_data"),
        (lambda: mj.gather(X, jnp.array([9])), jax.errors.JaxRuntimeError, "OUT_OF_RANGE: op 'gather': index 9"),
        (lambda: jax.jit(mj.gather)(X, jnp.array([9])), jax.errors.JaxRuntimeError, "op 'gather': index 9"),
        (lambda: mj.no_such_op, AttributeError, "there is no op 'no_such_op'"),
        (lambda: mj.random.no_such_op, AttributeError, "no op 'no_such_op'"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        jax.block_until_ready(call())


def test_an_op_without_gradient_raises_the_reason():
    mt.custom_op(name="jax_none::twice", backward="none")(lambda x: x + x)
    try:
        with pytest.raises(RuntimeError, match="op 'jax_none::twice' has no gradient: .*backward='none'"):
            jax.grad(lambda x: mj.jax_none.twice(x).sum())(X)
    finally:
        mt.unregister_custom_op_py("jax_none::twice")


# Ops written in Python, and their lives.


@pytest.fixture
def cube():
    @mt.custom_op
    def cube(x: mt.Tensor) -> mt.Tensor:
        if float(x.sum().item() if x.device != "meta" else 0) < -1e6:
            raise ValueError("the sum is too small")
        return x * x * x

    yield cube
    if mt.is_custom_op_registered_py("cube"):
        mt.unregister_custom_op_py("cube")
    gc.collect()


@pytest.mark.usefixtures("cube")
def test_ops_written_in_python():
    assert_close(mj.cube(X), X**3)
    assert_close(jax.jit(mj.cube)(X), X**3)
    assert_close(jax.jit(jax.grad(lambda x: mj.cube(x).sum()))(X), 3 * X**2)
    with pytest.raises(FAILED, match="ValueError: the sum is too small"):
        jax.block_until_ready(jax.jit(mj.cube)(X - 1e7))
    assert "cube" in dir(mj)


@pytest.mark.usefixtures("cube")
def test_python_ops_on_many_threads():
    compiled, results = jax.jit(lambda x: mj.cube(mj.swish(x))), []

    def work():
        for _ in range(20):
            results.append(np.asarray(compiled(X)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 80
    for result in results:
        np.testing.assert_allclose(result, swish(X) ** 3, rtol=1e-5)


def test_arguments_that_a_python_op_keeps_stay_valid():
    kept = []

    @mt.custom_op
    def keeping(x: mt.Tensor) -> mt.Tensor:
        kept.append(x)
        return x + 1

    try:
        assert_close(jax.jit(lambda x: mj.keeping(x * 2))(X), X * 2 + 1)
        gc.collect()
        for _ in range(10):
            jax.jit(lambda x: jnp.sin(x) * 3)(jnp.ones(7)).block_until_ready()
        np.testing.assert_allclose([t for t in kept if t.device == "cpu"][-1].numpy(), X * 2)
    finally:
        mt.unregister_custom_op_py("keeping")


def test_an_op_that_is_unregistered_while_a_compiled_function_uses_it():
    def define(factor):
        @mt.custom_op(name="passing")
        def passing(x: mt.Tensor) -> mt.Tensor:
            return x * factor

    define(2.0)
    function = mj.passing
    compiled = jax.jit(function)
    assert_close(compiled(X), X * 2)
    mt.unregister_custom_op_py("passing")
    with pytest.raises(FAILED, match="no op 'passing'"):
        jax.block_until_ready(compiled(X))
    with pytest.raises(RuntimeError, match="op 'passing' was unregistered"):
        function(X)
    with pytest.raises(AttributeError, match="passing"):
        _ = mj.passing
    # A new op of the name is used by functions that are compiled already, if it fits.
    define(3.0)
    assert_close(compiled(X), X * 3)
    assert_close(mj.passing(X), X * 3)
    mt.unregister_custom_op_py("passing")

    @mt.custom_op(name="passing")
    def other(x: mt.Tensor) -> mt.Tensor:
        return x.sum()

    with pytest.raises(FAILED, match="op 'passing': the compiled call does not fit the op"):
        jax.block_until_ready(compiled(X))
    assert_close(mj.passing(X), X.sum())
    mt.unregister_custom_op_py("passing")


def test_a_result_of_the_wrong_shape_is_an_error():
    @mt.custom_op
    def deceiving(x: mt.Tensor) -> mt.Tensor:
        return x if x.device == "meta" else x[:1]

    try:
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"compiled for a result float32 \(7,\)"):
            jax.block_until_ready(mj.deceiving(X))
    finally:
        mt.unregister_custom_op_py("deceiving")


def test_functions_describe_themselves_and_pickle():
    assert mj.swish.__name__ == "swish" and "swish" in mj.swish.__doc__.lower()
    assert str(mj.clamp.__signature__) == "(x, lo=-inf, hi=inf)"
    assert pickle.loads(pickle.dumps(mj.swish)) is mj.swish
    assert "swish" in dir(mj) and "uniform" in dir(mj.random)


def test_encoded_calls_mean_the_same_in_every_process():
    code = """
        import jax, jax.numpy as jnp, minitensor.jax as mj
        print(jax.jit(lambda x: mj.clamp(mj.softmax(x, axis=-1), hi=0.1)).lower(jnp.ones((2, 3))).as_text())
    """
    texts = {run(code, PYTHONHASHSEED=str(seed)) for seed in range(2)}
    assert len(texts) == 1
    assert r"lo\22:\22-inf" in texts.pop().replace('\\"', r"\22")


def test_the_persistent_cache_of_jax_serves_another_process(tmp_path):
    code = f"""
        import jax
        jax.config.update("jax_compilation_cache_dir", {str(tmp_path)!r})
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        import jax.numpy as jnp, minitensor.jax as mj
        print(jax.jit(lambda x: mj.clamp(x, hi=0.5) + 1)(jnp.arange(3.0)).tolist())
    """
    assert run(code) == run(code) == "[1.0, 1.5, 1.5]\n"
    assert list(tmp_path.iterdir())


def test_the_examples_in_the_docs():
    assert doctest.testmod(mj).failed == 0


@pytest.mark.parametrize("end", ["float(y[0, 0])", "np.asarray(y)", "repr(y)", "None"])
def test_python_ops_do_not_block_the_interpreter(end):
    code = f"""
        import time
        import jax, jax.numpy as jnp, numpy as np
        import minitensor as mt, minitensor.jax as mj

        @mt.custom_op
        def slow(x: mt.Tensor) -> mt.Tensor:
            if x.device != "meta":
                time.sleep(0.2)
            return x + 1

        # The computation is large enough for JAX to run it on another thread.
        x = jnp.ones((1000, 1000))
        y = jax.jit(lambda x: mj.slow(x @ x) @ x)(x)
        {end}
        print("ended")
    """
    assert run(code) == "ended\n"


def test_ops_work_in_child_processes():
    code = """
        import multiprocessing, warnings
        import jax, jax.numpy as jnp, numpy as np
        import minitensor as mt, minitensor.jax as mj

        warnings.simplefilter("ignore")
        print(float(jax.jit(mj.swish)(jnp.ones(100_000))[0]) > 0.7)

        def child(queue):
            # JAX does not work in a fork of its process, but minitensor does.
            queue.put(mt.ops.swish(np.ones(100_000))[0] > 0.7)

        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        print(bool(queue.get(timeout=100)))
        process.join()
    """
    assert run(code) == "True\nTrue\n"


def test_without_jax_the_import_says_what_to_install():
    code = """
        import sys
        sys.modules["jax"] = None
        import minitensor
        try:
            import minitensor.jax
        except ImportError as error:
            print(error)
    """
    assert "pip install jax" in run(code)


def run(code, **environment):
    """The output of a program in another process."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_calls_know_the_roles_of_their_tensors():
    call = Call("", "11").gradient([True], [True, False])
    assert (call.present, call.wrt) == ("111", "10")
    second = call.gradient([True], [True, True, False])
    assert (second.present, second.wrt) == ("1111", "10,110")
    assert [tuple(role) for role in second.roles()] == [(False, 0), (True, 0), (False, 0), (False, 1)]
    assert [tuple(role) for role in second.result_roles(2)] == [(True, 0), (False, 0)]
    assert second.wanted() == [1, 2]
