"""Trains a model of a file: `python saved_training.py FILE`. Also imported by tests."""

import sys

import minitensor as mt


def bits(t):
    return mt._minitensor._tensor_bytes(t.detach()).hex()


def trained(model, shape, steps=4):
    """Returns the bits of all losses, and of the state after the last step."""
    optimizer = mt.optim.AdamW(list(model.parameters()), lr=0.05)
    mt.manual_seed(5)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(mt.randn(*shape)) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(bits(loss))
    return losses + [f"{name} {bits(t)}" for name, t in model.state_dict().items()]


if __name__ == "__main__":
    loaded = mt.load(sys.argv[1])
    (meta,) = loaded.branches[0].ir.inputs
    print("\n".join(trained(loaded, meta.shape)))
