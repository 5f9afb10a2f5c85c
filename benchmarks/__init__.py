"""Compares the speed of minitensor with NumPy, PyTorch and JAX: `cargo xtask bench`.

`rows` is the table of benchmarks, and `row` has its types. `training` has the functions of the training rows, and
`models` what they train. `frameworks` runs a row in each framework. `worker` is the process of one framework, `crew`
controls these processes, and `bench` is the main program. `sample` compares the results of the frameworks. An `outcome`
holds the times of a row; `report`, `page` and `picture` print them, together with the properties of the `machine`.
`memory` measures memory instead of time.
"""
