"""Environments of tasks: the modules and packages that workers import, named by their content.

Begin with `manifest.py` (what an environment is), then `module_files.py` (how modules are found and read).
`module_versions.py` compares the modules of a local program with those that a worker has imported.
May import: errors, packages, protocol.
"""
