"""The joblib backend, which scikit-learn uses too. The adapter for dask is `graphs/dask.py`.

Begin with `joblib_backend.py`.
May import: every room except the programs.
"""
