"""Worker processes of Scaler, and the host agent that starts, watches and ends them."""

__version__ = "0.1.0"
