"""`mt.Device`, and the argument `device` of functions."""

import copy
import pickle

import pytest

import minitensor as mt


def test_a_device_is_equal_to_its_name():
    cpu, meta = mt.Device("cpu"), mt.Device("meta")
    assert cpu == "cpu" == cpu and cpu == mt.Device("cpu:0") and cpu == "cpu:0"
    assert cpu != meta and cpu != "meta" and cpu != "nonsense" and cpu != 0 and cpu is not None
    assert {cpu: 1}["cpu"] == 1 and hash(cpu) == hash("cpu")
    assert (cpu.type, cpu.index, str(cpu), repr(cpu), f"{meta}") == ("cpu", 0, "cpu", "Device('cpu')", "meta")


def test_devices_are_copied_and_pickled():
    for device in (mt.Device("cpu"), mt.Device("meta")):
        assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device


@pytest.mark.parametrize("device", ["meta", mt.Device("meta")])
def test_functions_take_a_device_or_its_name(device):
    made = [
        mt.Tensor([1.0], device=device),
        mt.zeros(2, device=device),
        mt.full((2,), 1, device=device),
        mt.arange(3, device=device),
        mt.linspace(0, 1, 3, device=device),
        mt.eye(2, device=device),
        mt.randint(3, (2,), device=device),
        mt.asarray([1.0], device=device),
        mt.zeros_like(mt.ones(2), device=device),
        mt.full_like(mt.ones(2), 1, device=device),
        mt.ones(2).to(device),
        mt.ones(2).to(device=device),
        mt.nn.Linear(2, 3, device=device).weight,
        mt.nn.Linear(2, 3).to(device).weight,
    ]
    assert all(isinstance(t.device, mt.Device) and t.device == "meta" for t in made)


def test_results_are_on_the_device_of_the_inputs():
    x = mt.ones((2, 3), device="meta")
    assert (x + 1).device == mt.ops.softmax(x).device == x.device == mt.Device("meta")
    assert mt.zeros_like(x).device == "meta" and mt.ones(2).device == "cpu"


@pytest.mark.parametrize(
    ("device", "error", "message"),
    [
        ("tpu", ValueError, "unknown device 'tpu'; the devices are 'cpu'"),
        ("cpu:1", ValueError, "unknown device 'cpu:1'; the devices are 'cpu'"),
        ("cpu:", ValueError, "unknown device 'cpu:'"),
        ("cpu:00", ValueError, "unknown device 'cpu:00'"),
        ("cpu:+0", ValueError, "unknown device"),
        ("cuda:0", RuntimeError, "device 'cuda:0' is not available: .*; use device='cpu'"),
        (5, TypeError, "takes a Device or its name, such as 'cpu', got int"),
    ],
)
def test_other_devices_are_errors(device, error, message):
    with pytest.raises(error, match=message):
        mt.zeros(2, device=device)
    with pytest.raises(error, match=message):
        mt.Device(device)
