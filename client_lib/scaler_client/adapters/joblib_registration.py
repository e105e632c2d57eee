"""`register_joblib`: makes the backend known to joblib. Importing this module does not import joblib."""

from __future__ import annotations

from ..commands.install_hints import install_hint


def register_joblib() -> None:
    """Register the joblib backend `"scaler"`, which scikit-learn uses too.

    Then `joblib.parallel_config(backend="scaler")` runs joblib calls on a cluster. It takes these arguments:

    - `address`: the address of the scheduler; None: as for `Client`;
    - `client`: a client to use instead, or a view of one with options;
    - `modules` and `environment`: the modules and packages that the tasks import, as for `Client`; not with `client`;
    - `n_workers`: the number of workers; None: the number that a scheduler on this machine publishes;
    - `inner_max_num_threads`: the most threads that BLAS and OpenMP may start in a task;
    - `initializer` and `initargs`: a function that each worker process calls before its first batch, and its arguments.

    Raises:
        ImportError: joblib is not installed, or older than 1.5.

    Example:
        ```python
        import joblib
        from scaler_client import register_joblib

        register_joblib()
        with joblib.parallel_config(backend="scaler"):
            print(joblib.Parallel()(joblib.delayed(abs)(x) for x in (-1, -2)))  # [1, 2]
        ```
    """
    try:
        from .joblib_backend import register
    except ImportError as error:
        raise ImportError(f"register_joblib needs joblib 1.5 or newer: {install_hint('joblib')}") from error
    register()
