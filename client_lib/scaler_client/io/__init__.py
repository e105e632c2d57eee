"""The client's I/O thread and its process: connections, callbacks, exit and fork, output display.

Begin with `io_thread.py` (moves messages between session and socket) and `connection.py` (shared by all views of a
client). `objects.py` sends objects through the I/O thread.
May import: errors, commands, protocol, pickling, nested, futures, session, net, monitor.
"""
