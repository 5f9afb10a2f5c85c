"""Every built-in op gives the same values and gradients on `cuda` as on the CPU."""

import numpy as np
import pytest
from reference_table import CASES
from test_reference import LAYOUTS, arrays, as_list, dtypes

import minitensor as mt

# Relative differences of results that are added in another order, and differences relative to the largest result.
SUMMING = 1e-4, 1e-6
SUMMING_HALVES = 4e-3, 1e-3
# Ops that the devices do not compute, because neither they nor an op that they call has a kernel there.
POOLS = {"avg_pool", "max_pool", "adaptive_avg_pool"}
WINDOWS = {"mean", "max", "spread", "fold", "unfold"}
NO_KERNEL = (
    {f"convolution::{of}" for of in ("forward", "input", "weight")}
    | {
        f"{name}{d}d"
        for name in ("conv", "conv_transpose", "avg_pool", "max_pool", "adaptive_avg_pool")
        for d in (1, 2, 3)
    }
    | {f"window::{name}" for name in WINDOWS}
    | {"fold", "unfold", "digamma", "row::nonzero", "row::prod_of_others"}
)
# Their gradients need such an op.
NO_GRADIENT = {"lgamma", "prod"}


def same(a, b):
    """Whether all elements have the same bits; all NaN are alike."""
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def check(result, wanted, message):
    """Checks a result of the device."""
    assert result.device == "cuda", message
    result, wanted = result.cpu(), wanted.cpu()
    message = f"{message} {result.dtype}"
    assert result.shape == wanted.shape and result.dtype == wanted.dtype, message
    # NumPy has no bfloat16.
    result, wanted = (t.astype("float32") if t.dtype == "bfloat16" else t for t in (result, wanted))
    result, wanted = result.numpy(), wanted.numpy()
    if not same(result, wanted):
        is_half = result.dtype.itemsize == 2 or "bfloat16" in message
        relative, least = SUMMING_HALVES if is_half else SUMMING
        largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1))
        np.testing.assert_allclose(result, wanted, relative, least * largest, err_msg=message)


def tensors(case, dtype, layout, device):
    return [LAYOUTS[layout](lambda a: mt.Tensor(a).to(device), a) for a in arrays(case, 1, dtype)]


def is_complex(case):
    return any(domain == "complex" for domain, _ in case.inputs)


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "stepped"])
@pytest.mark.parametrize("case", [case for case in CASES if case.name != "device::copy"], ids=str)
def test_values(case, layout):
    for dtype in dtypes(case):
        expected = as_list(case.op()(*tensors(case, dtype, layout, "cpu"), **case.attrs))
        given = tensors(case, dtype, layout, "cuda")
        if not given:
            continue
        if case.name in NO_KERNEL or is_complex(case):
            try:
                results = as_list(case.op()(*given, **case.attrs))
            except NotImplementedError as error:
                assert "has no kernel for" in str(error) and "device 'cuda'" in str(error)
                continue
        else:
            results = as_list(case.op()(*given, **case.attrs))
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected, strict=True):
            check(result, wanted, f"{case} {dtype}")


COMPUTED = [case for case in CASES if case.name not in NO_KERNEL | {"device::copy"} and not is_complex(case)]


@pytest.mark.parametrize("case", COMPUTED, ids=str)
def test_gradients(case):
    if not any(domain in {"real", "positive", "unit", "above_one", "nonzero"} for domain, _ in case.inputs):
        return
    found = {}
    for device in ("cpu", "cuda"):
        given = [t.astype("float32") if t.dtype == "float64" else t for t in tensors(case, None, "contiguous", device)]
        leaves = [t.requires_grad_() for t in given if t.dtype == "float32" and not case.name.endswith("_")]
        try:
            out = as_list(case.op()(*given, **case.attrs))[0]
        except NotImplementedError:
            assert device == "cpu"
            return
        if not leaves or not out.requires_grad:
            return
        weights = mt.Tensor(np.linspace(0.5, 1.5, out.numel(), dtype="f4").reshape(out.shape)).to(device)
        try:
            (out * weights.astype(out.dtype)).sum().backward()
        except (NotImplementedError, RuntimeError):
            # Or there is no gradient on the CPU, either.
            assert device == "cpu" or case.name in NO_GRADIENT
            return
        found[device] = [leaf.grad for leaf in leaves]
    for result, wanted in zip(found["cuda"], found["cpu"], strict=True):
        assert (result is None) == (wanted is None)
        if result is not None:
            check(result, wanted, str(case))


def test_the_list_of_ops_without_a_kernel_is_complete_and_not_too_long():
    refused = set()
    for case in CASES:
        if case.name in NO_KERNEL:
            try:
                case.op()(*tensors(case, None, "contiguous", "cuda"), **case.attrs)
            except NotImplementedError:
                refused.add(case.name)
    assert refused == NO_KERNEL
