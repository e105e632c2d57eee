"""Hostile messages: truncated and mutated golden messages, and some made by hand."""

from __future__ import annotations

import random
import resource
import struct
import time
from collections.abc import Iterator
from typing import Callable

from tests.wire.vectors import ALL, Vector

MUTATIONS = 100
"""Mutations of each vector."""

FAR_AWAY = [0, 1, 7, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 63, (1 << 64) - 1]
POINTERS = [
    1 | (7 | ((1 << 29) - 1) << 3) << 32,  # a composite list of the most words possible
    1 | (2 | ((1 << 29) - 1) << 3) << 32,  # a list of as many bytes
    1 | (5 | ((1 << 29) - 1) << 3) << 32,  # a list of as many numbers
    1 | (0 | ((1 << 29) - 1) << 3) << 32,  # a list of as many elements without size
    0xFFFFFFFC,  # a struct at its own pointer: a loop
    0xFFFF << 32 | 0xFFFF << 48,  # the largest struct
    2 | 0 << 3 | 0 << 32,  # a far pointer to the beginning of segment 0
    2 | 4 | 0xFFFFFFFF << 32,  # a far pointer to a missing segment
    3,  # a capability
]


def truncated(vector: Vector) -> Iterator[list[bytes]]:
    """Frame 0 truncated at every byte, and messages without some of the further frames."""
    first, further = vector.frames[0], vector.frames[1:]
    for end in range(len(first)):
        yield [first[:end], *further]
    # An object does not announce its number of frames. It has at least one, unless its frames are in a file.
    for end in range(min(1, len(further)) if vector.message == "object" else len(further)):
        yield [first, *further[:end]]


def mutated(vector: Vector, chance: random.Random) -> list[bytes]:
    """A mutated message, which may still be valid."""
    frame = bytearray(vector.frames[0])
    further = list(vector.frames[1:])
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        words = max(1, len(frame) // 8)
        at = chance.randrange(words) * 8
        kind = chance.randrange(8)
        if kind == 0:
            frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
        elif kind == 1:
            frame[chance.randrange(len(frame))] = chance.randrange(256)
        elif kind == 2:
            frame[at : at + 8] = struct.pack("<Q", chance.choice(POINTERS))
        elif kind == 3:
            frame[at : at + 4] = struct.pack("<I", chance.choice(FAR_AWAY) & 0xFFFFFFFF)
        elif kind == 4:
            other = chance.randrange(words) * 8
            frame[at : at + 8] = frame[other : other + 8]
        elif kind == 5:
            frame[at:at] = bytes(8 * chance.randrange(1, 4))
        elif kind == 6:
            del frame[at : at + 8 * chance.randrange(1, 4)]
            frame += bytes(max(0, 16 - len(frame)))
        elif further and chance.randrange(2):
            further.pop()
        else:
            further.append(b"more")
        if kind in (5, 6) and chance.randrange(4):
            frame[:8] = struct.pack("<II", 0, max(0, len(frame) // 8 - 1))
    return [bytes(frame), *further]


def mutations(seed: int) -> Iterator[tuple[str, list[bytes]]]:
    """Names of the origins, and the mutated frames."""
    chance = random.Random(seed)
    for vector in ALL:
        for number in range(MUTATIONS):
            yield f"seed {seed}: {vector.name} {number}", mutated(vector, chance)


def message(tag: int, *words: int) -> bytes:
    """A message in one segment: the union's member `tag`, with its pointer and the words after it."""
    segment = [1 << 32 | 1 << 48, tag, *words]
    return struct.pack(f"<II{len(segment)}Q", 0, len(segment), *segment)


HEARTBEAT, SUBMIT, DISPATCH, SNAPSHOT, HELLO, FUNCTION = 5, 9, 10, 18, 0, 7
RETRACT, RETRACTED, END_WORKER, OBJECT, FORGET_OBJECTS, OUTPUT, FETCH_OBJECTS, HISTORY = 19, 20, 24, 27, 28, 30, 31, 32
_MAX = (1 << 29) - 1
_TAG = (1 << 29) - 1 << 2
"""The tag of a composite list: the most elements, without size."""


def hello(capabilities: int, running: int, *words: int) -> bytes:
    """A worker's hello that is right except these two pointers and the words after them."""
    return message(HELLO, 5 << 32 | 7 << 48, 1 | 1 << 32, 1, 0, 0, 0, *[0] * 5, capabilities, running, *words)


def submit(options: int, *words: int) -> bytes:
    """One row that is right except the pointer to its options and the words after it. The columns follow."""
    columns = [len(words) + 5 << 2 | 1 | (size_tag | 1 << 3) << 32 for size_tag in (5, 4, 4)]
    return message(SUBMIT, 6 << 48, *columns, 0, 0, options, *words, 1, 1, 0)


def submit_inputs(inputs: int, counts: int, keep: int, *words: int) -> bytes:
    """One row that is right except these three pointers and the words after them. The columns follow."""
    columns = [len(words) + 8 << 2 | 1 | (size_tag | 1 << 3) << 32 for size_tag in (5, 4, 4)]
    return message(SUBMIT, 9 << 48, *columns, 0, 0, 0, inputs, counts, keep, *words, 1, 1, 0)


def output(label: int, size: int, text: int, *words: int) -> bytes:
    """One row that is right except the lengths of label and row, the pointer to the text, and the words after it."""
    columns = [len(words) + 6 << 2 | 1 | (size_tag | 1 << 3) << 32 for size_tag in (5, 5, 2, 4, 4)]
    return message(OUTPUT, 7 << 48, *columns, text + (1 << 2 if words else 0), 0, *words, 1, 1, 0, label, size)


BY_HAND = {
    "nothing": [],
    "an empty frame": [b""],
    "text": [b"GET / HTTP/1.1\r\n\r\n"],
    "zeros": [bytes(64)],
    "ones": [b"\xff" * 64],
    "4 billion segments": [b"\xff\xff\xff\xff" + bytes(60)],
    "16 million empty segments": [struct.pack("<I", (1 << 24) - 1) + bytes(4 << 20)],
    "segments of 32 GiB": [struct.pack("<IIII", 1, 0xFFFFFFFF, 0xFFFFFFFF, 0) + bytes(64)],
    "no root": [struct.pack("<II", 0, 0)],
    "a root that is itself": [struct.pack("<IIQ", 0, 1, 0xFFFFFFFC | 1 << 32 | 1 << 48)],
    "no member": [message(SUBMIT, 0)],
    "an unknown member": [message(200, 0)],
    "a member that is a list": [message(SUBMIT, 1 | (5 | 1 << 3) << 32, 0)],
    "half a billion workers of no size": [message(HEARTBEAT, 3 << 32 | 1 << 48, 1, 2, 3, 1 | 7 << 32, _TAG)],
    "half a billion counters of no size": [
        message(SNAPSHOT, 8 << 32 | 5 << 48, *[0] * 8, *[0] * 2, *[(4 - n) << 2 | 1 | 7 << 32 for n in (2, 3, 4)], _TAG)
    ],
    "half a billion ids": [message(SUBMIT, 5 << 48, *[1 | (5 | _MAX << 3) << 32] * 5)],
    "half a billion nothings for ids": [message(SUBMIT, 5 << 48, *[1 | (0 | _MAX << 3) << 32] * 5)],
    "half a billion bits for ids": [message(SUBMIT, 5 << 48, *[1 | (1 | _MAX << 3) << 32] * 5)],
    "half a billion bytes of payload": [
        message(
            SUBMIT, 5 << 48, *[(4 - n) << 2 | 1 | (5 | 1 << 3) << 32 for n in range(4)], 1 | (2 | _MAX << 3) << 32, 1
        )
    ],
    "a batch for a peer with half a billion ids": [message(DISPATCH, 7 << 48, *[1 | (5 | _MAX << 3) << 32] * 7)],
    "half a billion nothings for a peer": [message(DISPATCH, 7 << 48, *[1 | (0 | _MAX << 3) << 32] * 7)],
    "a name of half a billion characters": [
        message(HELLO, 5 << 32 | 7 << 48, 1, 1, 0, 0, 0, *[1 | (2 | _MAX << 3) << 32] * 5, 0, 0)
    ],
    "half a billion capabilities of no size": [hello(1 << 2 | 1 | 7 << 32, 0, _TAG)],
    "half a billion capabilities beyond the end": [
        hello(1 << 2 | 1 | (7 | _MAX << 3) << 32, 0, _TAG | 1 << 32 | 1 << 48)
    ],
    "capabilities that are numbers": [hello(1 << 2 | 1 | (5 | 3 << 3) << 32, 0, 1, 2, 3)],
    "capabilities that are nothings": [hello(1 << 2 | 1 | (0 | 3 << 3) << 32, 0)],
    "65 capabilities": [hello(1 << 2 | 1 | (7 | 130 << 3) << 32, 0, 65 << 2 | 1 << 32 | 1 << 48, *[1, 0] * 65)],
    "64 names that are one long text": [
        hello(
            *(1 << 2 | 1 | (7 | 128 << 3) << 32, 0, 64 << 2 | 1 << 32 | 1 << 48),
            *[word for n in range(64) for word in (1, (2 * (63 - n)) << 2 | 1 | (2 | (8 * 60_000) << 3) << 32)],
            *[0x4141414141414141] * 59_999,
            0x0041414141414141,
        )
    ],
    "half a billion tasks that run": [hello(0, 3 << 48, *[1 | (5 | _MAX << 3) << 32] * 3)],
    "tasks that run in columns that contradict": [
        hello(0, 3 << 48, *[2 << 2 | 1 | (5 | 2 << 3) << 32, 1 << 2 | 1 | (5 | 3 << 3) << 32, 0], 1, 2, 3, 4)
    ],
    "tasks that run beyond the end": [hello(0, 1000 << 2 | 3 << 48)],
    "options that are a list": [submit(1 | (5 | 1 << 3) << 32, 0)],
    "options that are far away": [submit(1000 << 2 | 3 << 32 | 2 << 48)],
    "options with half a billion capabilities": [
        submit(3 << 32 | 2 << 48, 0, 0, 0, 0, 1 | 7 << 32, _TAG | 1 << 32 | 1 << 48)
    ],
    "options with a name that is not UTF-8": [
        submit(3 << 32 | 2 << 48, 0, 0, 0, 1 << 2 | 1 | (2 | 4 << 3) << 32, 0, 0x00FFFEFD)
    ],
    "options with capabilities that are themselves": [
        submit(3 << 32 | 2 << 48, 0, 0, 0, 0, 0xFFFFFFFD | (7 | 2 << 3) << 32)
    ],
    "options with -2 retries": [submit(3 << 32 | 2 << 48, 0, 1, 0, 0, 0)],
    "half a billion inputs": [submit_inputs(1 | (5 | _MAX << 3) << 32, 0, 0)],
    "half a billion inputs that nothings announce": [
        submit_inputs(1 | (5 | _MAX << 3) << 32, 1 | (0 | _MAX << 3) << 32, 0)
    ],
    "4 billion inputs announced": [
        submit_inputs(2 << 2 | 1 | (5 | 1 << 3) << 32, 2 << 2 | 1 | (4 | 1 << 3) << 32, 0, 1, 0xFFFFFFFF)
    ],
    "inputs that no row has": [submit_inputs(2 << 2 | 1 | (5 | 1 << 3) << 32, 0, 0, 1)],
    "half a billion results to keep": [submit_inputs(0, 0, 1 | (2 | _MAX << 3) << 32)],
    "a result kept in an unknown way": [submit_inputs(0, 0, 1 | (2 | 1 << 3) << 32, 3)],
    "half a billion inputs for a peer": [message(DISPATCH, 14 << 48, *[1 | (5 | _MAX << 3) << 32] * 14)],
    "an object without frames": [message(OBJECT, 2 << 32 | 1 << 48, 0, 1, 0)],
    "an object of 65 frames": [message(OBJECT, 2 << 32 | 1 << 48, 0, 1, 0), *[b""] * 65],
    "an object that is a list": [message(OBJECT, 1 | (5 | 1 << 3) << 32, 0), b""],
    "an object that is not there": [message(OBJECT, 0)],
    "half a billion objects to forget": [message(FORGET_OBJECTS, 2 << 48, *[1 | (5 | _MAX << 3) << 32] * 2)],
    "half a billion rows of output": [message(OUTPUT, 7 << 48, *[1 | (5 | _MAX << 3) << 32] * 7)],
    "half a billion bytes of output": [output(1, 1, 1 | (2 | _MAX << 3) << 32)],
    "4 billion bytes of output announced": [output(1, 0xFFFFFFFF, 0)],
    "a label beyond its row": [output(5, 4, 1 | (2 | 4 << 3) << 32, 0)],
    "half a billion rows of history": [message(HISTORY, 13 << 48, *[1 | (5 | _MAX << 3) << 32] * 13)],
    "half a billion objects to fetch": [message(FETCH_OBJECTS, 2 << 48, *[1 | (5 | _MAX << 3) << 32] * 2)],
    "half a billion tasks to retract": [message(RETRACT, 3 << 48, *[1 | (5 | _MAX << 3) << 32] * 3)],
    "half a billion retracted": [message(RETRACTED, 4 << 48, *[1 | (5 | _MAX << 3) << 32] * 4)],
    "a reason of half a billion characters": [
        message(END_WORKER, 4 << 32 | 1 << 48, *[1] * 4, 1 | (2 | _MAX << 3) << 32)
    ],
    "names that are not UTF-8": [
        message(FUNCTION, 1 << 32 | 2 << 48, 1, 1 << 2 | 1 | (2 | 4 << 3) << 32, 1 | (2 | 4 << 3) << 32, 0x00FFFEFD),
        b"",
    ],
    "far pointers in a circle": [
        struct.pack("<IIII", 1, 1, 1, 0) + struct.pack("<QQ", 2 | 1 << 32, 2 | 0 << 32)
    ],
    "far pointers with two words in a circle": [
        struct.pack("<IIII", 1, 1, 2, 0) + struct.pack("<QQQ", 2 | 4 | 1 << 32, 2 | 4 | 1 << 32, 2 | 4 | 1 << 32)
    ],
    "lists that overlap": [
        message(
            SUBMIT,
            5 << 48,
            *[(4 - n) << 2 | 1 | (5 if n == 0 else 4) << 32 | 4096 << 35 for n in range(5)],
            *range(4096),
        )
    ],
}  # fmt: skip
"""Handmade messages by name."""


# --------------------------------------------------------------------------------------------- what decoders do with it

MAX_SECONDS = 5.0
"""CPU time of this process for one message. Messages take milliseconds; half a billion items take more."""

MAX_KILOBYTES = 200 << 10


def peak_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def is_refused_by(
    decode: Callable[[list[bytes]], object], error: type[Exception], frames: list[bytes], most_characters: int
) -> bool:
    """Whether `decode` rejects the message with this error, in one line, and with little work."""
    begun = time.process_time()
    try:
        decode(frames)
    except error as refusal:
        assert 0 < len(str(refusal)) < most_characters
        assert "\n" not in str(refusal)
        return True
    finally:
        assert time.process_time() - begun < MAX_SECONDS
    return False


def assert_mutations_are_refused(seed: int, is_refused: Callable[[list[bytes]], bool]) -> None:
    """Check that most mutations are rejected, and all others decode."""
    before = peak_kilobytes()
    refused = total = 0
    for made_of, frames in mutations(seed):
        total += 1
        try:
            refused += is_refused(frames)
        except Exception as error:
            raise AssertionError(f"{made_of}: {[frame.hex() for frame in frames]}") from error
    assert total // 2 < refused < total
    assert peak_kilobytes() - before < MAX_KILOBYTES


def assert_refused_in_little_memory(frames: list[bytes], is_refused: Callable[[list[bytes]], bool]) -> None:
    before = peak_kilobytes()
    assert is_refused(frames)
    assert peak_kilobytes() - before < MAX_KILOBYTES
