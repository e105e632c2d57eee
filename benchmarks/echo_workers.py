"""`python -m benchmarks.echo_workers ADDRESS COUNT [KEYS]`: fake workers that answer each task with its arguments."""

from __future__ import annotations

import sys

import zmq

from scaler_client.protocol.messages import Role

from .peers import Peer, echo
from .processes import allow_many_files


def main(address: str, count: int, keys: str) -> None:
    allow_many_files()
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, max(1000, 2 * count))
    poller = zmq.Poller()
    for _ in range(count):
        poller.register(Peer(context, address, Role.WORKER, keys).socket, zmq.POLLIN)
    print("ready", flush=True)
    while True:
        for socket, _events in poller.poll():
            answer = echo(socket.recv_multipart()[0])
            if answer is not None:
                socket.send(answer)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), "".join(sys.argv[3:]))
