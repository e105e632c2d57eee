"""Worker processes of Scaler and the host agent that looks after them."""

__version__ = "0.1.0"
