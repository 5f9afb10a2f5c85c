"""What the tests share."""

import gc

import numpy as np
import pytest
from minitensor.plugins import discovery

import minitensor as mt
from minitensor import plugins


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


@pytest.fixture
def no_plugins_stay(monkeypatch):
    """Installed plugins are not discovered, and what a test loads is unloaded after it."""
    monkeypatch.setattr(discovery, "_begun", True)
    monkeypatch.setattr(discovery, "_tried", set())
    yield
    for info in plugins.list_plugins():
        plugins.unload_plugin(info.name)
