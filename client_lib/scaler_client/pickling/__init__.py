"""Python values to bytes and back: functions, arguments, results, objects, references.

Begin with `serializer.py` (what becomes plain pickle and what cloudpickle) and `functions.py` (a function is
pickled and sent once). `references.py` and `input_lookup.py` are the two ends of an object among a call's arguments.
May import: errors, commands, protocol.
"""
