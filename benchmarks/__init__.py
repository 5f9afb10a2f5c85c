"""minitensor's speed beside that of NumPy, PyTorch and JAX: `cargo xtask bench`.

`rows` is the table of what is timed (`training` its longer spellings), `frameworks` how each framework does it.
`worker` is a process that does it for one framework, `crew` these processes as the conductor sees them, `bench` the
conductor. A `sample` of each result shows that all computed the same. What a row came to is an `outcome`; `report`,
`page` and `picture` show it, for the `machine` it was had on.
"""
