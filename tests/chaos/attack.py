"""python -m tests.chaos.attack: an attacker beside honest clients under steady load, on a scheduler with keys.

The attacker has no key, a client's key, a worker's key and a monitor's key, in this order, for a quarter of the time
each. `--keys` selects some of the four. The attacker connects from 127.0.0.2, so that limits for each address do not
affect the honest peers. The number of messages in a burst is bounded.

Exit status 0 if every honest task was resolved once and correctly, and the scheduler still runs and has logged no
error; 1 otherwise. The attacks leave out what SECURITY.md allows a key, such as wrong results from a worker for its own
tasks.
"""

from __future__ import annotations

import argparse
import collections
import random
import secrets
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import zmq
import zmq.utils.z85
from tests.chaos.load import Outcome
from tests.chaos.processes import hosts, loads
from tests.fuzz.corpus import read_corpus
from tests.integration.commands import SchedulerCommand, key_command, scheduler

from scaler_client.commands.key_files import PeerKeys, read_peer_keys
from scaler_client.net.curve import apply_keys
from scaler_client.protocol import messages, wire
from scaler_client.protocol.messages import Role
from scaler_client.protocol.snapshot_decoder import SNAPSHOT_TOPIC
from scaler_client.protocol.snapshots import Snapshot

CLIENTS, HOSTS, WORKERS = 2, 1, 2
SOURCE = "127.0.0.2"
KEYS = ["none", "client", "worker", "monitor"]
BURST = 50
"""Messages, or connections, of one attack at the most."""
PAUSE_SECONDS = 0.05
"""Between two attacks."""
LAST_LINES = 60
"""Lines of the log that are printed if the scheduler has ended: its traceback."""
LONG_BYTES = 32 << 20
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00%s" + bytes(32)
READY = b"\x04\x29\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"


class Attacker:
    """The attacks by name. Each call is one attack and takes a limited time."""

    def __init__(self, daemon: SchedulerCommand, keys: str, chance: random.Random) -> None:
        self.daemon = daemon
        self.keys = keys
        self.chance = chance
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.victims = [1]
        """Incarnations of honest peers."""
        self.corpus = [
            content for target in ("scheduler_wire", "scheduler_core") for content in read_corpus(target).values()
        ]

    # ------------------------------------------------------------------------------------------------ without a key

    def raw(self, port: int, content: bytes, more: int = 0) -> None:
        """Send these bytes and this number of zeros, as far as the scheduler accepts them."""
        with socket.create_connection(("127.0.0.1", port), 5.0, (SOURCE, 0)) as connection:
            try:
                connection.sendall(content)
                connection.settimeout(0.2)
                while more > 0:
                    more -= connection.send(bytes(min(more, 1 << 20)))
            except OSError:
                pass  # cut, or held back

    def ports(self) -> list[int]:
        return [port_of(self.daemon.address), port_of(self.daemon.monitor_address)]

    def garbage(self) -> None:
        self.raw(self.chance.choice(self.ports()), self.chance.randbytes(self.chance.randrange(5000)))

    def half_handshake(self) -> None:
        greeting = GREETING % b"CURVE".ljust(20, b"\0")
        self.raw(self.chance.choice(self.ports()), greeting[: self.chance.randrange(len(greeting) + 1)])

    def long_frame(self) -> None:
        mechanism = self.chance.choice([b"CURVE", b"NULL"]).ljust(20, b"\0")
        flag = self.chance.choice([b"\2", b"\6"])
        length = struct.pack(">Q", self.chance.choice([LONG_BYTES, 1 << 40]))
        self.raw(self.chance.choice(self.ports()), GREETING % mechanism + flag + length, LONG_BYTES)

    def wrong_mechanism(self) -> None:
        self.raw(
            self.chance.choice(self.ports()), GREETING % b"NULL".ljust(20, b"\0") + READY + self.chance.randbytes(99)
        )

    def connections(self) -> None:
        made = []
        try:
            for _ in range(BURST):
                made.append(socket.create_connection(("127.0.0.1", self.chance.choice(self.ports())), 5.0, (SOURCE, 0)))
        finally:
            for each in made:
                each.close()

    def wrong_key(self) -> None:
        right = read_peer_keys(self.keys, "client")
        public, secret = (zmq.utils.z85.decode(each) for each in zmq.curve_keypair())
        server = right.server if self.chance.random() < 0.5 else secrets.token_bytes(32)
        with self.peer(PeerKeys("", "client", server, public, secret)) as peer:
            peer.send(b"let me in", zmq.NOBLOCK)
            peer.poll(100)

    # --------------------------------------------------------------------------------------------------- with a key

    def peer(self, keys: PeerKeys, kind: int = zmq.DEALER, is_monitor: bool = False) -> zmq.Socket[bytes]:
        peer = self.context.socket(kind)
        peer.setsockopt(zmq.LINGER, 200)
        apply_keys(peer, keys)
        port = port_of(self.daemon.monitor_address if is_monitor else self.daemon.address)
        peer.connect(f"tcp://{SOURCE}:0;127.0.0.1:{port}")
        return peer

    def burst(self, role: str, frames: Callable[[], list[bytes]], greets: bool = True) -> None:
        """Send a hello and then messages of one kind. Answers are ignored."""
        with self.peer(read_peer_keys(self.keys, role)) as peer:
            if greets:
                send(peer, encoded(self.hello(role, secrets.randbits(62) + 1)))
                peer.poll(500)
            for _ in range(self.chance.randrange(1, BURST)):
                send(peer, frames())
            while peer.poll(20):
                peer.recv_multipart()

    def hello(self, role: str, incarnation: int) -> messages.Hello:
        roles = [Role.CLIENT] if role == "client" else [Role.WORKER, Role.AGENT]
        # A kind that no function has, so this worker gets no tasks of other clients.
        kinds = ["nothing"]
        return messages.Hello(self.chance.choice(roles), incarnation, "3", "0", "host", 1, kinds=kinds)

    def message(self) -> messages.Message:
        """A message of any role, about tasks and objects of other peers."""
        victim = self.chance.choice(self.victims)
        ids = [self.chance.randrange(1 << 16) for _ in range(20)]
        name = (victim, ids[0], 1)
        chosen: list[messages.Message] = [
            messages.Cancel(ids),
            messages.Results([victim] * 20, ids, [1] * 20, [0] * 20, [1] * 20, [b"forged"] * 20),
            messages.Submit(ids, [7] * 20, [b"x"] * 20, inputs=ids, input_counts=[1] * 20),  # objects of others
            messages.ForgetObjects(ids, [victim] * 20),
            messages.Object(ids[0], [b"forged"], victim),
            messages.Started(ids, [victim] * 20, [1] * 20),
            messages.WorkerDied(victim, 1, "killed by an attacker", 0, *name),
            messages.Retracted([name], [0]),
            messages.Suspended([name]),
            messages.Resumed([name]),
            messages.ForgetFunctions(ids),
            messages.Submit(ids, [7] * 20, [b"x"] * 20),
            messages.Heartbeat(1, workers=[messages.WorkerHeartbeat(victim, 1, 1)]),
            messages.Shutdown(),
        ]
        return self.chance.choice(chosen)

    def of(self, role: str) -> dict[str, Callable[[], None]]:
        def replay() -> None:
            self.burst(role, lambda: encoded(self.hello(role, self.chance.choice(self.victims))), greets=False)

        return {
            f"{role}: hellos of others": replay,
            f"{role}: messages about others": lambda: self.burst(role, lambda: encoded(self.message())),
            f"{role}: messages without a hello": lambda: self.burst(
                role, lambda: encoded(self.message()), greets=False
            ),
            f"{role}: random bytes": lambda: self.burst(
                role, lambda: [self.chance.randbytes(self.chance.randrange(999))]
            ),
            f"{role}: of the fuzzer": lambda: self.burst(role, lambda: [self.chance.choice(self.corpus)]),
            f"{role}: heartbeats": lambda: self.burst(role, lambda: encoded(messages.Heartbeat(1))),
        }

    def subscriptions(self) -> None:
        with self.peer(read_peer_keys(self.keys, "monitor"), zmq.XSUB, True) as peer:
            for _ in range(BURST):
                send(peer, [self.chance.choice([b"\1", b"\0"]) + self.chance.randbytes(self.chance.randrange(40))])
            peer.poll(100)

    def stories(self) -> None:
        with self.peer(read_peer_keys(self.keys, "monitor"), zmq.XSUB, True) as peer:
            for _ in range(BURST):
                send(peer, [b"\1story\0\0\0" + self.chance.randbytes(16)])
            peer.poll(100)

    def of_monitor_at_router(self) -> None:
        with self.peer(read_peer_keys(self.keys, "monitor")) as peer:
            send(peer, encoded(self.message()))
            peer.poll(100)

    def false_nested_client(self) -> None:
        """Join with a worker's key as a client: in a worker that does not exist, or in one of a host without tasks."""
        keys = read_peer_keys(self.keys, "worker")
        with self.peer(keys) as worker, self.peer(keys) as nested:
            own = self.hello("worker", secrets.randbits(62) + 1)
            own.role = Role.WORKER
            if self.chance.random() < 0.5:
                send(worker, encoded(own))
                worker.poll(500)
            hello = self.hello("client", secrets.randbits(62) + 1)
            hello.worker = own.incarnation
            send(nested, encoded(hello))
            send(nested, encoded(messages.Heartbeat(1)))
            send(nested, encoded(messages.Submit([1], [7], [b"x"])))
            while nested.poll(500):
                answer = wire.decode(nested.recv_multipart())
                assert not isinstance(answer, messages.Welcome), "a worker's key has become a client"

    def phases(self) -> dict[str, dict[str, Callable[[], None]]]:
        """Attacks by their names, for each value of `--keys`."""
        none = (
            self.garbage,
            self.half_handshake,
            self.long_frame,
            self.wrong_mechanism,
            self.connections,
            self.wrong_key,
        )
        monitor = (self.subscriptions, self.stories, self.of_monitor_at_router)
        return {
            "none": {f"no key: {each.__name__.replace('_', ' ')}": each for each in none},
            "client": self.of("client"),
            "worker": {**self.of("worker"), "worker: false nested client": self.false_nested_client},
            "monitor": {f"monitor: {each.__name__.replace('_', ' ')}": each for each in monitor},
        }

    def find_victims(self) -> None:
        """The honest peers' incarnations, which every holder of a monitor's key can read."""
        with self.peer(read_peer_keys(self.keys, "monitor"), zmq.SUB, True) as peer:
            peer.subscribe(SNAPSHOT_TOPIC)
            if peer.poll(10_000):
                snapshot = wire.decode_published(peer.recv())
                assert isinstance(snapshot, Snapshot)
                self.victims = [*snapshot.client_columns.incarnations, *snapshot.worker_columns.incarnations]


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def encoded(message: messages.Message) -> list[bytes]:
    return [bytes(frame) for frame in wire.encode(message)]


def send(peer: zmq.Socket[bytes], frames: list[bytes]) -> None:
    try:
        peer.send_multipart(frames, zmq.NOBLOCK)
    except zmq.Again:
        pass  # cut, or not let in


def attack(
    attacker: Attacker, process: psutil.Process, seconds: float, keys: list[str]
) -> tuple[collections.Counter[str], int]:
    """Attack until the time is over or the scheduler has ended.

    Returns the number of attacks of each kind, and the most memory that the scheduler has had, in bytes.
    """
    made: collections.Counter[str] = collections.Counter()
    most = 0
    attacker.find_victims()
    phases = attacker.phases()
    for phase in [phases[key] for key in keys]:
        end = time.monotonic() + seconds / len(keys)
        while time.monotonic() < end and attacker.daemon.process.poll() is None:
            kind = attacker.chance.choice(list(phase))
            try:
                phase[kind]()
            except OSError:
                kind += " (kept out)"
            made[kind] += 1
            most = max(most, process.memory_info().rss)
            time.sleep(PAUSE_SECONDS)
    return made, most


def run(folder: Path, seconds: float, seed: int, attackers: list[str]) -> bool:
    keys = str(folder / "keys")
    key_command("keygen", keys)
    log = folder / "executions"
    log.touch()
    options = ("--keys", keys, "--monitor-address", "tcp://127.0.0.1:*")
    with scheduler(folder, *options) as daemon, hosts(folder, daemon.address, keys, HOSTS, WORKERS):
        with loads(folder, daemon.address, keys, log, CLIENTS, seed) as clients:
            for client in clients:
                client.wait_ready()
            process = psutil.Process(daemon.process.pid)
            before = process.memory_info().rss
            made, most = attack(Attacker(daemon, keys, random.Random(seed)), process, seconds, attackers)
            if daemon.process.poll() is not None:
                print("the end of the scheduler's log:", *daemon.log().splitlines()[-LAST_LINES:], sep="\n", flush=True)
            for client in clients:
                client.stop()
            outcomes = [client.finish()[0] for client in clients]
            after = process.memory_info().rss
        lives = daemon.process.poll() is None
        errors = [line for line in daemon.log().splitlines() if "[ERROR]" in line or "Traceback" in line]
    return tell(made, outcomes, (before, most, after), errors, lives)


def tell(
    made: collections.Counter[str], outcomes: list[Outcome], memory: tuple[int, ...], errors: list[str], lives: bool
) -> bool:
    for kind, count in sorted(made.items()):
        print(f"{count:8,} attacks, {kind}")
    wrong = [line for each in outcomes for line in (*each.lost, *each.wrong, *each.failed, *each.resolved_twice)]
    print(f"{sum(each.submitted for each in outcomes):8,} honest tasks, {sum(each.done for each in outcomes):,} right")
    print(f"{sum(each.graphs for each in outcomes):8,} honest graphs")
    print("scheduler's memory before, at most, after: " + ", ".join(f"{each / 1e6:.0f} MB" for each in memory))
    for line in [*wrong, *errors]:
        print(f"ERROR: {line}")
    if not lives:
        print("ERROR: the scheduler has ended")
    return lives and not wrong and not errors


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.chaos.attack", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the attack lasts (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of what is chosen by chance (default: drawn, and printed)")
    parser.add_argument(
        "--keys", choices=KEYS, action="append", help="a key that the attacker has; may be repeated (default: all)"
    )
    parsed = parser.parse_args()
    seed = parsed.seed or secrets.randbelow(1 << 30) + 1
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="scaler-attack-") as folder:
        return 0 if run(Path(folder), parsed.seconds, seed, parsed.keys or KEYS) else 1


if __name__ == "__main__":
    sys.exit(main())
