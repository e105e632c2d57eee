"""One module for each library. Only the environment of its system can import it (see `catalogue.py`)."""
