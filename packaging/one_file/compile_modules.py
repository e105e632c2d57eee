"""`PYTHON compile_modules.py TREE`: compiles all modules in a folder, reproducibly.

Under PyPy the output of compileall differs from run to run, because marshal writes references for constants that happen
to be one object in memory. Version 2 of marshal has no references.
"""

import importlib.util
import marshal
import os
import sys


def compile_module(path: str, shown: str) -> None:
    """Compile a module. `shown` is the file name in tracebacks until its import sets another. Raises SyntaxError."""
    with open(path, "rb") as file:
        source = file.read()
    status = os.stat(path)
    code = compile(source, shown, "exec", dont_inherit=True)
    header = importlib.util.MAGIC_NUMBER + bytes(4) + int(status.st_mtime).to_bytes(4, "little")
    target = importlib.util.cache_from_source(path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as file:
        file.write(header + (status.st_size & 0xFFFFFFFF).to_bytes(4, "little") + marshal.dumps(code, 2))


def main(tree: str) -> None:
    """Compile all modules in a folder."""
    for folder, _, names in os.walk(tree):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                compile_module(path, os.path.join("/scaler_scheduler", os.path.relpath(path, tree)))


if __name__ == "__main__":
    main(sys.argv[1])
