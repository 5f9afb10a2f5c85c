"""What each of several processes does in the tests of sharded tensors. Run by torch_workers.run()."""

import os
import sys

import minitensor.torch as mtt
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode


def placed(mesh, tensor, place):
    return distribute_tensor(tensor, mesh, [place]).requires_grad_(tensor.is_floating_point())


def check(mesh, op, reference, tensors, places, result_place):
    """The op on sharded tensors communicates nothing, and has the results and gradients of the whole tensors."""
    shards = [placed(mesh, t, p) for t, p in zip(tensors, places, strict=True)]
    with CommDebugMode() as counter:
        y = op(*shards)
    assert counter.get_total_counts() == 0, counter.get_comm_counts()
    assert y.placements == (result_place,), y.placements
    y.square().sum().backward()
    whole = [t.clone().requires_grad_() for t in tensors]
    expected = reference(*whole)
    expected.square().sum().backward()
    torch.testing.assert_close(y.full_tensor(), expected)
    for shard, t in zip(shards, whole, strict=True):
        torch.testing.assert_close(shard.grad.full_tensor(), t.grad)


def test_sharded(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    x, w, b = torch.randn(8, 6, 16), torch.randn(16), torch.randn(16)
    row, column = torch.randn(8, 6), torch.randn(8, 1)
    check(mesh, mtt.swish, F.silu, [x], [Shard(1)], Shard(1))
    norm = lambda x, w, b: F.layer_norm(x, (16,), w, b)  # noqa: E731
    check(mesh, mtt.layer_norm, norm, [x, w, b], [Shard(0), Replicate(), Replicate()], Shard(0))
    check(mesh, mtt.layer_norm, norm, [x, w, b], [Shard(1), Replicate(), Replicate()], Shard(1))
    check(mesh, mtt.multiply, torch.mul, [row, column], [Shard(1), Replicate()], Shard(1))
    check(mesh, mtt.multiply, torch.mul, [row, column], [Shard(0), Shard(0)], Shard(0))
    softmax = lambda x: torch.softmax(x, 1)  # noqa: E731
    check(mesh, lambda x: mtt.softmax(x, axis=1), softmax, [x], [Shard(0)], Shard(0))
    check(mesh, lambda x: mtt.softmax(x, axis=1), softmax, [x], [Shard(2)], Shard(2))
    check(mesh, lambda x: mtt.var(x, axis=1), lambda x: x.var(1, correction=0), [x], [Shard(2)], Shard(1))
    # The gradient of a weight is a partial sum.
    weight = placed(mesh, w, Replicate())
    y = mtt.layer_norm(placed(mesh, x, Shard(0)), weight)
    (gradient,) = torch.autograd.grad(y.sum(), weight)
    assert gradient.placements == (Partial(),), gradient.placements
    # A sharded core dimension is gathered first.
    sharded = placed(mesh, x, Shard(2))
    with CommDebugMode() as counter:
        y = mtt.layer_norm(sharded)
    assert counter.get_total_counts() == 1, counter.get_comm_counts()
    torch.testing.assert_close(y.full_tensor(), F.layer_norm(x, (16,)))
    # A sum over a sharded dimension is a partial sum, on which linear ops run.
    sharded = placed(mesh, x, Shard(2))
    with CommDebugMode() as counter:
        total = mtt.sum(sharded, axis=-1)
        difference = mtt.subtract(mtt.negative(total), total)
    assert counter.get_total_counts() == 0, counter.get_comm_counts()
    assert difference.placements == (Partial(),), difference.placements
    torch.testing.assert_close(difference.full_tensor(), -2 * x.sum(-1))
    difference.square().sum().backward()
    torch.testing.assert_close(sharded.grad.full_tensor(), 8 * x.sum(-1, keepdim=True).expand_as(x))
    assert sharded.grad.placements == (Shard(2),), sharded.grad.placements
    # An op without a rule computes on whole tensors.
    y = mtt.matmul(placed(mesh, x, Shard(0)), placed(mesh, torch.ones(16, 2), Replicate()))
    torch.testing.assert_close(y.full_tensor(), x @ torch.ones(16, 2))


class Block(torch.nn.Module):
    def __init__(self, norm, activation):
        super().__init__()
        self.norm, self.activation = norm, activation
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
        self.weight = torch.nn.Parameter(torch.ones(16))

    def forward(self, x):
        return x + self.down(self.activation(self.up(self.norm(x, self.weight))))


def losses(rank, size, norm, activation, compiled):
    torch.manual_seed(1)
    model = Block(norm, activation)
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    fully_shard(model)
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    found = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (run(x[rank::size]) - y[rank::size]).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return torch.stack(found)


def test_fsdp(rank, size):
    theirs = losses(rank, size, lambda x, w: F.layer_norm(x, (16,), w), F.silu, False)
    for compiled in (False, True):
        ours = losses(rank, size, mtt.layer_norm, mtt.swish, compiled)
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert theirs[-1] < theirs[0]


def work(rank, size, name, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    globals()[name](rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.multiprocessing.spawn(work, (2, sys.argv[1], sys.argv[2]), nprocs=2)
