"""What the tests share."""

import gc

import numpy as np
import pytest

import minitensor as mt


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def registered():
    """Names of ops that a test registers, to be unregistered after it."""
    before = set(mt.list_custom_ops_py())
    yield
    for name in set(mt.list_custom_ops_py()) - before:
        mt.unregister_custom_op_py(name)
    gc.collect()
