"""Environments of tasks: the modules and packages that workers import, named by their content.

Begin with `manifest.py` (what an environment is), then `module_files.py` (how modules are found and read).
May import: errors, packages, protocol.
"""
