"""Rules of operators, one module for each family."""
