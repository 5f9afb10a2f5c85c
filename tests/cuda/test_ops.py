"""Every built-in op gives the same values and gradients on `cuda` as on the CPU."""

import numpy as np
import pytest
from reference_table import CASES
from test_reference import LAYOUTS, arrays, as_list, dtypes

import minitensor as mt

# Results that differ in their last digits: these add in another order.
SUMMING = 1e-4, 1e-6


def on(device, tensors):
    return [t.to(device) for t in tensors]


def same(a, b):
    """Whether all elements have the same bits; all NaN are alike."""
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "stepped"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case, layout):
    for dtype in dtypes(case):
        tensors = [LAYOUTS[layout](mt.Tensor, a) for a in arrays(case, 1, dtype)]
        expected = as_list(case.op()(*tensors, **case.attrs))
        moved = [LAYOUTS[layout](lambda a: mt.Tensor(a).to("cuda"), a) for a in arrays(case, 1, dtype)]
        results = as_list(case.op()(*moved, **case.attrs))
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected, strict=True):
            assert result.device == "cuda" or not tensors
            result, wanted = result.cpu().numpy(), wanted.numpy()
            assert result.shape == wanted.shape and result.dtype == wanted.dtype
            if not same(result, wanted):
                np.testing.assert_allclose(result, wanted, *SUMMING, err_msg=f"{case} {dtype}")
