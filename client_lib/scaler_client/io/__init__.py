"""The client's I/O thread, and what belongs to its process: connection, callbacks, exit and fork, output display.

Begin with `io_thread.py` (moves messages between session and socket) and `connection.py` (what all views of a client
share). `objects.py` hands objects over.
May import: errors, commands, protocol, pickling, nested, futures, session, net, monitor.
"""
