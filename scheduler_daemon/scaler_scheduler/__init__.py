"""The scheduler daemon of Scaler."""

__version__ = "0.1.0"
