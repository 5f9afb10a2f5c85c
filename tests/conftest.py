"""Fixtures of all tests."""

import gc
import os
import tempfile

import numpy as np
import pytest
from minitensor.plugins import discovery

import minitensor as mt
from minitensor import plugins

# Measured values of tuned attributes.
CACHE = tempfile.TemporaryDirectory(prefix="minitensor-")
os.environ["MINITENSOR_CACHE_DIR"] = CACHE.name


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def registered():
    """Unregisters the ops that a test registers."""
    before = set(mt.list_custom_ops_py())
    yield
    for name in set(mt.list_custom_ops_py()) - before:
        mt.unregister_custom_op_py(name)
    gc.collect()


@pytest.fixture
def no_plugins_stay(monkeypatch):
    """Disables the discovery of installed plugins, and unloads the plugins that a test loads."""
    monkeypatch.setattr(discovery, "_has_started", True)
    monkeypatch.setattr(discovery, "_tried", set())
    yield
    for info in plugins.list_plugins():
        plugins.unload_plugin(info.name)
