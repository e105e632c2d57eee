"""joblib and scikit-learn on a cluster: what makes joblib know of it. Importing this does not import joblib."""

from __future__ import annotations

from ..commands.install_hints import install_hint


def register_joblib() -> None:
    """Make `joblib.parallel_config(backend="scaler", address=...)` work; `ScalerBackend` says what it takes.

    Raises:
        ImportError: joblib is not installed, or older than 1.5.
    """
    try:
        from .joblib_backend import register
    except ImportError as error:
        raise ImportError(f"register_joblib needs joblib 1.5 or newer: {install_hint('joblib')}") from error
    register()
