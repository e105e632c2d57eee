"""Large arguments: hosts get them from the client, as objects, and not from the scheduler.

The pickle of all arguments of a call becomes an object with one reader. Its value is the pickle itself, which the task
unpickles: so arguments stay writable, and each attempt of a task has its own.
"""

from __future__ import annotations

import pickle
from functools import partial

from ..pickling.call_pickles import load_arguments_pickle
from ..pickling.references import MAX_INPUTS, Call, CallWithInputs, ObjectRef, StoredObject, call_payload
from ..pickling.serializer import NO_LARGE_CALLS, LargeCalls
from ..session.frame_limit import fits_limit
from ..session.session import Session
from .io_thread import IoThread


def large_calls(io_thread: IoThread) -> LargeCalls:
    """Return from how many bytes on a client sends arguments as objects, and the function that does it.

    Args:
        io_thread: sends the objects. It has joined.
    """
    least = io_thread.least_shared_argument()
    return NO_LARGE_CALLS if least is None else (least, partial(_share, io_thread))


def _share(io_thread: IoThread, call: Call) -> Call:
    """Return a call that reads its arguments from an object.

    Raises:
        ClientClosedError: the client is disconnected.
    """
    inputs = call.inputs if isinstance(call, CallWithInputs) else ()
    data = call_payload(call)
    if len(inputs) == MAX_INPUTS or not fits_limit([data], io_thread.frame_limit):
        return call  # if it is too large, its future gets the error
    value = pickle.dumps(pickle.PickleBuffer(data), pickle.HIGHEST_PROTOCOL, buffer_callback=lambda _: None)
    stored = StoredObject("", [value, data], None, is_arguments=True)
    reference = ObjectRef(io_thread, stored)

    def send(session: Session) -> None:
        session.frame_limit.large.count_frames(stored.frames)
        session.send_object(stored)

    io_thread.call_soon(send)
    return CallWithInputs(load_arguments_pickle(len(inputs)), (*inputs, reference))
