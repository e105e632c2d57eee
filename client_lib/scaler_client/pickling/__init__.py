"""Python values to bytes and back: functions, arguments, results, objects, references.

Begin with `serializer.py` (chooses pickle or cloudpickle) and `functions.py` (pickles each function once).
`references.py` handles references to objects in arguments; on the worker, `input_lookup.py` gives their values.
May import: errors, commands, protocol, environments.
"""
