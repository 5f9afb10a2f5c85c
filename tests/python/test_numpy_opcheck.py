"""Every op on NumPy arrays, by `opcheck`."""

import numpy as np
import pytest
from minitensor._minitensor import _op_names
from minitensor.arrays import check

import minitensor as mt


@pytest.mark.parametrize("name", _op_names())
def test_every_op_has_the_same_results_on_arrays(name):
    assert mt.testing.opcheck(name, backends=("numpy",)).findings == []


def test_faults_are_found(monkeypatch):
    real = check._array_function
    monkeypatch.setattr(check, "_ufunc", lambda name: None)
    x = mt.Tensor([1.0, 2.0])

    def found(change):
        def faulty(name):
            function = real(name)
            return lambda *args, **attrs: (
                change(function(*args, **attrs)) if isinstance(args[0], np.ndarray) else function(*args, **attrs)
            )

        monkeypatch.setattr(check, "_array_function", faulty)
        return {kind for kind, _ in check.check("exp", [([x], {})])}

    def fail(_):
        raise KeyError("x")

    assert found(lambda r: r) == set()
    for change in (lambda r: r + 1, lambda r: r.astype("f8"), lambda r: r[:1], list, lambda r: (r, r)):
        assert found(change) == {"results on arrays"}
    assert found(fail) == {"errors on arrays"}
    with pytest.raises(ValueError, match="unknown backend 'numpi'; the backends are 'minitensor', "):
        mt.testing.opcheck("exp", backends=("numpi",))
