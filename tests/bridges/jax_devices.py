"""Sharded arrays on eight devices of the CPU. `test_jax_sharding.py` runs this program in a process of its own."""

import jax
import jax.numpy as jnp
import minitensor.jax as mj
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

X = jnp.sin(jnp.arange(64.0 * 16)).reshape(64, 16)
W = jnp.linspace(1, 2, 16)
B = W * 0.1
COLLECTIVES = ("all-gather", "all-reduce", "collective-permute", "all-to-all")


def layer_norm(x, weight, bias):
    centered = x - x.mean(-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def loss(f):
    return lambda *args: jnp.sin(f(*args)).sum()


def second_order(f):
    return lambda x, w, b: jax.grad(lambda w: (jax.grad(loss(f), 1)(x, w, b) ** 2).sum())(w)


def check(function, reference, args, collectives, spec=None):
    """Compiles a function of sharded arrays, and checks its results and its communication."""
    compiled = jax.jit(function).lower(*args).compile()
    text = compiled.as_text()
    assert [c for c in COLLECTIVES if c in text] == collectives, text
    found = compiled(*args)
    plain = [jnp.asarray(np.asarray(a)) for a in args]
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(reference(*plain)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    if spec is not None:
        assert found.sharding.spec == PartitionSpec(*spec), found.sharding


def check_mesh(axis_type):
    mesh = jax.make_mesh((8,), ("d",), axis_types=(axis_type,))

    def put(x, *spec):
        return jax.device_put(x, NamedSharding(mesh, PartitionSpec(*spec)))

    rows, weights = put(X, "d", None), (put(W, None), put(B, None))
    # A batch needs no communication.
    check(mj.swish, jax.nn.silu, [rows], [], ("d", None))
    check(mj.layer_norm, layer_norm, [rows, *weights], [], ("d", None))
    check(lambda x: mj.softmax(x, axis=0), lambda x: jax.nn.softmax(x, 0), [put(X.T, None, "d")], [], (None, "d"))
    logsumexp = [lambda x: mj.logsumexp(x, axis=[1], keepdims=True), lambda x: jax.nn.logsumexp(x, 1, keepdims=True)]
    check(*logsumexp, [rows], [], ("d", None))
    check(mj.add, jnp.add, [rows, weights[0]], [], ("d", None))
    # The gradient of a weight is a sum over the devices.
    every = (0, 1, 2)
    check(jax.grad(loss(mj.layer_norm), every), jax.grad(loss(layer_norm), every), [rows, *weights], ["all-reduce"])
    check(jax.grad(loss(mj.add), 1), jax.grad(loss(jnp.add), 1), [rows, weights[0]], ["all-reduce"])
    check(second_order(mj.layer_norm), second_order(layer_norm), [rows, *weights], ["all-reduce"])
    # A core dimension is gathered; so are the arguments of an op whose independent dimensions are not known.
    check(mj.layer_norm, layer_norm, [put(X, None, "d"), *weights], ["all-gather"])
    check(mj.cumsum, lambda x: jnp.cumsum(x.ravel()), [put(W[:8], "d")], ["all-gather"])
    # A batch that is not divisible.
    check(mj.swish, jax.nn.silu, [put(X[:60], None, None)], [])


def check_two_axes():
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    x = jax.device_put(X.reshape(4, 16, 16), NamedSharding(mesh, PartitionSpec("a", "b")))
    check(mj.layer_norm, layer_norm, [x, W, B], [])
    check(jax.grad(loss(mj.layer_norm), 1), jax.grad(loss(layer_norm), 1), [x, W, B], ["all-reduce"])
    check(jax.vmap(mj.layer_norm, (0, None, None)), layer_norm, [x, W, B], [])


def check_shard_map():
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    rows, all_of = PartitionSpec("d"), PartitionSpec()
    for is_checked in (True, False):

        def mapped(f, is_checked=is_checked):
            specs = {"in_specs": (rows, all_of, all_of), "out_specs": rows}
            return jax.shard_map(f, mesh=mesh, check_vma=is_checked, **specs)

        ours, theirs = mapped(mj.layer_norm), mapped(layer_norm)
        for f in (
            lambda g: g,
            jax.jit,
            lambda g: jax.grad(loss(g), (0, 1, 2)),
            lambda g: jax.jit(second_order(g)),
            lambda g: jax.jit(lambda *args: jax.jvp(g, args, args)),
        ):
            for a, b in zip(jax.tree.leaves(f(ours)(X, W, B)), jax.tree.leaves(f(theirs)(X, W, B)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def check_training():
    """Steps of data-parallel training, compared with one device."""
    mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    target = jnp.cos(X)

    def train(f, x):
        def error(params):
            return ((f(x @ params[0], *params[1:]) - target) ** 2).mean()

        def step(params, _):
            value, grads = jax.value_and_grad(error)(params)
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

        return jax.jit(lambda: jax.lax.scan(step, (jnp.eye(16), W, B), None, length=10)[1])()

    sharded = jax.device_put(X, NamedSharding(mesh, PartitionSpec("d")))
    np.testing.assert_allclose(train(mj.layer_norm, sharded), train(layer_norm, X), rtol=1e-4)


def check_pmap():
    np.testing.assert_allclose(jax.pmap(mj.swish)(X.reshape(8, 8, 16)).reshape(64, 16), jax.nn.silu(X), rtol=1e-5)


if __name__ == "__main__":
    assert jax.device_count() == 8
    check_mesh(AxisType.Auto)
    check_mesh(AxisType.Explicit)
    check_two_axes()
    check_shard_map()
    check_training()
    check_pmap()
    print("passed")
