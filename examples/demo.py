"""The demo, from the definition of an op to a trained network: `cargo xtask demo`."""

import sys
import time
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import minitensor as mt

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

ROOT = Path(__file__).parent.parent
OUT = ROOT / "out"
GOAL = 0.97


def heading(number: int, text: str) -> None:
    print(f"\n{number}. {text}\n")


def show(expression: str) -> None:
    """Prints an expression and its value, like the Python prompt."""
    print(f"   >>> {expression}")
    print("\n".join(f"   {line}" for line in repr(eval(expression)).splitlines()))


def definition(op: str, file: Path) -> str:
    """Returns the source lines of an op, from the doc comment to the end of the function."""
    lines = file.read_text(encoding="utf-8").splitlines()
    start = stop = next(i for i, line in enumerate(lines) if line.startswith(f"pub fn {op}<"))
    while lines[start - 1].startswith(("///", "#[")):
        start -= 1
    while lines[stop] != "}":
        stop += 1
    return "\n".join(f"   {line}" for line in lines[start : stop + 1])


def check_gradient() -> None:
    x = mt.Tensor(np.linspace(-6, 6, 24), requires_grad=True)
    mt.testing.gradcheck(mt.ops.elu, [x])
    print("   gradcheck  agrees with finite differences at 24 points")
    report = mt.testing.opcheck(mt.ops.elu)
    print(f"   opcheck    {len(report.findings)} findings over shapes, dtypes, layouts, special values and threads")


class Network:
    """A network with two hidden layers. Every operation in it is a `#[custom_op]`."""

    def __init__(self, rng: np.random.Generator, sizes: tuple[int, ...] = (64, 256, 128, 10)) -> None:
        self.layers = []
        for n_in, n_out in pairwise(sizes):
            weight = rng.normal(0, np.sqrt(2 / n_in), (n_in, n_out)).astype(np.float32)
            arrays = weight, np.zeros(n_out, np.float32), np.ones(n_in, np.float32), np.zeros(n_in, np.float32)
            self.layers.append([mt.Tensor(a, requires_grad=True) for a in arrays])

    def parameters(self) -> list[mt.Tensor]:
        return [parameter for layer in self.layers for parameter in layer]

    def __call__(self, x: mt.Tensor) -> mt.Tensor:
        for i, (weight, bias, scale, shift) in enumerate(self.layers):
            if i > 0:
                x = mt.ops.layer_norm(mt.ops.swish(x), scale, shift)
            x = x @ weight + bias
        return x

    def accuracy(self, images: np.ndarray, labels: np.ndarray) -> float:
        with mt.no_grad():
            guesses = mt.ops.argmax(self(mt.Tensor(images)), axis=-1)
        return float(np.mean(guesses.numpy() == labels))


def train(network: Network, images: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> list[float]:
    """Trains for thirty epochs with AdamW, and returns the loss of each batch. A step is a graph."""
    epochs, batch, losses = 30, 64, []
    optimizer = mt.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)

    @mt.jit
    def step(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        loss = mt.ops.cross_entropy(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for epoch in range(1, epochs + 1):
        order = rng.permutation(len(labels))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            losses.append(step(mt.Tensor(images[chosen]), mt.Tensor(labels[chosen])).item())
        progress(epoch, epochs, float(np.mean(losses[-len(order) // batch :])))
    return losses


def progress(epoch: int, epochs: int, loss: float) -> None:
    """Prints a progress bar: one line on a terminal, otherwise a line every ten epochs."""
    done = 30 * epoch // epochs
    line = f"   {'█' * done}{'░' * (30 - done)}  epoch {epoch:2}/{epochs}   loss {loss:.4f}"
    if sys.stdout.isatty():
        print(f"\r{line}", end="\n" if epoch == epochs else "", flush=True)
    elif epoch in (1, epochs) or epoch % 10 == 0:
        print(line, flush=True)


def plot_loss(losses: list[float], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.semilogy(losses, color="tab:blue", alpha=0.3, label="each batch")
    window = 21
    smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
    axes.semilogy(np.arange(len(smooth)) + window // 2, smooth, color="tab:blue", label=f"mean of {window}")
    axes.set(title="Handwritten digits", xlabel="batch", ylabel="cross entropy")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def plot_op(path: Path) -> None:
    x = mt.Tensor(np.linspace(-8, 8, 400), requires_grad=True)
    y = mt.ops.elu(x)
    y.sum().backward()
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(x.detach().numpy(), y.detach().numpy(), label="elu(x)")
    axes.plot(x.detach().numpy(), x.grad.numpy(), "--", label="derived gradient")
    axes.set(title="mt.ops.elu", xlabel="x")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def main() -> int:
    heading(1, "An op is defined once, as a Rust function (ops/src/activation.rs):")
    print(definition("elu", ROOT / "ops" / "src" / "activation.rs"))

    heading(2, "In Python, it is a function:")
    show("mt.ops.elu(mt.Tensor([-2.0, 0.0, 2.0]))")
    print("   >>> mt.ops.describe('elu')")
    known = mt.ops.describe("elu")
    for key in ("signature", "aliases", "dtypes", "shape_rule", "differentiable", "location"):
        print(f"   {key:<15} {known[key]}")

    heading(3, "Its gradient is derived from the definition. Check it:")
    check_gradient()

    heading(4, "Train a network of such ops on handwritten digits:")
    digits = load_digits()
    images, labels = (digits.data / 16).astype(np.float32), digits.target.astype(np.int64)
    split = train_test_split(images, labels, test_size=0.25, stratify=labels, random_state=0)
    train_images, test_images, train_labels, test_labels = split
    print(f"   {len(train_labels)} training images, {len(test_labels)} test images\n")
    rng = np.random.default_rng(0)
    network = Network(rng)
    start = time.perf_counter()
    losses = train(network, train_images, train_labels, rng)
    seconds = time.perf_counter() - start
    accuracy = network.accuracy(test_images, test_labels)
    print(f"\n   {accuracy:.1%} of the test images are classified correctly after {seconds:.1f} s of training")

    heading(5, "Plots:")
    OUT.mkdir(exist_ok=True)
    plot_loss(losses, OUT / "loss.png")
    plot_op(OUT / "elu.png")
    print("   out/loss.png    the loss of each batch\n   out/elu.png     the op and its gradient")

    if accuracy < GOAL:
        print(f"\nThe accuracy is below {GOAL:.0%}.", file=sys.stderr)
        return 1
    print(NEXT)
    return 0


NEXT = """
What to try next:

   .venv/bin/python -m minitensor ops                                 list all ops
   .venv/bin/python -c 'import minitensor as mt; help(mt.ops.gelu)'   show the documentation of an op
   docs/defining-ops.md                                               define your own op, then: cargo xtask wheel
   cargo xtask test                                                   run all tests
"""

if __name__ == "__main__":
    sys.exit(main())
