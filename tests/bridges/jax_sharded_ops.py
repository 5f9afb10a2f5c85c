"""The sharding check of opcheck for all ops. `test_jax_sharding.py` runs it in a process with several devices."""

import jax
from minitensor._minitensor import _op_names, _samples
from minitensor.jax import check

assert len(jax.devices()) == 8
# The other checks need no devices. Random ops differ from call to call.
check._CHECKS = {"sharding": check._CHECKS["sharding"]}
findings = []
for name in _op_names():
    if name not in {"dropout", "rand_like", "random::key"}:
        findings += [(name, *finding) for finding in check.check(name, _samples(name)[-1:])]
print(findings or "passed")
