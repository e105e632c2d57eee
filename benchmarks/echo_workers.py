"""`python -m benchmarks.echo_workers ADDRESS COUNT [KEYS]`: fake workers that answer each task with its arguments."""

from __future__ import annotations

import argparse
import time

import zmq

from scaler_client.protocol.messages import Heartbeat, HostResource, Role, WorkerHeartbeat

from .peers import Peer, echo
from .processes import allow_many_files


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("count", type=int)
    parser.add_argument("keys", nargs="?", default="")
    parser.add_argument("--heartbeats", action="store_true", help="send heartbeats, as idle workers and their agent do")
    parser.add_argument("--long-function", type=int, default=0, help="a function whose tasks pretend to take 100 ms")
    parser.add_argument("--gpus", type=int, default=0, help="say that the host of the workers has so many GPUs")
    arguments = parser.parse_args()
    allow_many_files()
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, max(1000, 2 * arguments.count))
    gpus = [HostResource("gpu", 1000 * arguments.gpus, True)] if arguments.gpus else []
    has_agent = arguments.heartbeats or arguments.gpus
    agent = Peer(context, arguments.address, Role.AGENT, arguments.keys, resources=gpus) if has_agent else None
    workers = [
        Peer(
            context,
            arguments.address,
            Role.WORKER,
            arguments.keys,
            agent=agent.incarnation if agent is not None else 0,
            waits=False,
        )
        for _ in range(arguments.count)
    ]
    poller = zmq.Poller()
    for worker in workers:
        worker.await_welcome()
        poller.register(worker.socket, zmq.POLLIN)
    heartbeats = None
    if agent is not None:
        poller.register(agent.socket, zmq.POLLIN)
        heartbeats = Heartbeats(agent, workers) if arguments.heartbeats else None
    print("ready", flush=True)
    while True:
        for socket, _events in poller.poll(None if heartbeats is None else heartbeats.send()):
            answer = echo(socket.recv_multipart()[0], arguments.long_function)
            if answer is not None:
                socket.send(answer)


class Heartbeats:
    """The heartbeats of idle workers, spread over their interval, and of their agent, which names them."""

    AGENT_SECONDS = 2.0
    WORKER_SECONDS = 10.0

    def __init__(self, agent: Peer, workers: list[Peer]) -> None:
        self._agent = agent
        self._workers = workers
        self._named = [WorkerHeartbeat(worker.incarnation, 50 << 20, 1000) for worker in workers]
        self._begun = time.monotonic()
        self._sent = 0
        self._sent_by_agent = 0

    def send(self) -> int:
        """Send the heartbeats that are due. Returns the milliseconds until the next one."""
        seconds = time.monotonic() - self._begun
        if seconds > self._sent_by_agent * self.AGENT_SECONDS:
            self._sent_by_agent += 1
            self._agent.send(Heartbeat(self._sent_by_agent, workers=self._named))
        count = len(self._workers)
        while self._sent < seconds * count / self.WORKER_SECONDS:
            self._workers[self._sent % count].send(Heartbeat(self._sent // count + 1))
            self._sent += 1
        return 10


if __name__ == "__main__":
    main()
