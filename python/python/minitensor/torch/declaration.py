"""The declarations of ops in PyTorch's dispatcher.

PyTorch frees a declaration together with its library. A program that holds `torch.ops.<namespace>.<op>` would then read
freed memory. So the declaration of an op that is defined again is kept, unless its schema differs.
"""

from __future__ import annotations

import torch

#: The schema and the library of each declaration, by its qualified name.
_declared: dict[str, tuple[str, torch.library.Library]] = {}


def declare(namespace: str, name: str, schema: str) -> None:
    """Declares an op, unless it is declared with this schema."""
    qualified = f"{namespace}::{name}"
    known, library = _declared.get(qualified, (None, None))
    if known == schema:
        return
    if library is not None:
        library._destroy()
    library = torch.library.Library(namespace, "FRAGMENT")
    library.define(name + schema, tags=[torch.Tag.pt2_compliant_tag])
    _declared[qualified] = schema, library
