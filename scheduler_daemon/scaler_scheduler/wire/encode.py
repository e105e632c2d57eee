"""Effects to frames."""

from typing import Any, Callable

from scaler_scheduler.core import effects
from scaler_scheduler.wire import one_row_codec
from scaler_scheduler.wire.columns import UINT8, UINT32, UINT64, Column, columns_message, compacted
from scaler_scheduler.wire.schema import (
    ChangeWorker,
    Contents,
    ContentsWanted,
    Credit,
    DataAddress,
    EndWorker,
    Environment,
    Error,
    Exchange,
    Function,
    GangMember,
    Goodbye,
    HeartbeatEcho,
    Host,
    Message,
    Notice,
    Object,
    Refused,
    RefusedReason,
    TransferObjects,
    Welcome,
)

PROTOCOL_VERSION = 1
"""The schema's `protocolVersion`. capnpy's compiler drops constants, so a test compares both."""


def _no_clock() -> int:
    return 0


class Identity:
    """The scheduler's data about itself, for messages that tell it."""

    __slots__ = ("incarnation", "unix_milliseconds", "version")

    def __init__(self, incarnation: int, version: str, unix_milliseconds: Callable[[], int] = _no_clock) -> None:
        self.incarnation = incarnation
        self.version = version
        self.unix_milliseconds = unix_milliseconds
        """Returns the time of the scheduler's clock. 0: not known."""


def encode(effect: effects.Effect, identity: Identity) -> list[bytes]:
    """The frames of an effect's message, without the route."""
    return _ENCODERS[effect.kind](effect, identity)


def _welcome(effect: Any, identity: Identity) -> list[bytes]:
    welcome = Welcome(
        protocol_version=PROTOCOL_VERSION,
        version=identity.version,
        incarnation=identity.incarnation,
        lease_milliseconds=effect.lease_milliseconds,
        credit=effect.credit,
        result_window=effect.result_window,
        message_size_limit=effect.message_size_limit,
        workers=effect.workers,
        takes_files=effect.takes_files,
    )
    return [Message.new_welcome(welcome).dumps()]


def _refused(effect: Any, identity: Identity) -> list[bytes]:
    refused = Refused(
        reason=RefusedReason(effect.reason),
        text=effect.text,
        protocol_version=PROTOCOL_VERSION,
        version=identity.version,
    )
    return [Message.new_refused(refused).dumps()]


def _hello_wanted(effect: Any, identity: Identity) -> list[bytes]:
    return [Message.new_hello_wanted().dumps()]


def _shutdown(effect: Any, identity: Identity) -> list[bytes]:
    return [Message.new_shutdown().dumps()]


def _goodbye(effect: Any, identity: Identity) -> list[bytes]:
    return [Message.new_goodbye(Goodbye(reason=effect.reason)).dumps()]


def _heartbeat_echo(effect: Any, identity: Identity) -> list[bytes]:
    hosts = [
        Host(
            name=host.name,
            language=host.language,
            version=host.version,
            packages=host.packages,
            unix_milliseconds=host.clock_ms,
        )
        for host in effect.hosts
    ]
    echo = HeartbeatEcho(
        sequence=effect.sequence,
        is_drained=effect.is_drained,
        workers=effect.workers,
        hosts=hosts or None,
        packages=list(effect.packages) or None,
        unix_milliseconds=identity.unix_milliseconds() if hosts else 0,
        ticket=effect.ticket or None,
    )
    return [Message.new_heartbeat_echo(echo).dumps()]


def _function(effect: Any, identity: Identity) -> list[bytes]:
    function = Function(number=effect.number, name=effect.name, kind=effect.function_kind)
    return [Message.new_function(function).dumps(), effect.payload]


def _forget_functions(effect: Any, identity: Identity) -> list[bytes]:
    return [columns_message(effects.FORGET_FUNCTIONS, ((UINT32, effect.numbers),))]


def _joined(rows: effects.Rows) -> bytes:
    parts = rows.parts
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _sparse_column(numbers: dict[int, tuple[int, int, int]], rows: int, index: int) -> list[int]:
    """A column with one of the three numbers of each row. Rows without numbers have 0."""
    column = [0] * rows
    for row, of_row in numbers.items():
        column[row] = of_row[index]
    return column


def _row_option_columns(row_options: dict[int, tuple[int, int, int]], rows: int) -> tuple[Column, Column, Column]:
    """The flags, depths and priorities of a Dispatch."""
    if not row_options:
        return (UINT8, ()), (UINT32, ()), (UINT32, ())
    priorities = [priority & 0xFFFFFFFF for priority in _sparse_column(row_options, rows, 2)]
    return (
        (UINT8, compacted(_sparse_column(row_options, rows, 0))),
        (UINT32, compacted(_sparse_column(row_options, rows, 1))),
        (UINT32, compacted(priorities)),
    )


def _profile_columns(profiles: dict[int, tuple[int, int, int]], rows: int) -> tuple[Column, Column, Column]:
    """The durations, CPU times and peaks of a Resolved."""
    if not profiles:
        return (UINT64, ()), (UINT64, ()), (UINT64, ())
    return (
        (UINT64, compacted(_sparse_column(profiles, rows, 0))),
        (UINT64, compacted(_sparse_column(profiles, rows, 1))),
        (UINT64, compacted(_sparse_column(profiles, rows, 2))),
    )


def _input_columns(effect: effects.Dispatch) -> tuple[Column, Column, Column, Column]:
    """The columns of a Dispatch about inputs: ids, counts, `inputSources` (which are files) and `inlineSizes` (which
    are in the row's payload)."""
    if not effect.input_counts:
        return (UINT64, ()), (UINT32, ()), (UINT8, ()), (UINT32, ())
    counts = [0] * len(effect.ids)
    for row, count in effect.input_counts.items():
        counts[row] = count
    inline_sizes = compacted(effect.inline_sizes)
    return (
        (UINT64, effect.inputs),
        (UINT32, compacted(counts)),
        (UINT8, compacted(effect.input_sources)),
        (UINT32, inline_sizes if len(inline_sizes) > 1 or inline_sizes[0] else ()),
    )


def _name_columns(names: dict[int, str], rows: int) -> tuple[Column, Column]:
    """The given names of a Dispatch, and their sizes."""
    if not names:
        return (UINT8, b""), (UINT32, ())
    sizes = [0] * rows
    given: list[bytes] = []
    for row in sorted(names):
        name = names[row].encode("utf-8")
        sizes[row] = len(name)
        given.append(name)
    return (UINT8, b"".join(given)), (UINT32, compacted(sizes))


def _booking_columns(bookings: list[tuple[int, int, str]], rows: int) -> tuple[Column, Column]:
    """The bookings of a Dispatch, and the number of each row's line."""
    if not bookings:
        return (UINT8, b""), (UINT32, ())
    numbers: dict[str, int] = {}
    if len(bookings) == 1 and bookings[0][:2] == (0, rows):
        return (UINT8, bookings[0][2].encode()), (UINT32, (1,))
    column = [0] * rows
    for begin, end, text in bookings:
        column[begin:end] = [numbers.setdefault(text, len(numbers) + 1)] * (end - begin)
    return (UINT8, "\n".join(numbers).encode()), (UINT32, compacted(column))


def _dispatch(effect: Any, identity: Identity) -> list[bytes]:
    frame = one_row_codec.dispatch(effect)
    if frame is not None:
        return [frame]
    rows = effect.rows
    frame = columns_message(
        effects.DISPATCH,
        (
            (UINT64, compacted(effect.clients)),
            (UINT64, effect.ids),
            (UINT32, compacted(effect.attempts)),
            (UINT32, compacted(effect.functions)),
            (UINT32, compacted(rows.sizes)),
            (UINT32, rows.large_rows),
            (UINT8, _joined(rows)),
            *_row_option_columns(effect.row_options, len(effect.ids)),
            *_input_columns(effect),
            *_name_columns(effect.names, len(effect.ids)),
            *_booking_columns(effect.bookings, len(effect.ids)),
        ),
    )
    return [frame, *rows.large_frames]


def _resolved(effect: Any, identity: Identity) -> list[bytes]:
    frame = one_row_codec.resolved(effect)
    if frame is not None:
        return [frame]
    rows = effect.rows
    frame = columns_message(
        effects.RESOLVED,
        (
            (UINT64, effect.ids),
            (UINT8, compacted(effect.outcomes)),
            (UINT32, compacted(rows.sizes)),
            (UINT32, rows.large_rows),
            (UINT8, _joined(rows)),
            *_profile_columns(effect.profiles, len(effect.ids)),
        ),
    )
    return [frame, *rows.large_frames]


def _started(effect: Any, identity: Identity) -> list[bytes]:
    return [columns_message(effects.STARTED, ((UINT64, ()), (UINT64, effect.ids), (UINT32, ())))]


def _tasks(effect: Any, identity: Identity) -> list[bytes]:
    columns = ((UINT64, compacted(effect.clients)), (UINT64, effect.ids), (UINT32, compacted(effect.attempts)))
    return [columns_message(effect.kind, columns)]


def _end_worker(effect: Any, identity: Identity) -> list[bytes]:
    end_worker = EndWorker(
        incarnation=effect.incarnation,
        client=effect.client,
        id=effect.id,
        attempt=effect.attempt,
        reason=effect.reason,
    )
    return [Message.new_end_worker(end_worker).dumps()]


def _credit(effect: Any, identity: Identity) -> list[bytes]:
    return [Message.new_credit(Credit(bytes=effect.bytes)).dumps()]


def _object(effect: Any, identity: Identity) -> list[bytes]:
    struct = Object(client=effect.client, id=effect.id, name=effect.name)
    return [Message.new_object(struct).dumps(), *effect.frames]


def _forget_objects(effect: Any, identity: Identity) -> list[bytes]:
    return [columns_message(effects.FORGET_OBJECTS, ((UINT64, compacted(effect.clients)), (UINT64, effect.ids)))]


def _output(effect: Any, identity: Identity) -> list[bytes]:
    columns: list[Column] = [
        (UINT64, ()),
        (UINT64, effect.ids),
        (UINT8, compacted(effect.streams)),
        (UINT32, compacted(effect.labels)),
        (UINT32, compacted(effect.sizes)),
        (UINT8, b"".join(effect.texts)),
        (UINT64, [effect.dropped] if effect.dropped else ()),
    ]
    return [columns_message(effects.OUTPUT, columns)]


def _fetch_objects(effect: Any, identity: Identity) -> list[bytes]:
    return [columns_message(effects.FETCH_OBJECTS, ((UINT64, compacted(effect.clients)), (UINT64, effect.ids)))]


def _transfer_objects(effect: effects.TransferObjects, identity: Identity) -> list[bytes]:
    data = DataAddress(address=effect.data.address, key=effect.data.key, ticket=effect.data.ticket)
    struct = TransferObjects(
        source=effect.source,
        data=data,
        clients=list(compacted(effect.clients)),
        ids=effect.ids,
        bytes=list(compacted(effect.bytes)),
    )
    return [Message.new_transfer_objects(struct).dumps()]


def _environment(effect: effects.Environment, identity: Identity) -> list[bytes]:
    struct = Environment(
        name=effect.name,
        contents=list(effect.contents),
        bytes=effect.size,
        level=effect.level,
        platform=effect.platform,
    )
    return [Message.new_environment(struct).dumps(), effect.manifest]


def _contents_wanted(effect: effects.ContentsWanted, identity: Identity) -> list[bytes]:
    return [Message.new_contents_wanted(ContentsWanted(names=list(effect.names))).dumps()]


def _contents(effect: effects.Contents, identity: Identity) -> list[bytes]:
    return [Message.new_contents(Contents(count=len(effect.frames))).dumps(), *effect.frames]


def _change_worker(effect: effects.ChangeWorker, identity: Identity) -> list[bytes]:
    struct = ChangeWorker(worker=effect.worker, environment=effect.environment, mode=effect.mode)
    return [Message.new_change_worker(struct).dumps()]


def _gang_member(effect: effects.GangMember, identity: Identity) -> list[bytes]:
    struct = GangMember(
        client=effect.client, id=effect.id, attempt=effect.attempt, rank=effect.rank, hosts=list(effect.hosts)
    )
    return [Message.new_gang_member(struct).dumps()]


def _exchange(effect: effects.Exchange, identity: Identity) -> list[bytes]:
    struct = Exchange(
        client=effect.client,
        id=effect.id,
        attempt=effect.attempt,
        round=effect.round,
        sizes=list(map(len, effect.values)),
        payload=b"".join(effect.values),
        ended=effect.ended,
    )
    return [Message.new_exchange(struct).dumps()]


def _cancel_refused(effect: Any, identity: Identity) -> list[bytes]:
    return [columns_message(effects.CANCEL_REFUSED, ((UINT64, effect.ids),))]


def _error(effect: Any, identity: Identity) -> list[bytes]:
    tasks = list(effect.tasks) or None
    return [Message.new_error(Error(text=effect.text, tasks=tasks)).dumps()]


def _notice(effect: effects.Notice, identity: Identity) -> list[bytes]:
    return [Message.new_notice(Notice(text=effect.text)).dumps()]


_ENCODERS: dict[int, Callable[[Any, Identity], list[bytes]]] = {
    effects.WELCOME: _welcome,
    effects.REFUSED: _refused,
    effects.HELLO_WANTED: _hello_wanted,
    effects.GOODBYE: _goodbye,
    effects.HEARTBEAT_ECHO: _heartbeat_echo,
    effects.FUNCTION: _function,
    effects.FORGET_FUNCTIONS: _forget_functions,
    effects.DISPATCH: _dispatch,
    effects.RESOLVED: _resolved,
    effects.STARTED: _started,
    effects.CANCEL_REFUSED: _cancel_refused,
    effects.ERROR: _error,
    effects.NOTICE: _notice,
    effects.RETRACT: _tasks,
    effects.STOP: _tasks,
    effects.END_WORKER: _end_worker,
    effects.CREDIT: _credit,
    effects.OBJECT: _object,
    effects.FORGET_OBJECTS: _forget_objects,
    effects.SHUTDOWN: _shutdown,
    effects.OUTPUT: _output,
    effects.FETCH_OBJECTS: _fetch_objects,
    effects.TRANSFER_OBJECTS: _transfer_objects,
    effects.ENVIRONMENT: _environment,
    effects.CONTENTS_WANTED: _contents_wanted,
    effects.CONTENTS: _contents,
    effects.CHANGE_WORKER: _change_worker,
    effects.GANG_MEMBER: _gang_member,
    effects.EXCHANGE: _exchange,
}
