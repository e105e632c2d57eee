"""The checks for implementers (make conformance) with our scheduler, clients and workers, and those in C++."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conformance.calls import Call
from tests.conformance.exchange import Exchange
from tests.conformance.findings import Findings, WrongError
from tests.conformance.listener import Listener
from tests.conformance.messages import Received
from tests.conformance.of_agent import AgentConversation
from tests.conformance.of_client_files import ClientFileChecks
from tests.conformance.of_environments import EnvironmentChecks
from tests.conformance.of_results import ResultChecks
from tests.conformance.of_scheduler import SchedulerConversation
from tests.conformance.of_worker import WorkerConversation
from tests.conformance.peer import Peer
from tests.conformance.run import check_peer, main
from tests.conformance.scripted import ForgetfulScheduler, ScriptedClient, ScriptedWorker
from tests.conformance.scripted_agent import ScriptedAgent
from tests.integration.commands import cluster, key_command, scheduler
from tests.interop.cpp_programs import cpp_client, cpp_worker

from scaler_client import Client
from scaler_client.commands.key_files import read_peer_keys

SECONDS = 30.0
OFTEN = ("--heartbeat-interval-seconds", "0.5")


@pytest.fixture
def findings() -> Findings:
    return Findings()


@pytest.fixture
def listener(findings: Findings) -> Iterator[Listener]:
    listener = Listener("tcp://127.0.0.1:*", findings)
    yield listener
    listener.close()


@pytest.fixture
def keys(tmp_path: Path) -> str:
    folder = str(tmp_path / "keys")
    key_command("keygen", folder)
    return folder


@pytest.fixture
def guarded(findings: Findings, keys: str) -> Iterator[Listener]:
    listener = Listener("tcp://127.0.0.1:*", findings, keys)
    yield listener
    listener.close()


@pytest.mark.parametrize(
    "arguments, wanted",
    [
        ([], "give ADDRESS=tcp://HOST:PORT, "),
        (["--address", "tcp://127.0.0.1:1", "--scheduler", "tcp://127.0.0.1:1"], "give ADDRESS=tcp://HOST:PORT, "),
        (["--scheduler", "foo"], "bad address 'foo'"),
        (["--address", "tcp://foo"], "bad address 'tcp://foo'"),
        (["--address", "tcp://192.0.2.1:1"], "cannot listen at tcp://192.0.2.1:1: "),
        (["--scheduler", "tcp://127.0.0.1:1", "--keys", "/nowhere"], "there is no folder of keys at /nowhere"),
        (
            ["--address", "tcp://127.0.0.1:*", "--call", "add [1, 2]"],
            "argument --call: 'add [1, 2]' is not KIND PAYLOAD, as in: named json add [1, 2]",
        ),
    ],
)
def test_wrong_arguments(arguments: list[str], wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1) and err.startswith(f"conformance: {wanted}")


def test_our_scheduler(tmp_path: Path, findings: Findings) -> None:
    with scheduler(tmp_path) as daemon:
        SchedulerConversation(daemon.address, findings).run()
    assert not findings.wrong
    assert len(findings.right) > 30


@pytest.mark.parametrize(
    ("unsaid", "found"),
    [
        ("none of them", []),
        (
            "fetchObjects",
            ["fetchObjects to its client", "if a transfer fails", "the value of a file", "fails: fetchObjects"],
        ),
        ("forgetObjects", ["frees the object", "removes the files of both hosts", "hears it", "to the client and to"]),
        ("transferObjects", ["a reader on another host: transferObjects", "a reader: transferObjects with the data"]),
        ("object", ["objects are sent before the task", "fetchObjects brings the value", "a worker without an agent"]),
    ],
)
def test_a_schedulers_mistake_with_results_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, findings: Findings, unsaid: str, found: list[str]
) -> None:
    if found:  # what is said at all comes sooner; else it counts as unsaid, which only adds findings
        monkeypatch.setattr("tests.conformance.peer.WAIT_SECONDS", 0.5)
    with scheduler(tmp_path) as daemon, ForgetfulScheduler(daemon.address, unsaid) as forgetful:
        ResultChecks(Exchange(forgetful.address, findings)).run()
        ClientFileChecks(Exchange(forgetful.address, findings)).run()
    assert all(any(text in line for line in findings.wrong) for text in found), findings.wrong
    assert bool(findings.wrong) == bool(found), findings.wrong


@pytest.mark.parametrize(
    ("unsaid", "found"),
    [
        ("none of them", []),
        ("contentsWanted", ["asks the client for the contents"]),
        ("environment", ["gets the environment with its manifest", "with environmentFailed"]),
        ("contents", ["gets the contents that it asks for"]),
        ("changeWorker", ["changeWorker names an idle one"]),
        ("dispatch", ["the worker of the environment gets its tasks"]),
        ("resolved", ["the worker of the environment gets its tasks", "with environmentFailed"]),
        ("error", ["not the SHA-256 of the manifest"]),
    ],
)
def test_a_schedulers_mistake_with_environments_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, findings: Findings, unsaid: str, found: list[str]
) -> None:
    if found:
        monkeypatch.setattr("tests.conformance.peer.WAIT_SECONDS", 0.5)
        monkeypatch.setattr("tests.conformance.of_environments.CHANGE_SECONDS", 1.5)
    with scheduler(tmp_path) as daemon, ForgetfulScheduler(daemon.address, unsaid) as forgetful:
        EnvironmentChecks(Exchange(forgetful.address, findings)).run()
    assert all(any(text in line for line in findings.wrong) for text in found), findings.wrong
    assert bool(findings.wrong) == bool(found), findings.wrong


def test_our_worker(tmp_path: Path, findings: Findings, listener: Listener) -> None:
    with cluster(tmp_path, listener.address, 1, *OFTEN):
        check_peer(listener, findings, seconds=SECONDS)
    assert not findings.wrong + findings.left_out
    assert len(findings.right) > 20


def test_our_worker_with_keys_and_functions_by_name(
    tmp_path: Path, findings: Findings, guarded: Listener, keys: str
) -> None:
    quick, slow = Call("named json sqrt", b"", b"[4]"), Call("named json wait", b"", b"[60]")
    with cluster(tmp_path, guarded.address, 1, "--keys", keys, "--offer", "math:sqrt,wait=time:sleep", *OFTEN):
        check_peer(guarded, findings, quick, slow, seconds=SECONDS)
    assert not findings.wrong + findings.left_out
    assert sum("[Security]" in line for line in findings.right) > 1


@pytest.mark.timeout(300)  # the first of its tests compiles it
def test_the_worker_in_cpp(tmp_path: Path, findings: Findings, listener: Listener) -> None:
    never = json.dumps([str(tmp_path / "never"), str(tmp_path / "runs")]).encode()
    quick, slow = Call("named json add", b"", b"[1,2]"), Call("named json until", b"", never)
    with cpp_worker(tmp_path, listener.address):
        check_peer(listener, findings, quick, slow, seconds=SECONDS)
    assert not findings.wrong + findings.left_out


def submit_and_wait(address: str) -> None:
    with Client(address, heartbeat_interval_seconds=0.5) as client:
        futures = [client.submit(pow, number, 2) for number in range(25)]
        readers = [client.submit(pow, future, 2) for future in futures[:3]]
        kept = client.options(keep=True).submit(pow, 2, 2)
        for future in [*futures[:2], *futures[3:], *readers[:2], kept]:
            assert future.result(4 * SECONDS) is None
        for lost in (futures[2], readers[2]):
            with pytest.raises(CancelledError):
                lost.result(4 * SECONDS)


def test_our_client(findings: Findings, listener: Listener) -> None:
    thread = threading.Thread(target=submit_and_wait, args=(listener.address,))
    thread.start()
    check_peer(listener, findings, seconds=SECONDS)
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert not findings.wrong


def test_the_client_in_cpp(findings: Findings, listener: Listener) -> None:
    with cpp_client(listener.address) as client:
        client.say("many json add 25", "read 0 json same []", "keep json add [1, 2]", "read 1,2 json same []")
        client.say("keep json add [3, 4]", "read 26,28 json same []", "read 3,28 json same []", "fetch 26", "forget 26")
        end = threading.Thread(target=client.end)
        end.start()
        check_peer(listener, findings, seconds=SECONDS)
        end.join(SECONDS)
        assert not end.is_alive()
    assert not findings.wrong + findings.left_out
    assert "fetched 26 null" in client.seen
    assert client.resolved[25] == client.resolved[27] == ("value", "null")
    assert client.resolved[28][0] == "cancelled"
    assert client.resolved[29][0] == client.resolved[30][0] == "inputLost"


def test_the_client_in_cpp_with_keys(findings: Findings, guarded: Listener, keys: str) -> None:
    with cpp_client(guarded.address, "--keys", keys) as client:
        client.say("many json add 25")
        end = threading.Thread(target=client.end)
        end.start()
        check_peer(guarded, findings, seconds=SECONDS)
        end.join(SECONDS)
        assert not end.is_alive()
    assert not findings.wrong


@pytest.mark.parametrize(
    ("spoilt", "with_what", "found"),
    [
        ("client", "worker", "a client has the key of worker, which is a worker's key"),
        ("client", "stranger", "is not in "),
        ("server", "worker", "no CURVE handshake with the key of "),
    ],
)
def test_wrong_keys_are_found(
    tmp_path: Path, findings: Findings, guarded: Listener, keys: str, spoilt: str, with_what: str, found: str
) -> None:
    key_command("keygen", str(tmp_path / "stranger"), "--as", "client")
    wrong = shutil.copytree(keys, tmp_path / "wrong")
    for suffix in (".key", ".secret"):
        there = tmp_path / "stranger" / f"client{suffix}" if with_what == "stranger" else wrong / f"{with_what}{suffix}"
        shutil.copy(there, wrong / f"{spoilt}{suffix}")
    peer = Peer(guarded.address, "client", read_peer_keys(str(wrong), "client"))
    try:
        peer.hello()
        check_peer(guarded, findings, seconds=SECONDS)
        guarded.close()
        if "key of worker" in found:
            assert peer.expect("refused").fields["reason"] == "notAuthorized"
    finally:
        peer.close()
    assert len(findings.wrong) == 1 and found in findings.wrong[0], findings.wrong


def test_a_peer_with_keys_is_reported_if_the_run_has_none(
    listener: Listener, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with_keys, without = Peer(listener.address, "client", read_peer_keys(keys, "client")), None
    try:
        told = ""
        while "a handshake failed: the peer seems to have keys" not in told:
            listener.listen(0.05)
            told += capsys.readouterr().out
        without = Peer(listener.address, "client")
        without.hello()
        listener.expect("hello")
        assert "a handshake failed" not in capsys.readouterr().out, "once is enough"
    finally:
        for peer in filter(None, (with_keys, without)):
            peer.close()


def test_a_chosen_routing_id_is_found(findings: Findings, listener: Listener) -> None:
    peer = Peer(listener.address, "client", routing_id=b"mine")
    try:
        peer.hello()
        listener.expect("hello")
    finally:
        peer.close()
    assert findings.wrong == ["[Transport] ZeroMQ chooses the routing id: the peer set the routing id b'mine'"]


class FaultyWorker(threading.Thread):
    """A worker that answers each task twice with a wrong attempt, returns no tasks, and sends no heartbeats."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._peer = Peer(address, "worker", kinds=["named json x"])
        self.ends = threading.Event()

    def run(self) -> None:
        self._peer.hello(incarnation=0)
        while not self.ends.is_set():
            received_now: list[Received] = []
            with suppress(WrongError):  # a message of a newer protocol
                received_now = self._peer.listen(0.02)
            for received in received_now:
                if received.kind == "dispatch":
                    count = len(received.fields["ids"])
                    columns = {name: received.fields[name] for name in ("clients", "ids")}
                    rows = {"outcomes": [0], "durations": [1], "sizes": [1], "payload": b"1" * count}
                    for _ in range(2):
                        self._peer.say("results", attempts=[9], **columns, **rows)
        self._peer.close()


def test_mistakes_of_a_worker_are_found(
    monkeypatch: pytest.MonkeyPatch, findings: Findings, listener: Listener
) -> None:
    monkeypatch.setattr("tests.conformance.listener.WAIT_SECONDS", 0.2)
    listener.lease_milliseconds = 300
    faulty = FaultyWorker(listener.address)
    faulty.start()
    try:
        check_peer(listener, findings, seconds=SECONDS)
    finally:
        faulty.ends.set()
        faulty.join()
    text = "\n".join(findings.wrong)
    for found in (
        "incarnation is 0",
        "0 heartbeats in a lease",
        "which was not dispatched",
        "no such retracted",
        "no such hello",
    ):
        assert found in text


QUICK, SLOW = Call("named json x", b"", b"[1]"), Call("named json wait", b"", b"[60]")


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("", []),
        ("fails", ["CALL= returns: functionFailed, 'no such function': the outcome must be `value`"]),
        ("twice", ["each task is answered once"]),
        (
            "never started",
            ["`started` before the results", "`started` of a task that runs for more than 10 ms: no such"],
        ),
        ("never stops", ["a running task is interrupted within 2 s"]),
        ("slow at once", ["no started of SLOW=, but results at once: functionFailed, 'no such function'"]),
        ("no scheduler", ["`scheduler` in the hello names the last scheduler that accepted it: scheduler is 0"]),
        ("many hellos", []),
        ("no text", ["texts of failures are UTF-8"]),
    ],
)
def test_a_workers_mistake_is_found_once(
    monkeypatch: pytest.MonkeyPatch, findings: Findings, listener: Listener, fault: str, found: list[str]
) -> None:
    monkeypatch.setattr("tests.conformance.listener.WAIT_SECONDS", 3.0)
    listener.lease_milliseconds = 600
    with ScriptedWorker(listener.address, fault):
        check_peer(listener, findings, QUICK, SLOW, seconds=SECONDS)
    assert len(findings.wrong) == len(found), findings.wrong
    assert all(text in line for text, line in zip(found, findings.wrong)), findings.wrong


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("", []),
        ("no inlined inputs", ["bytes behind the row's own payload", "two rows of one dispatch"]),
        ("no objects", ["an `object`, which several rows read"]),
        ("never forgets", ["an input that was never sent, or that was forgotten"]),
        ("runs without inputs", ["an input that was never sent, or that was forgotten"]),
    ],
)
def test_a_workers_mistake_with_inputs_is_found(
    monkeypatch: pytest.MonkeyPatch, findings: Findings, listener: Listener, fault: str, found: list[str]
) -> None:
    def play(conversation: WorkerConversation) -> None:
        conversation._join()
        conversation._tasks()
        conversation._inputs()

    monkeypatch.setattr(WorkerConversation, "_play", play)
    listener.lease_milliseconds = 600
    with ScriptedWorker(listener.address, fault):
        check_peer(listener, findings, QUICK, seconds=SECONDS)
    assert len(findings.wrong) == len(found), findings.wrong
    assert all(text in line for text, line in zip(found, findings.wrong)), findings.wrong


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("", []),
        ("no ticket", ["`data` in the hello of the agent", "readObject: chunks"]),
        ("other bytes", ["readObject: chunks of the file"]),
        ("gets it again", ["an order for a file that is there"]),
        ("is always content", ["the source has no such file", "chunks of a wrong size", "nobody listens"]),
        ("no word of it", ["nobody listens at the address"]),
        ("long chunks", ["readObject: chunks of the file, of at most 1 MiB"]),
        ("any ticket", ["a wrong ticket: noObject"]),
        (
            "answers garbage",
            ["random bytes", "no bytes, and", "a cut request", "other messages", "a ticket that is not"],
        ),
        ("long", ["a message of more than 16 KiB"]),
        ("never forgets", ["after forgetObjects: noObject"]),
    ],
)
def test_an_agents_mistake_is_found(findings: Findings, listener: Listener, fault: str, found: list[str]) -> None:
    """Each check of a data address can fail."""
    agent = ScriptedAgent(listener.address, fault)
    with agent:
        while (hello := listener.agent(agent.peer.incarnation)) is None:
            listener.listen(0.05)
        AgentConversation(listener, findings, hello, None, b"1").run()
    assert all(any(text in line for line in findings.wrong) for text in found), findings.wrong
    # After these, later checks find wrong answers too.
    goes_on = fault in ("no ticket", "long chunks", "answers garbage")
    assert len(findings.wrong) == len(found) or goes_on, findings.wrong


def test_the_result_of_a_call_is_shown(findings: Findings, listener: Listener) -> None:
    listener.lease_milliseconds = 600
    with ScriptedWorker(listener.address, ""):
        check_peer(listener, findings, QUICK, seconds=SECONDS)
    assert "[Submit to result] CALL= returns: value, '1'" in findings.right


@pytest.mark.parametrize(
    ("tasks", "fault", "found"),
    [
        (20, "", []),
        (5, "", ["5 tasks are open, where 20 were expected"]),
        (25, "descending", ["ids do not ascend from one submit to the next"] * 2),
        (25, "no scheduler", ["`scheduler` in the hello names the last scheduler that accepted it: scheduler is 0"]),
    ],
)
def test_a_clients_mistake_is_found(
    monkeypatch: pytest.MonkeyPatch, findings: Findings, listener: Listener, tasks: int, fault: str, found: list[str]
) -> None:
    monkeypatch.setattr("tests.conformance.listener.WAIT_SECONDS", 3.0)
    monkeypatch.setattr("tests.conformance.of_client.WAIT_SECONDS", 3.0)
    listener.lease_milliseconds = 600
    with ScriptedClient(listener.address, fault, tasks):
        check_peer(listener, findings, seconds=SECONDS)
    assert len(findings.wrong) == len(found), findings.wrong
    assert all(text in line for text, line in zip(found, findings.wrong)), findings.wrong
    assert any("A connection is lost" in each for each in findings.left_out) == (tasks == 5)


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("", []),
        ("names no input", ["task 25 reads [0], which are neither kept nor in keepEarlier"]),
        ("sends nothing", ["it sends the results that the scheduler asks for, if it has them: no answer for results"]),
        ("has nothing", ["it does not send the result of 0, which it has"]),
        ("sends other bytes", ["it sends b'x' as the result of 0"]),
    ],
)
def test_a_clients_mistake_with_results_is_found(
    monkeypatch: pytest.MonkeyPatch, findings: Findings, listener: Listener, fault: str, found: list[str]
) -> None:
    monkeypatch.setattr("tests.conformance.listener.WAIT_SECONDS", 3.0)
    monkeypatch.setattr("tests.conformance.of_client.WAIT_SECONDS", 3.0)
    listener.lease_milliseconds = 600
    with ScriptedClient(listener.address, fault, 25, readers=3):
        check_peer(listener, findings, seconds=SECONDS)
    assert bool(findings.wrong) == bool(fault), findings.wrong
    assert all(text in "".join(findings.wrong) for text in found), findings.wrong
    assert not findings.left_out


@pytest.mark.parametrize("error", [ValueError("a test"), KeyboardInterrupt()])
def test_there_is_always_a_summary(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    def fail(_conversation: SchedulerConversation) -> None:
        raise error

    monkeypatch.setattr(SchedulerConversation, "run", fail)
    status = main(["--scheduler", "tcp://127.0.0.1:1"])
    out, err = capsys.readouterr()
    if isinstance(error, KeyboardInterrupt):
        assert (status, out, err) == (130, "interrupted: 0 right, 0 wrong, 0 left out\n", "")
    else:
        assert (status, out.splitlines()[-1], err) == (1, "0 right, 1 wrong, 0 left out", "")
        assert "the conversation ends without an error: ValueError: a test" in out


def test_the_command(tmp_path: Path, keys: str) -> None:
    """make conformance runs this command."""
    with scheduler(tmp_path, "--keys", keys) as daemon:
        command = [sys.executable, "-m", "tests.conformance.run", "--keys", keys, "--scheduler", daemon.address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith(" right, 0 wrong, 0 left out")
    wrong = subprocess.run(command[:-2], capture_output=True, text=True, timeout=SECONDS)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("conformance: give ADDRESS=") and wrong.stderr.count("\n") == 1
    nowhere = subprocess.run([*command[:3], "--keys", "/nowhere", *command[-2:]], capture_output=True, text=True)
    assert nowhere.returncode == 2
    assert "there is no folder of keys at /nowhere" in nowhere.stderr
