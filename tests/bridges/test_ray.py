"""Ops in the processes of Ray, and on Dask arrays that Ray computes."""

import numpy as np
import pytest

ray = pytest.importorskip("ray")
da = pytest.importorskip("dask.array")
pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

import minitensor as mt  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("cluster")
def test_functions_and_ufuncs_run_in_other_processes():
    run = ray.remote(lambda function, x: function(x))
    for function in (mt.ops.layer_norm, mt.as_ufunc("swish")):
        x = np.arange(6.0).reshape(2, 3)
        np.testing.assert_array_equal(ray.get(run.remote(function, x)), function(x))


@pytest.mark.usefixtures("cluster")
def test_ray_computes_the_blocks_of_dask_arrays(rng):
    from ray.util.dask import ray_dask_get

    a = rng.normal(size=(20, 8))
    made = mt.map_blocks("layer_norm", da.from_array(a, chunks=(5, 8))).compute(scheduler=ray_dask_get)
    np.testing.assert_allclose(made, mt.ops.layer_norm(a))
