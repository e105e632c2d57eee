"""Large arguments: hosts get them from the client, as objects, and not from the scheduler.

The pickle of all arguments of a call becomes an object with one reader. Its value is the pickle itself, which the task
unpickles: so arguments stay writable, and each attempt of a task has its own.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

from ..pickling.call_pickles import load_arguments_pickle
from ..pickling.references import MAX_INPUTS, Call, CallWithInputs, ObjectRef, StoredObject
from ..session.frame_limit import fits_limit
from ..session.session import Session
from .io_thread import IoThread

DumpCall = Callable[[tuple[Any, ...], Mapping[str, Any]], Call]


def share_large_arguments(dump_call: DumpCall, io_thread: IoThread) -> DumpCall:
    """Return a function that turns the arguments of a call into bytes, or into an object if they are large.

    It is `dump_call` itself if this client does not share arguments.

    Args:
        dump_call: turns the arguments into bytes.
        io_thread: sends the objects. It has joined.
    """
    least = io_thread.least_shared_argument()
    if least is None:
        return dump_call

    def dump(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """Return the arguments of one call as bytes.

        Raises:
            Exception: as `dump_call`.
            ClientClosedError: the client is disconnected.
        """
        call = dump_call(args, kwargs)
        if type(call) is bytes:
            return call if len(call) < least else _shared(call, call, (), io_thread)
        if isinstance(call, CallWithInputs) and len(call.data) >= least:
            return _shared(call, call.data, call.inputs, io_thread)
        return call

    return dump


def _shared(call: Call, data: Any, inputs: tuple[Any, ...], io_thread: IoThread) -> Call:
    """Return a call that reads its arguments from an object."""
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
