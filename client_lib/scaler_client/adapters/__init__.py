"""Backends of joblib and scikit-learn. (The adapter for dask is `graphs/dask.py`.)

Begin with `joblib_backend.py`.
May import: every room but the programs.
"""
