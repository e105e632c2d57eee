"""The router and the worker of the raw ZeroMQ chain, which the round trip of one task is compared with.

    python -m benchmarks.raw_chain router           print its address; pass messages between two dealers
    python -m benchmarks.raw_chain worker ADDRESS   send every message back

It is plain pyzmq as in its documentation, without our tricks. The router runs under the scheduler's interpreter, which
has neither of our libraries.
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
