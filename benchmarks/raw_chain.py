"""The router and the worker of the raw ZeroMQ chain, which the round trip of one task is compared with.

    python -m benchmarks.raw_chain router [KEYS]            print its address; pass messages between two dealers
    python -m benchmarks.raw_chain worker ADDRESS [KEYS]    send every message back

KEYS is a folder with the keys of `scaler_scheduler keygen`: with it the chain is encrypted by CURVE.

It is plain pyzmq as in its documentation, without our tricks. The router runs under the scheduler's interpreter, which
has neither of our libraries.
"""

from __future__ import annotations

import sys
from pathlib import Path

import zmq

WORKER = b"worker"
CLIENT = b"client"


def route(keys: str = "") -> None:
    router: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
    if keys:
        router.setsockopt(zmq.CURVE_SERVER, 1)
        router.setsockopt(zmq.CURVE_SECRETKEY, _key(keys, "server.secret"))
    router.bind("tcp://127.0.0.1:*")
    print(router.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0"), flush=True)
    poller = zmq.Poller()
    poller.register(router, zmq.POLLIN)
    while True:
        poller.poll()
        sender, *frames = router.recv_multipart()
        router.send_multipart([CLIENT if sender == WORKER else WORKER, *frames])


def connect(address: str, identity: bytes, keys: str = "") -> zmq.Socket[bytes]:
    dealer: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    if keys:
        dealer.setsockopt(zmq.CURVE_SERVERKEY, _key(keys, "server.key"))
        dealer.setsockopt(zmq.CURVE_PUBLICKEY, _key(keys, "client.key"))
        dealer.setsockopt(zmq.CURVE_SECRETKEY, _key(keys, "client.secret"))
    dealer.setsockopt(zmq.IDENTITY, identity)
    dealer.setsockopt(zmq.LINGER, 0)
    dealer.connect(address)
    return dealer


def serve(address: str, keys: str = "") -> None:
    dealer = connect(address, WORKER, keys)
    while True:
        dealer.send_multipart(dealer.recv_multipart())


def _key(folder: str, name: str) -> bytes:
    """Read a key of 32 bytes: the last line of its file, in hexadecimal digits."""
    return bytes.fromhex(Path(folder, name).read_text().split()[-1])


if __name__ == "__main__":
    if sys.argv[1] == "router":
        route(*sys.argv[2:])
    else:
        serve(*sys.argv[2:])
