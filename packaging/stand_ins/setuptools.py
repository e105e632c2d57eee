"""What capnpy wants of setuptools when it is imported. It builds nothing here.

The real one takes 0.3 s to import, at every start.
"""


class Extension:
    """The base of a class of capnpy's that only its build commands use."""
