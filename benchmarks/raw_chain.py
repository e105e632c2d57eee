"""The raw ZeroMQ chain that a single task's round trip is compared with, in its processes other than the client's.

    python -m benchmarks.raw_chain router           prints its address; passes messages between its two dealers
    python -m benchmarks.raw_chain worker ADDRESS   sends every message back

Plain pyzmq as its documentation has it, without any of our tricks: what a user would write to move these bytes. The
router runs under the scheduler's interpreter, which has neither of our libraries.
"""

from __future__ import annotations

import sys

import zmq

WORKER = b"worker"
CLIENT = b"client"


def route() -> None:
    router: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
    router.bind("tcp://127.0.0.1:*")
    print(router.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0"), flush=True)
    poller = zmq.Poller()
    poller.register(router, zmq.POLLIN)
    while True:
        poller.poll()
        sender, *frames = router.recv_multipart()
        router.send_multipart([CLIENT if sender == WORKER else WORKER, *frames])


def connect(address: str, identity: bytes) -> zmq.Socket[bytes]:
    dealer: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    dealer.setsockopt(zmq.IDENTITY, identity)
    dealer.setsockopt(zmq.LINGER, 0)
    dealer.connect(address)
    return dealer


def serve(address: str) -> None:
    dealer = connect(address, WORKER)
    while True:
        dealer.send_multipart(dealer.recv_multipart())


if __name__ == "__main__":
    if sys.argv[1] == "router":
        route()
    else:
        serve(sys.argv[2])
