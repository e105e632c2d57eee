"""The scheduler serves tasks while every use of pickle ends the process. Runs under PyPy and CPython."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import zmq
from tests.wire.vectors import BY_NAME

from scaler_scheduler.wire.schema import Message

POISON = '''
import sys, types

class Poison(types.ModuleType):
    """A module in place of pickle. pyzmq reads one number of it at import; any other attribute ends the process."""

    DEFAULT_PROTOCOL = 4

    def __getattribute__(self, name):
        if name == "__class__":
            return Poison
        if name in ("DEFAULT_PROTOCOL", "__spec__", "__name__"):
            return {"DEFAULT_PROTOCOL": 4, "__name__": "poison"}.get(name)
        import os
        sys.stderr.write(f"poison: {name} was looked up\\n")
        sys.stderr.flush()
        os._exit(99)

for name in ("pickle", "_pickle", "cPickle", "_compat_pickle", "cloudpickle", "dill", "marshal", "shelve"):
    sys.modules[name] = Poison(name)

from scaler_scheduler.daemon import loop
from scaler_scheduler.cli import main
sys.exit(main(sys.argv[1:]))
'''

SECONDS = 30


def receive(peer: zmq.Socket[bytes], kind: str) -> list[bytes]:
    assert peer.poll(SECONDS * 1000), f"no {kind} within {SECONDS} s"
    frames = peer.recv_multipart()
    message = Message.loads(frames[0])
    assert message.__which__() == getattr(Message.__tag__, kind), frames
    return frames


def serve_the_golden_tasks(address: str) -> None:
    """Send the golden messages, which fit a new scheduler's first client, worker and tasks."""
    context = zmq.Context()
    client, worker = context.socket(zmq.DEALER), context.socket(zmq.DEALER)
    try:
        for peer, name in ((client, "hello-client"), (worker, "hello-worker")):
            peer.linger = 0
            peer.connect(address)
            peer.send_multipart(BY_NAME[name].frames)
            receive(peer, "welcome")
        client.send_multipart(BY_NAME["function-from-client"].frames)
        client.send_multipart(BY_NAME["submit"].frames)
        assert receive(worker, "function") == BY_NAME["function-to-worker"].frames
        # The run time of the function is not known yet, so one task comes first, then the others.
        receive(worker, "dispatch")
        worker.send_multipart(BY_NAME["started-from-worker"].frames)
        assert receive(client, "started") == BY_NAME["started-to-client"].frames
        worker.send_multipart(BY_NAME["results"].frames)
        resolved = Message.loads(receive(client, "resolved")[0]).resolved
        assert list(resolved.ids) == [10]
        assert bytes(resolved.payload) == b"AAAA"
        receive(worker, "dispatch")
        worker.send_multipart(BY_NAME["results"].frames)
        resolved = Message.loads(receive(client, "resolved")[0]).resolved
        assert list(resolved.ids) == [11, 13]
        assert bytes(resolved.payload) == b"ERROR"
    finally:
        context.destroy(linger=0)


def test_tasks_without_pickle(tmp_path):
    address = f"ipc://{tmp_path}/scheduler"
    command = [sys.executable, "-c", POISON, address, "--monitor-address", f"ipc://{tmp_path}/monitor"]
    package = Path(sys.modules["scaler_scheduler"].__file__ or "").parents[1]
    log = tmp_path / "log"
    with open(log, "wb") as output:
        # With the nursery set the command does not execute itself again, which would remove the replaced pickle.
        environ = dict(os.environ, PYPY_GC_NURSERY="32M")
        process = subprocess.Popen(command, cwd=package, env=environ, stdout=output, stderr=subprocess.STDOUT)
    try:
        serve_the_golden_tasks(address)
        process.terminate()
        assert process.wait(SECONDS) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert b"was looked up" not in log.read_bytes()
    assert b"WARNING" not in log.read_bytes()


def test_replaced_pickle_ends_the_process(tmp_path):
    for module in ("pickle", "_pickle", "cloudpickle"):
        source = POISON.replace("from scaler_scheduler.daemon import loop", f"import {module}; {module}.loads")
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 99, done.stderr
        assert "poison: loads was looked up" in done.stderr
