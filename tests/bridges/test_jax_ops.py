# ruff: noqa: E402
"""Every registered op in JAX, compared with minitensor: eager, compiled, differentiated and batched."""

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
import numpy as np
from jax_samples import as_function, assert_same, is_usable, loss, to_jax
from minitensor._minitensor import _op_names
from minitensor.jax.abstract import UnknownShapeError
from minitensor.jax.namespace import find
from sample_calls import call_ours, flat, gradients_of_ours, mapped, samples

NAMES = [name for name in _op_names() if is_usable(name)]
#: Ops whose shapes depend on values, unless they have a size.
UNBOUNDED = {"nonzero", "unique_values", "unique_counts", "unique_inverse", "unique_all"}


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def accepted(name):
    """The samples that the op accepts, with their results."""
    found = [(sample, call_ours(name, sample)) for sample in samples(name)]
    return [(sample, results) for sample, results in found if not isinstance(results, Exception)]


def is_unbounded(name, sample):
    """Whether the shapes of the results depend on values."""
    return name in UNBOUNDED and sample[1].get("size") is None


def bounded(name):
    """The samples that the op accepts, with a size where shapes would depend on values."""
    found = [sample for sample, _ in accepted(name)]
    return [(s[0], s[1] | {"size": 4}) if is_unbounded(name, s) else s for s in found]


@pytest.mark.parametrize("name", NAMES)
def test_results_equal_those_of_minitensor(name):
    for sample, expected in accepted(name):
        function, arrays = as_function(name, sample)
        assert_same(function(arrays), expected)
        try:
            assert_same(jax.jit(function)(arrays), expected)
        except UnknownShapeError:
            assert is_unbounded(name, sample)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_those_of_minitensor(name):
    for sample, _ in accepted(name):
        expected = gradients_of_ours(name, sample)
        if expected is None:
            continue
        function, arrays = loss(name, sample)
        gradient = jax.grad(lambda arrays, f=function: f(arrays))
        found = [jnp.conj(g) for g in gradient(arrays)]
        assert_same(found, expected)
        if not is_unbounded(name, sample):
            assert_same(jax.jit(gradient)(arrays), [jnp.conj(g) for g in found])


@pytest.mark.parametrize("name", NAMES)
def test_directional_derivatives_agree_with_gradients(name):
    for sample, _ in accepted(name)[:2]:
        if gradients_of_ours(name, sample) is None:
            continue
        function, arrays = loss(name, sample)
        tangents = [jnp.ones_like(x) for x in arrays]
        _, forward = jax.jvp(function, (arrays,), (tangents,))
        gradients = jax.grad(function)(arrays)
        np.testing.assert_allclose(forward, sum(g.real.sum() for g in gradients), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_vmap_equals_a_loop(name):
    for sample in bounded(name)[:2]:
        function, arrays = as_function(name, sample)
        if not arrays:
            continue
        several = [jnp.stack([x, x[::-1] if x.ndim else x, x]) for x in arrays]
        try:
            loop = [function([x[i] for x in several]) for i in range(3)]
        except jax.errors.JaxRuntimeError:
            # Reversed arguments are outside of the domain.
            several = [jnp.stack([x, x, x]) for x in arrays]
            loop = [function([x[i] for x in several]) for i in range(3)]
        expected = [jnp.stack(parts) for parts in zip(*loop, strict=True)]
        assert_same(jax.vmap(function)(several), expected)
        # One argument is batched.
        for k in range(len(arrays)):
            axes = [0 if i == k else None for i in range(len(arrays))]
            given = [s if i == k else x for i, (s, x) in enumerate(zip(several, arrays, strict=True))]
            try:
                loop = [function([x[i] if a == 0 else x for x, a in zip(given, axes, strict=True)]) for i in range(3)]
            except jax.errors.JaxRuntimeError:
                continue
            expected = [jnp.stack(parts) for parts in zip(*loop, strict=True)]
            assert_same(jax.vmap(function, (axes,))(given), expected)


@pytest.mark.parametrize("name", NAMES)
def test_vmap_of_gradients_equals_a_loop(name):
    for sample in bounded(name)[:1]:
        if gradients_of_ours(name, sample) is None:
            continue
        function, arrays = loss(name, sample)
        gradient = jax.grad(function)
        several = [jnp.stack([x, x * 0.875]) for x in arrays]
        loop = [gradient([x[i] for x in several]) for i in range(2)]
        assert_same(jax.vmap(gradient)(several), [jnp.stack(parts) for parts in zip(*loop, strict=True)])
        # The other order: the gradient of a batch.
        total = jax.grad(lambda several, f=function: jax.vmap(f)(several).sum())
        assert_same(total(several), [jnp.stack(parts) for parts in zip(*loop, strict=True)])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dtypes(name, dtype):
    for inputs, attrs in samples(name)[:1]:
        cast = mapped(lambda t: t.detach().astype(dtype) if "float" in str(t.dtype) else t.detach().clone(), inputs)
        expected = call_ours(name, (cast, attrs))
        if isinstance(expected, Exception):
            continue
        arrays = mapped(
            lambda t: to_jax(t.astype("float32")).astype(dtype) if "float" in str(t.dtype) else to_jax(t), cast
        )
        found = flat(find(name)(*arrays, **attrs))
        assert [str(t.dtype) for t in found] == [str(t.dtype) for t in expected]
        for a, b in zip(found, expected, strict=True):
            b = b.detach().astype("float64").numpy() if "float" in str(b.dtype) else b.numpy()
            np.testing.assert_array_equal(np.asarray(a).astype(b.dtype), b)
