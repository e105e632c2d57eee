"""The client's I/O thread, and code for its process: connection, callbacks, exit and fork, output display.

Begin with `io_thread.py` (moves messages between session and socket) and `connection.py` (shared by all views of a
client). `objects.py` passes objects to the I/O thread.
May import: errors, commands, protocol, pickling, nested, futures, session, net, monitor.
"""
