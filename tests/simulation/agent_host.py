"""A compute host: the real agent session, a state page, and worker processes that the session starts and ends."""

from __future__ import annotations

import pickle
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from scaler_client.commands.object_files import ObjectName
from scaler_client.environments.manifest import digest_of
from scaler_client.protocol.messages import (
    DataAddress,
    ForgetObjects,
    Heartbeat,
    Hello,
    Message,
    NoObject,
    Object,
    ObjectChunk,
    Payload,
    Role,
    Transferred,
    WorkerHeartbeat,
)
from scaler_client.protocol.wire import decode, encode
from scaler_worker.agent import data_server
from scaler_worker.agent.downloads import TransferAnswers
from scaler_worker.agent.effects import (
    AskSource,
    CloseSource,
    DropPart,
    Effect,
    Exit,
    FinishFile,
    LinkFile,
    Log,
    MarkObjectLost,
    MeasureMemory,
    PrepareEnvironment,
    RemoveEnvironment,
    RemoveObjects,
    Send,
    SendHeartbeat,
    SendObjects,
    SignalWorker,
    StartWorker,
    StoreContents,
    WriteObject,
    WritePart,
)
from scaler_worker.agent.session import AgentSession, AgentSettings, HostAccess
from scaler_worker.agent.worker_table import beside_slots
from scaler_worker.fork_server.process_events import ProcessEnded
from scaler_worker.fork_server.state_page import StatePage

from .client_files import SimulatedFiles, chunk_of
from .clock import Process
from .host_files import HostFiles
from .network import Frames
from .plan import host_resources
from .worker_host import WorkerHost

if TYPE_CHECKING:
    from .world import World

START_SECONDS = 0.03
"""The longest that a worker process takes to start."""

MEMORY_LIMIT_BYTES = 1 << 29

FULL_SECONDS = 3.0
"""Some hosts have no room for values for so long, and room again for so long."""

RETIRE_SECONDS = 5.0

NO_SPACE = "no space left on the host"


LATE_SECONDS = (0.1, 3.0, 7.0)
"""The longest that a late agent takes to connect in addition. Its workers may join before it, and the last one is too
late."""


class AgentHost:
    def __init__(self, world: World, name: str, workers: int, capabilities: dict[str, int]) -> None:
        self.world = world
        self.name = name
        self.capabilities = capabilities
        self.process = Process(world.clock, name)
        self.incarnation = world.draw_incarnation()
        self.workers: dict[int, WorkerHost] = {}
        """Living worker processes, by incarnation."""
        self.page = StatePage(workers + beside_slots(workers))
        self.files: HostFiles = HostFiles()
        self.is_full = world.is_full_host()
        """Whether some objects find no space."""
        self.is_gone = False
        self.latency_factor = world.latency_factor()
        """The latency of all connections of this host, relative to the network's."""
        pause = _pause(self.incarnation) if world.plan.has_late_agents else 0.0
        self.link = world.network.open(name, self._arrived, self.latency_factor, pause)
        self.link.reconnected = self._reconnected
        # Most hosts have a data address. No random number is drawn for it.
        address = f"sim://{self.incarnation}" if self.incarnation % 4 else ""
        self.data = DataAddress(address, "", str(self.incarnation))
        self._parts: dict[ObjectName, dict[int, WritePart]] = {}
        """Files that come from other hosts: their chunks by offset."""
        hello = Hello(
            Role.AGENT, self.incarnation, "3", "0", name, world.next_pid(), name, data=self.data,
            resources=host_resources(capabilities), slots=workers, environments=1,
        )  # fmt: skip
        self._contents: set[str] = set()
        """The contents of environments in the host's cache."""
        self._prepared: set[str] = set()
        self._fetched: deque[ObjectName] = deque()
        """Objects that the scheduler has asked for and that were not sent yet."""
        self.names = [f"{name}-{number}" for number in range(workers)]
        now = world.clock.now
        plan = world.plan
        settings = AgentSettings(
            "sim",
            self.names,
            plan.heartbeat_seconds,
            plan.death_timeout_seconds,
            MEMORY_LIMIT_BYTES,
            RETIRE_SECONDS,
            "modules",
            plan.has_little_room,
        )
        access = HostAccess(
            world.draw_incarnation,
            self.page.read,
            is_sending=lambda: bool(self._fetched),
            list_files=self.files.names,
            has_file=lambda name: (
                isinstance(self.files.find(name), Sequence) and type(self.files.find(name)) is not str
            ),
            can_link=lambda name: self._client_frames(name) is not None,
            has_room=lambda size, coming: not coming or self._chance.random() < 0.8,
            missing_contents=lambda names: [each for each in names if each not in self._contents],
        )
        self.session = AgentSession(hello, settings, access, now)
        self._chance: random.Random = world.chance
        self._deadline = 0.0
        self._answers = TransferAnswers()
        self._inbox: list[Message] = []
        self._do(self.session.start(now))
        self._watch_deadline()

    # -------------------------------------------------------------------------------------------- what happens to it

    def kill_worker(self, worker: WorkerHost, status: int = -9) -> None:
        """End a worker's process. Its agent learns of it in a moment."""
        if not worker.is_alive:
            return
        worker.die(lingers=False, is_reported=self.reports_deaths)
        self.worker_left(worker, status)

    @property
    def reports_deaths(self) -> bool:
        """Whether the scheduler learns of the death of a worker."""
        return self.process.is_alive and self.session.is_serving and not self.world.plan.has_late_agents

    def kill(self) -> None:
        """Switch the host off."""
        self.world.trace.note(self.name, "is switched off")
        for worker in list(self.workers.values()):
            worker.die(lingers=False)
        self._end(lingers=False)

    def kill_agent(self) -> None:
        """End the agent's process alone. Its workers notice it and end."""
        self.world.trace.note(self.name, "loses its agent")
        self.process.kill()
        self.link.close(lingers=False)
        self.is_gone = True
        self.world.clock.after(self._chance.uniform(0.0, 0.1), self.files.remove_all)  # by the fork server
        for worker in self.workers.values():
            worker.process.later(self._chance.uniform(0.0, 1.0), partial(worker.die, lingers=False))

    def kill_fork_server(self) -> None:
        """End the fork server, and with it the worker processes, which are killed with their parent."""
        if not self.process.is_alive:
            return
        self.world.trace.note(self.name, "loses its fork server")
        for worker in list(self.workers.values()):
            worker.die(lingers=False)
        self.workers.clear()
        self.process.later(self._chance.uniform(0.0, 0.005), lambda: self._do(self.session.fork_server_lost()))

    def has_space(self) -> bool:
        """Whether there is space for the next object."""
        return not (self.is_full and self._chance.random() < 0.5)

    def stop(self) -> None:
        """Stop the agent as SIGTERM does."""
        if self.process.is_alive:
            self.world.trace.note(self.name, "is told to stop")
            # Some at once, others when the running task has ended. No draw decides it, because a draw would change all
            # seeds.
            end = self.session.retire if self.incarnation % 4 == 0 else self.session.stop
            self.process.later(0.0, lambda: self._do(end("SIGTERM", self.world.clock.now)))

    def freeze(self) -> None:
        """All processes of the host."""
        self.world.trace.note(self.name, "is frozen")
        for process in self._processes():
            process.freeze()

    def thaw(self) -> None:
        self.world.trace.note(self.name, "thaws")
        for process in self._processes():
            process.thaw()

    def links(self) -> list[Any]:
        links = [self.link]
        for worker in self.workers.values():
            links += worker.links()
        return links

    def _processes(self) -> list[Process]:
        return [self.process, *(worker.process for worker in self.workers.values())]

    # --------------------------------------------------------------------------------------------------------- inside

    def _arrived(self, frames: Frames) -> None:
        self._inbox.append(decode(list(frames)))
        self.process.later(self._chance.uniform(0.0, 0.001), self._read)

    def _reconnected(self) -> None:
        self.process.later(0.0, lambda: self._do(self.session.connected(self.world.clock.now)))

    def _read(self) -> None:
        inbox, self._inbox = self._inbox, []
        for message in inbox:
            self._do(self.session.received(message, self.world.clock.now))
        self._tick()

    def _tick(self) -> None:
        self._do(self.session.tick(self.world.clock.now))
        if self.process.is_alive:
            self._watch_deadline()

    def _watch_deadline(self) -> None:
        now = self.world.clock.now
        at = self.session.deadline()
        if self._deadline <= now or at < self._deadline:
            self._deadline = at
            self.process.later(max(0.001, at - now), lambda: self._due(at))

    def _due(self, at: float) -> None:
        if self._deadline == at:
            self._tick()

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._actions[type(effect)](self, effect)

    def _send_message(self, effect: Send) -> None:
        if isinstance(effect.message, Transferred):
            self._answer(effect.message)
        else:
            self._send(effect.message)

    def _answer(self, answer: Transferred) -> None:
        """Send an answer with others of the same round of the agent's poll loop."""
        if not self._answers.is_empty:
            self.world.trace.count("answers for several files")
        else:
            self.process.later(self._chance.choice((0.0001, 0.003, 0.05)), self._send_answers)
        self._answers.add(answer)

    def _send_answers(self) -> None:
        for answer in self._answers.take():
            self._send(answer)

    def _send(self, message: Message) -> None:
        self.world.trace.note(self.name, "sends", message)
        copies = self.world.network.copies(type(message).__name__)
        self.link.send([bytes(frame) for frame in encode(message)], copies)

    def _beat(self, beat: SendHeartbeat) -> None:
        workers = [WorkerHeartbeat(incarnation, 1, 1) for incarnation, _ in beat.workers]
        heartbeat = Heartbeat(beat.sequence, 1, 1, workers, beat.lag_microseconds, beat.is_retiring)
        if self._is_full_of_values():
            self.world.trace.count("heartbeats of hosts that are full of values")
            heartbeat.memory_bytes, heartbeat.memory_limit_bytes = MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES
        self.link.send([bytes(frame) for frame in encode(heartbeat)])

    def _is_full_of_values(self) -> bool:
        """Some hosts are always full of values, others now and then. No draw decides it: it would change all seeds."""
        kind = self.incarnation % 4 if self.world.plan.has_little_room else 0
        return kind == 1 or (kind == 2 and int(self.world.clock.now / FULL_SECONDS) % 2 == 1)

    def _measure(self, measure: MeasureMemory) -> None:
        sizes = {
            incarnation: self.workers[incarnation].resident_bytes
            for incarnation, _ in measure.workers
            if incarnation in self.workers
        }
        self._do(self.session.measured(sizes))

    def _start_worker(self, start: StartWorker) -> None:
        self.process.later(self._chance.uniform(0.001, START_SECONDS), lambda: self._started(start))

    def _started(self, start: StartWorker) -> None:
        worker = WorkerHost(self.world, self, start.slot, start.name, start.incarnation, start.environment)
        if start.environment:
            self.world.trace.count("workers of environments")
        self.workers[start.incarnation] = worker
        self._do(self.session.worker_started(start.incarnation, worker.pid, self.world.clock.now))

    def _store_contents(self, effect: StoreContents) -> None:
        names = [digest_of(content) for content in effect.payloads]
        self._contents.update(names)
        self._later(lambda: self.session.contents_stored(names, "", self.world.clock.now))

    def _prepare(self, effect: PrepareEnvironment) -> None:
        """Write the modules of an environment. Sometimes a content was changed before: it is got again."""
        missing: list[str] = []
        if effect.name not in self._prepared:
            self._prepared.add(effect.name)
            if self._chance.random() < 0.2 and self._contents:
                missing = [min(self._contents)]
                self._contents.difference_update(missing)
                self.world.trace.count("contents that were changed in a cache")
        self._later(lambda: self.session.environment_prepared(effect.name, "", missing, self.world.clock.now))

    def _later(self, step: Callable[[], list[Effect]]) -> None:
        """Do something after the time that a disk takes."""

        def act() -> None:
            self._do(step())
            self._tick()

        self.process.later(self._chance.choice((0.0002, 0.003, 0.1)), act)

    def _end_worker(self, end: SignalWorker) -> None:
        worker = self.workers.get(end.incarnation)
        if worker is None:
            return
        if end.kill:
            self.world.trace.count("workers killed by their agents")
            self.kill_worker(worker)
        else:
            worker.stop()

    def worker_left(self, worker: WorkerHost, status: int) -> None:
        """Handle the end of a worker's process. The agent notices it after a short time."""
        self.workers.pop(worker.incarnation, None)
        ended = ProcessEnded(worker.slot, worker.incarnation, worker.pid, status, peak_bytes=1 << 20)

        def tell() -> None:
            effects = self.session.worker_ended(ended, self.world.clock.now)
            self.page.clear(worker.slot)
            self._do(effects)
            self._tick()

        self.process.later(self._chance.uniform(0.0, 0.005), tell)

    def _write_object(self, write: WriteObject) -> None:
        if not self.has_space():
            self.world.trace.count("objects without space")
            self._do(self.session.object_written(write.name, NO_SPACE))
            return
        self.world.trace.count("objects as files")
        self.files.write(write.name, write.frames)
        self._do(self.session.object_written(write.name))

    def _client_frames(self, name: ObjectName) -> Sequence[Payload] | None:
        """The contents of the file of a client on this host."""
        files = self.world.client_files.get(name[0])
        return None if files is None else files.find(name, self.name)

    def _link_file(self, link: LinkFile) -> None:
        """Link the file of a client on this host. The agent's thread may have other work before."""
        frames = self._client_frames(link.name)
        is_linked = frames is not None and self.has_space()
        if is_linked and frames is not None:
            self.world.trace.count("files of clients that agents have linked")
            self.files.write(link.name, frames)

        def tell() -> None:
            self._do(self.session.file_linked(link.name, is_linked, self.world.clock.now))
            self._tick()

        self.process.later(0.001, tell)

    def _remove_objects(self, remove: RemoveObjects) -> None:
        self.files.remove(remove.names)
        if self._is_full_of_values():
            self.session.tell_room(self.world.clock.now)

    def _send_objects(self, effect: SendObjects) -> None:
        for name in effect.names:
            self._fetched.append(name)
            self.process.later(self._chance.choice((0.0, 0.002, 0.05)), self._send_object)
        self.world.reached("a result is fetched", self)

    def _send_object(self) -> None:
        client, object_id = name = self._fetched.popleft()
        found = self.files.find(name)
        if found is None or isinstance(found, str):
            self.world.trace.count("kept results missed by their agent")
            self._send(ForgetObjects([object_id], [client]))
        else:
            self.world.trace.count("kept results fetched")
            self._send(Object(object_id, list(found), client))
        self._tick()

    # ----------------------------------------------------------------------------------------------- files from hosts

    def _ask_source(self, ask: AskSource) -> None:
        chance = self._chance
        clients = self.world.client_files.values()
        source = next((each for each in (*self.world.living_hosts(), *clients) if each.data == ask.source), None)
        is_cut_off = source is None or (source.incarnation ^ self.incarnation) % 8 == 1
        # Chunks are lost only while faults occur: each costs SILENCE_SECONDS.
        if is_cut_off or (chance.random() < 0.01 and self.world.clock.now < self.world.calm_at):
            self.world.trace.count("chunks that nobody answers")
            return
        assert source is not None
        delay = self.world.plan.link_faults.latency * chance.uniform(0.5, 2.0)
        until = self.world.clock.now + data_server.WAIT_SECONDS
        serve = source._serve if isinstance(source, AgentHost) else partial(self._serve_from, source)
        self.world.clock.after(delay, lambda: source.process.later(0.0, lambda: serve(ask, self, until)))

    def _serve_from(self, files: SimulatedFiles, ask: AskSource, asker: AgentHost, until: float) -> None:
        """Let a client answer this host."""
        answer = files.answer(ask.message)
        self.world.trace.count("chunks of clients" if isinstance(answer, ObjectChunk) else "files that clients lack")
        self._deliver(ask, asker, answer)

    def _deliver(self, ask: AskSource, asker: AgentHost, answer: Message) -> None:
        delay = self.world.plan.link_faults.latency * self._chance.uniform(0.5, 2.0)
        self.world.clock.after(delay, lambda: asker.process.later(0.0, lambda: asker._answered(ask.source, answer)))

    def _serve(self, ask: AskSource, asker: AgentHost, until: float) -> None:
        """Answer another host that asks for a chunk."""
        request = ask.message
        name = request.client, request.id
        found = self.files.find(name)
        answer: Message = NoObject(*name, "there is no such file")
        part = self._parts.get(name, {}).get(request.offset)
        if found is None and part is not None:
            self.world.trace.count("chunks of files that are still on their way")
            answer = ObjectChunk(*name, request.offset, part.file_bytes, part.payload)
        elif found is None and self.world.clock.now < until:
            self.world.clock.after(0.01, lambda: self.process.later(0.0, lambda: self._serve(ask, asker, until)))
            return
        elif found is not None and not isinstance(found, str):
            answer = chunk_of(found, request)
        self._deliver(ask, asker, answer)

    def _answered(self, source: DataAddress, answer: Message) -> None:
        self._do(self.session.data_received(source, answer, self.world.clock.now))
        self._tick()

    def _write_part(self, write: WritePart) -> None:
        if not self.has_space():
            self._parts.pop(write.name, None)
            self._do(self.session.part_failed(write.name, NO_SPACE))
            return
        self._parts.setdefault(write.name, {})[write.offset] = write

    def _finish_file(self, finish: FinishFile) -> None:
        answer = finish.answer
        if finish.name in self._parts:
            self.world.trace.count("files from host to host")
            parts = sorted(self._parts.pop(finish.name).items())
            self.files.write(finish.name, pickle.loads(b"".join(part.payload for _, part in parts)))
        else:
            answer = replace(answer, error="a part of it could not be written")
        self._answer(answer)
        self.world.reached("a result is fetched", self)

    def _exit(self, effect: Exit) -> None:
        self.world.trace.note(self.name, "exits", str(effect.status))
        for worker in list(self.workers.values()):
            worker.die(lingers=False)
        self._end(lingers=True)

    def _end(self, lingers: bool) -> None:
        self.workers.clear()
        self.process.kill()
        self.link.close(lingers)
        self.is_gone = True
        self.files.remove_all()

    def _log(self, effect: Log) -> None:
        self.world.trace.note(self.name, "logs:", effect.text)

    _actions: dict[type, Callable[[AgentHost, Any], None]] = {
        Send: _send_message,
        SendHeartbeat: _beat,
        MeasureMemory: _measure,
        StartWorker: _start_worker,
        StoreContents: _store_contents,
        PrepareEnvironment: _prepare,
        RemoveEnvironment: lambda self, effect: None,
        SignalWorker: _end_worker,
        WriteObject: _write_object,
        MarkObjectLost: lambda self, effect: self.files.write(effect.name, effect.reason),
        RemoveObjects: _remove_objects,
        SendObjects: _send_objects,
        AskSource: _ask_source,
        CloseSource: lambda self, effect: None,
        WritePart: _write_part,
        LinkFile: _link_file,
        FinishFile: _finish_file,
        DropPart: lambda self, effect: self._parts.pop(effect.name, None),
        Log: _log,
        Exit: _exit,
    }


def _pause(incarnation: int) -> float:
    """The pause before an agent of this incarnation connects: for a third of the hosts. No draw decides it, because a
    draw would change all seeds."""
    if incarnation % 3:
        return 0.0
    return (incarnation % 1000) / 1000 * LATE_SECONDS[incarnation // 3 % len(LATE_SECONDS)]
