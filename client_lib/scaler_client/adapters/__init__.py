"""joblib and scikit-learn on a cluster. (dask's graphs are in `graphs/dask.py`.)

Begin with `joblib_backend.py`.
May import: every room but the programs.
"""
