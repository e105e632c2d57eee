"""Python values to bytes and back: functions, arguments, results, objects, references.

Begin with `serializer.py` (chooses pickle or cloudpickle) and `functions.py` (pickles and sends each function once).
`references.py` pickles a reference to an object among a call's arguments; `input_lookup.py` finds the object on the
worker.
May import: errors, commands, protocol.
"""
