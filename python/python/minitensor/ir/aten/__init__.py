"""The calls of ATen in terms of the ops of minitensor, without PyTorch. A module has the rules of a family."""
