"""NumPy implementations of ops that NumPy lacks."""

import numpy as np
from scipy import special


def with_column(x, part):
    """Returns the matrix with its second column replaced."""
    out = x.copy()
    out[:, 1] = part
    return out


def sigmoid(x):
    return special.expit(x)


def layer_norm(x, weight, bias, eps=1e-5):
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c * c).mean(-1, keepdims=True) + eps) * weight + bias


def rms_norm(x, weight, eps=1e-5):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def standardize(x, axis=None, eps=1e-5):
    c = x - x.mean(axis, keepdims=True)
    return c / np.sqrt((c * c).mean(axis, keepdims=True) + eps)


def per_channel(numbers, x):
    return numbers.reshape(-1, *[1] * (x.ndim - 2))


def batch_norm(x, mean, var, weight, bias, eps=1e-5):
    mean, var, weight, bias = (per_channel(v, x) for v in (mean, var, weight, bias))
    return (x - mean) / np.sqrt(var + eps) * weight + bias


def group_norm(x, weight, bias, groups):
    y = standardize(x.reshape(x.shape[0], groups, -1), -1).reshape(x.shape)
    return y * per_channel(weight, x) + per_channel(bias, x)


def cosine_similarity(x, y):
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))


def cross_entropy(logits, target, reduction="mean"):
    losses = special.logsumexp(logits, -1) - np.take_along_axis(logits, target[..., None], -1)[..., 0]
    return {"mean": losses.mean(), "sum": losses.sum(), "none": losses}[reduction]


def mse(x, y, reduction="mean"):
    losses = (x - y) ** 2
    return {"mean": losses.mean(), "sum": losses.sum(), "none": losses}[reduction]


def scattered(x, index, size, axis=-1):
    out = np.zeros((*x.shape[:-1], size), x.dtype)
    for at in np.ndindex(*x.shape[:-1]):
        np.add.at(out[at], index[at], x[at])
    return out


def scattered_rows(x, index, size):
    out = np.zeros((size, *x.shape[1:]), x.dtype)
    np.add.at(out, index, x)
    return out


def topk(x, k, axis=-1):
    order = np.argsort(-x, axis=axis, kind="stable")[..., :k]
    return np.take_along_axis(x, order, axis), order


def unsliced(x):
    out = np.zeros((2, 8), x.dtype)
    out[:, 1:7:2] = x
    return out


def products_of_others(x):
    at = range(x.shape[-1])
    return np.stack([np.prod(np.delete(x, i, -1), -1) for i in at], -1)


def nonzero_rows(x, size, fill_value=0):
    """`nonzero` with a size."""
    found = np.argwhere(x)[:size]
    return np.concatenate([found, np.full((size - len(found), x.ndim), fill_value, "int64")])


def sgd(p, v, g, lr, momentum, nesterov, weight_decay):
    g = g + weight_decay * p
    v = momentum * v + g
    return p - lr * (g + momentum * v if nesterov else v), v


def adam(p, m, v, g, lr, correction1, correction2, weight_decay, decoupled, beta1=0.9, beta2=0.999, eps=1e-8):
    if decoupled:
        p = p - lr * weight_decay * p
    else:
        g = g + weight_decay * p
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    return p - lr * (m / correction1) / (np.sqrt(v / correction2) + eps), m, v
