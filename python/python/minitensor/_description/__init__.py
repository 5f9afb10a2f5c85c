"""Descriptions of ops for readers: in a terminal, in a notebook, and with a plot.

All read the dictionary of `mt.ops.describe`.
"""
