"""The rules for ops of minitensor. A module has the rules of a family."""
