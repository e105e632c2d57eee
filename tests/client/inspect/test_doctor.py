"""The checks of `scaler_client doctor`, each against a stand-in for what may be wrong."""

from __future__ import annotations

import concurrent.futures
import json
import os
import platform
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zmq
from tests.client.monitor.published_frames import snapshot_frame
from zmq.utils import z85

from scaler_client import __version__
from scaler_client.commands.addresses import Address, parse_connect_address
from scaler_client.commands.options import OptionError
from scaler_client.environments import module_files
from scaler_client.errors import SchedulerLostError
from scaler_client.inspect import cli
from scaler_client.inspect.doctor import examination, machine, probes
from scaler_client.inspect.doctor.examination import Settings, examine
from scaler_client.inspect.doctor.hosts import check_hosts
from scaler_client.inspect.doctor.joining import check_keys
from scaler_client.inspect.doctor.machine import NO_LIMIT, UNKNOWN, HostFacts, check_open_files, check_shared_memory
from scaler_client.inspect.doctor.probes import Probe, check_script
from scaler_client.inspect.doctor.reachability import Endpoint, check_reachable
from scaler_client.inspect.doctor.report import (
    Check,
    Status,
    check_lines,
    error,
    ok,
    report_json,
    summary,
    warning,
    worst,
)
from scaler_client.inspect.doctor.script_imports import read_imports
from scaler_client.io.host_questions import HostVersions
from scaler_client.monitor.text_layout import OutputFormat
from scaler_client.pickling.package_versions import installed_packages, packages_in, parse_installed

SECONDS = 5.0
PYTHON = f"python {platform.python_version()}"


def statuses(checks: list[Check]) -> dict[str, Status]:
    return {check.name: check.status for check in checks}


def found_by(checks: list[Check], name: str) -> Check:
    (check,) = [check for check in checks if check.name == name]
    return check


# ----------------------------------------------------------------------------------------------------------- the report


def test_lines_of_a_check() -> None:
    lines = check_lines(OutputFormat(80), warning("clocks", "\x1b[31m is " + "late " * 20, "set it"))
    assert lines[0].startswith("clocks         warning  \\x1b[31m is late") and max(map(len, lines)) <= 80
    assert lines[-1] == " " * 24 + "-> set it"
    assert check_lines(OutputFormat(80), ok("keys", "there")) == ["keys           ok       there"]
    assert "\x1b[31merror\x1b[0m    bad" in check_lines(OutputFormat(80, True), error("keys", "bad", ""))[0]


def test_the_worst_check_counts() -> None:
    checks = [ok("a", "x"), warning("b", "y", "do"), error("c", "z", "do that")]
    assert worst([]) == worst(checks[:1]) == Status.OK
    assert worst(checks[:2]) == Status.WARNING and worst(checks) == Status.ERROR
    assert summary(checks) == "3 checks: 1 ok, 1 warning, 1 error" and summary(checks[:1]) == "1 checks: 1 ok"
    assert report_json(checks, "tcp://a:1") == {
        "address": "tcp://a:1",
        "status": "error",
        "checks": [
            {"check": "a", "status": "ok", "text": "x", "advice": ""},
            {"check": "b", "status": "warning", "text": "y", "advice": "do"},
            {"check": "c", "status": "error", "text": "z", "advice": "do that"},
        ],
    }


# ---------------------------------------------------------------------------------------------------------- the machine


@pytest.mark.parametrize(
    ("limit", "status"),
    [(1023, Status.WARNING), (1024, Status.OK), (NO_LIMIT, Status.OK), (UNKNOWN, Status.OK)],
)
def test_open_files(limit: int, status: Status) -> None:
    check = check_open_files("workers on node-7", limit)
    assert (
        check.status == status and "workers on node-7" in check.text and ("ulimit -n" in check.advice) == bool(status)
    )


@pytest.mark.parametrize(
    ("size", "free", "status", "said"),
    [
        (8 << 30, 4 << 30, Status.OK, "8.0 GiB, 4.0 GiB are free"),
        (64 << 20, 64 << 20, Status.WARNING, "--shm-size"),
        (8 << 30, 100 << 20, Status.WARNING, "du -sh /dev/shm"),
        (UNKNOWN, 0, Status.WARNING, "is missing"),
    ],
)
def test_shared_memory(size: int, free: int, status: Status, said: str) -> None:
    check = check_shared_memory("node-7", HostFacts(1024, size, free))
    assert check.status == status and said in f"{check.text} {check.advice}"


def test_a_process_without_free_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "file_shortage", lambda: "too few file descriptors are left")
    check = found_by(list(machine.check_machine()), "open files")
    assert check == error("open files", "too few file descriptors are left", "raise the limit: ulimit -n 65536")


def test_an_interpreter_without_pycapnp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "capnp", None)
    with zmq_server(zmq.ROUTER) as address:
        checks = list(examine(Settings(address, "", SECONDS)))
    assert [check.name for check in checks if check.status] == ["this program"] and "pycapnp" in checks[0].text


# ------------------------------------------------------------------------------------------------------- the connection


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[Address]:
    """A server on a free port that treats one connection so."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Address("tcp", "127.0.0.1", listening.getsockname()[1], "")
        finally:
            thread.join()


@contextmanager
def zmq_server(kind: int, keys: tuple[bytes, bytes] | None = None) -> Iterator[Address]:
    context = zmq.Context()
    bound = context.socket(kind)
    bound.setsockopt(zmq.LINGER, 0)
    if keys is not None:
        bound.setsockopt(zmq.CURVE_SERVER, 1)
        bound.setsockopt(zmq.CURVE_SECRETKEY, keys[1])
    try:
        yield Address("tcp", "127.0.0.1", bound.bind_to_random_port("tcp://127.0.0.1"), "")
    finally:
        context.destroy(linger=0)


def reach(address: Address, seconds: float = SECONDS) -> tuple[list[Check], Endpoint]:
    found = Endpoint()
    return list(check_reachable(address, seconds, found)), found


def test_a_scheduler_without_keys() -> None:
    with zmq_server(zmq.ROUTER) as address:
        checks, found = reach(address)
    assert statuses(checks) == dict.fromkeys(("host name", "connection", "protocol"), Status.OK)
    assert (found.mechanism, found.socket_type, found.may_be_scheduler) == ("NULL", "ROUTER", True)


def test_a_scheduler_with_keys() -> None:
    with zmq_server(zmq.ROUTER, zmq.curve_keypair()) as address:
        checks, found = reach(address)
    assert worst(checks) == Status.OK and "encrypted, with keys" in checks[-1].text
    assert (found.mechanism, found.may_be_scheduler) == ("CURVE", True)


@pytest.mark.parametrize("kind", [zmq.XPUB, zmq.REP])
def test_a_zeromq_socket_that_is_no_schedulers(kind: int) -> None:
    with zmq_server(kind) as address:
        checks, found = reach(address)
    assert checks[-1].status == Status.ERROR and not found.may_be_scheduler
    assert "takes no clients" in checks[-1].text and "not its monitor address" in checks[-1].advice


def test_another_program_answers() -> None:
    with server(lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")) as address:
        checks, found = reach(address)
    assert checks[-1].status == Status.ERROR and "b'SSH-2.0-" in checks[-1].text and not found.may_be_scheduler


def test_a_program_that_closes_the_connection() -> None:
    with server(lambda connection: None) as address:
        checks, _ = reach(address)
    assert checks[-1].status == Status.ERROR and "no greeting of ZeroMQ" in checks[-1].text
    assert "--connection-limit" in checks[-1].advice


def test_a_program_that_is_silent() -> None:
    ended = threading.Event()
    try:
        with server(lambda connection: ended.wait(SECONDS) and None) as address:
            checks, _ = reach(address, 0.05)
            ended.set()
    finally:
        ended.set()
    assert checks[-1].status == Status.ERROR and "no greeting of ZeroMQ within 0.05 s" in checks[-1].text


def test_another_mechanism() -> None:
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"GSSAPI".ljust(20, b"\0") + bytes(32)
    with server(lambda connection: connection.sendall(greeting)) as address:
        checks, found = reach(address)
    assert checks[-1].status == Status.WARNING and "GSSAPI" in checks[-1].text and not found.may_be_scheduler


def test_nothing_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    checks, found = reach(Address("tcp", "127.0.0.1", port, ""))
    assert statuses(checks) == {"host name": Status.OK, "connection": Status.ERROR} and found == Endpoint()
    assert (
        checks[-1].text == f"nothing listens at tcp://127.0.0.1:{port}" and "start the scheduler" in checks[-1].advice
    )
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "stale"))
    (check,) = reach(Address("ipc", "", 0, str(tmp_path / "stale")))[0]
    assert check.status == Status.ERROR and "nothing listens" in check.text and "has ended" in check.advice
    (check,) = reach(Address("ipc", "", 0, f"@scaler-no-such-{os.getpid()}"))[0]
    assert check.status == Status.ERROR and "nothing listens" in check.text


def test_sockets_that_are_no_sockets(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, said in (("file", "is no socket"), ("missing", "does not exist"), ("file/below", "cannot be reached")):
        (check,) = reach(Address("ipc", "", 0, str(tmp_path / name)))[0]
        assert check.status == Status.ERROR and said in check.text and check.advice


def test_an_unknown_host(monkeypatch: pytest.MonkeyPatch) -> None:
    (check,) = reach(parse_connect_address("tcp://no-such-host.invalid:2345"))[0]
    assert check.status == Status.ERROR and "no-such-host.invalid can't be found: " in check.text
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: released.wait(SECONDS) and [])
    try:
        (check,) = reach(parse_connect_address("tcp://slow.invalid:2345"), 0.05)[0]
    finally:
        released.set()
    assert check.status == Status.ERROR and "has not answered within 0.05 s for slow.invalid" in check.text


def test_packets_that_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", never)
    checks, _ = reach(parse_connect_address("tcp://127.0.0.1:2345"), 3)
    assert checks[-1].text == "no answer from tcp://127.0.0.1:2345 within 3 s" and "packet filter" in checks[-1].advice


# ------------------------------------------------------------------------------------------------------------- the keys


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A client's folder of keys."""
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o700)
    for name in ("server", "client"):
        public, secret = (z85.decode(part) for part in zmq.curve_keypair())
        (folder / f"{name}.key").write_text(public.hex())
        if name == "client":
            (folder / "client.secret").touch(0o600)
            (folder / "client.secret").write_text(secret.hex())
    return folder


PLAIN, ENCRYPTED = Endpoint("NULL", "ROUTER"), Endpoint("CURVE")
ELSEWHERE = Address("tcp", "192.0.2.1", 2345, "")


def test_keys_that_fit(keys: Path) -> None:
    check = check_keys(str(keys), ELSEWHERE, ENCRYPTED)
    assert check.status == Status.OK and (keys / "client.key").read_text()[:16] in check.text
    assert check_keys("", ELSEWHERE, PLAIN).status == Status.OK


def test_keys_that_are_missing_or_too_many(keys: Path) -> None:
    check = check_keys("", ELSEWHERE, ENCRYPTED)
    assert check.status == Status.ERROR and "needs keys" in check.text and "keygen" in check.advice
    check = check_keys(str(keys), ELSEWHERE, PLAIN)
    assert check.status == Status.ERROR and "the scheduler has no keys" in check.text
    (keys / "server.secret").touch(0o600)
    assert check_keys(str(keys), ELSEWHERE, ENCRYPTED).status == Status.WARNING
    assert check_keys(str(keys), parse_connect_address("tcp://127.0.0.1:1"), ENCRYPTED).status == Status.OK


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda keys: (keys / "client.secret").chmod(0o644), "is open to others"),
        (lambda keys: keys.chmod(0o777), "others can write"),
        (lambda keys: (keys / "server.key").unlink(), "server.key: No such file"),
        (lambda keys: (keys / "client.secret").rename(keys / "worker.secret"), "has a worker's key; a client needs"),
        (lambda keys: (keys / "client.key").write_text("no key"), "is not a key"),
        (lambda keys: (keys / "client.key").write_text("0" * 64), "is not the secret of client.key"),
    ],
)
def test_a_folder_of_keys_that_is_broken(keys: Path, break_it: Callable[[Path], Any], said: str) -> None:
    break_it(keys)
    check = check_keys(str(keys), ELSEWHERE, ENCRYPTED)
    assert check.status == Status.ERROR and said in check.text and "client.secret" in check.advice
    assert check_keys(str(keys / "missing"), None, Endpoint()).status == Status.ERROR


# ------------------------------------------------------------------------------------------------------------ the hosts


def host(
    name: str, language: str = PYTHON, library: str = __version__, skew: float = 0.0, **others: str
) -> HostVersions:
    packages = {**parse_installed(installed_packages()), **{name.replace("_", "-"): v for name, v in others.items()}}
    return HostVersions(name, language, library, packages, 1000.0 + skew, 1000.0)


def test_hosts_that_are_like_this_one() -> None:
    checks = list(check_hosts([host("b"), host("a"), host("a")], ["zmq"]))
    assert worst(checks) == Status.OK and checks[0].text == "2 hosts: a, b"
    assert list(statuses(checks)) == ["hosts", "Python", "Scaler", "packages", "clocks"]


def test_no_hosts() -> None:
    (check,) = check_hosts([], [])
    assert check.status == Status.ERROR and "scaler_cluster" in check.advice
    (check,) = check_hosts(None, [])
    assert check.status == Status.WARNING and "older" in check.text


def test_hosts_with_another_python() -> None:
    here, other = host("a"), host("b", "python 3.1.4")
    check = found_by(list(check_hosts([here, other], [])), "Python")
    assert check.status == Status.WARNING and "python 3.1.4 on b" in check.text
    check = found_by(list(check_hosts([other], [])), "Python")
    assert check.status == Status.ERROR and "no worker can run tasks" in check.advice and "python 3.1," in check.advice


def test_hosts_with_another_library() -> None:
    check = found_by(list(check_hosts([host("a"), host("b", library="0.0.1"), host("c", library="")], [])), "Scaler")
    assert check.status == Status.WARNING and check.text == f"{__version__} here; 0.0.1 on b; unknown on c"


def test_hosts_with_other_packages() -> None:
    hosts = [host("a"), host("b", pyzmq="1.0", cloudpickle="0.1", psutil="9"), host("c", pyzmq="1.0")]
    checks = [check for check in check_hosts(hosts, ["zmq"]) if check.name == "packages"]
    own = parse_installed(installed_packages())
    assert [check.status for check in checks] == [Status.WARNING, Status.WARNING, Status.OK]
    assert checks[0].text == f"cloudpickle: {own['cloudpickle']} here; 0.1 on b"
    assert (
        checks[1].text == f"pyzmq: {own['pyzmq']} here; 1.0 on b, c" and "Client(environment=...)" in checks[1].advice
    )
    assert checks[2].text == f"{len(own)} packages here; 1 of them has another version on a host: psutil"
    assert not [
        check for check in check_hosts([HostVersions("a", "C++ 20", "", {}, 0, 0)], []) if check.name == "packages"
    ]


def test_clocks() -> None:
    check = found_by(list(check_hosts([host("a"), host("b", skew=75.0), host("c", skew=-3600.0)], [])), "clocks")
    own = "compared with this machine's: 1 h behind on c; 1 min 15 s ahead on b"
    assert check.status == Status.WARNING and check.text == own
    text = found_by(list(check_hosts([host("a", skew=-0.5)], [])), "clocks").text
    assert text == "1 host within 500 ms of this machine's"
    hosts = [replace(host("a", skew=-0.5), scheduler_clock_seconds=999.75)]
    text = found_by(list(check_hosts(hosts, [])), "clocks").text
    assert text == "1 host and this machine within 250 ms of the scheduler's"
    hosts = [replace(host("a", skew=-60.0), scheduler_clock_seconds=940.0)]
    check = found_by(list(check_hosts(hosts, [])), "clocks")
    assert check.text == "compared with the scheduler's: 1 min ahead on this machine"
    unknown = HostVersions("a", PYTHON, __version__, {}, 0.0, 1000.0)
    assert "no host has told" in found_by(list(check_hosts([unknown], [])), "clocks").text


# ----------------------------------------------------------------------------------------------------------- the script

SCRIPT = """\
from __future__ import annotations
import os, numpy.linalg as la, json.decoder
from . import sibling
from pandas.core import x
if TYPE_CHECKING:
    import only_types
else:
    import not_types
try:
    import maybe
except ImportError:
    import instead
try:
    import surely
except ValueError:
    pass
def f():
    with a:
        for b in c:
            import deep
class C:
    import inner
match x:
    case 1:
        import cased
try:
    import numpy
except (KeyError, ModuleNotFoundError):
    pass
"""


def test_imports_of_a_script(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    imports = read_imports(str(path))
    assert imports.required == ("cased", "deep", "inner", "not_types", "numpy", "pandas", "surely")
    assert imports.optional == ("instead", "maybe") and imports.folder == str(tmp_path)


def test_modules_that_a_script_uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("package", "project/inner/deep", "project/empty"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("single.py", "other.py", "package/__init__.py", "package/deep.py", "project/loose.py", "missing.txt"):
        (tmp_path / file).touch()
    (tmp_path / "project/inner/deep/module.py").touch()
    path = tmp_path / "script.py"
    path.write_text(
        "import single, other, package, deep, loose, inner, empty, missing\n"
        "where = 'other.py'\n"
        "with Client('tcp://x:1', modules=['single.py', 'package', where, 'nowhere', 5]) as client:\n"
        "    client.upload_modules('project', where)\n"
    )
    imports = read_imports(str(path))
    assert imports.uploads == ("single.py", "package", "nowhere", "project")
    uploaded = [name for name in imports.names if imports.is_uploaded(name)]
    assert uploaded == ["inner", "loose", "package", "single"]
    probe = Probe("a", HostFacts(1024, 1 << 30, 1 << 30), dict.fromkeys(imports.names, ""))
    texts = [check.text for check in check_script(imports, {"a": probe})]
    assert texts == [
        "deep is missing here",
        "empty is missing here",
        "inner is missing here",  # the script itself cannot import what its folder has
        "loose is missing here",
        "missing is missing here",
        "other, a module of your own, is not installed on a",
    ]
    (tmp_path / "single.py").write_text("import package\nimport no_such_module\n")
    (tmp_path / "package" / "deep.py").write_text("import rare\n")
    (tmp_path / "package" / "broken.py").write_text("import (\n")
    imports = read_imports(str(path))
    assert "no_such_module" in imports.required and "rare" in imports.optional, "imports of uploaded modules count"
    (tmp_path / "single.py").write_text("")
    (tmp_path / "package" / "deep.py").write_text("")
    path.write_text("import single\nClient(modules=('.',))\n")
    (check,) = check_script(read_imports(str(path)), {"a": probe})
    assert check == ok("script", "1 module that script.py imports: all are here and on 1 host, or uploaded by it")


def test_a_folder_that_an_upload_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "names" / "inner").mkdir(parents=True)
    (tmp_path / "names" / "inner" / "deep.py").touch()
    path = tmp_path / "script.py"
    path.write_text("import names\n")
    probe = Probe("a", HostFacts(1024, 1 << 30, 1 << 30), {"names": ""})
    (check,) = check_script(read_imports(str(path)), {"a": probe})
    assert check.text == "names, a module of your own, is not installed on a"
    assert check.advice.startswith(f"the script must have Client(modules=[{str(tmp_path)!r}]) or ")
    path.write_text(f"import names\nClient(modules=[{str(tmp_path)!r}])\n")
    (check,) = check_script(read_imports(str(path)), {"a": probe})
    assert check == ok("script", "1 module that script.py imports: all are here and on 1 host, or uploaded by it")
    monkeypatch.setattr(module_files, "MAX_SEARCHED", 1)
    (check,) = check_script(read_imports(str(path)), {"a": probe})
    left_out = f"an upload leaves out {tmp_path}/names: put an __init__.py into it, or copy the module to the hosts"
    assert (check.status, check.advice) == (Status.WARNING, left_out)


def test_packages_of_a_scripts_environment_need_not_be_on_hosts(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    probe = Probe("a", HostFacts(1024, 1 << 30, 1 << 30), {})
    path.write_text("import pytest\nClient('tcp://x:1', environment=None)\n")
    (check,) = check_script(read_imports(str(path)), {"a": probe})
    assert check.status is Status.ERROR and "is missing on a" in check.text
    path.write_text("import pytest\nClient('tcp://x:1', environment='requirements.txt')\n")
    (check,) = check_script(read_imports(str(path)), {"a": probe})
    text = "1 module that script.py imports: all are here and on 1 host, or packages of its environment"
    assert check == ok("script", text)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"import x\ndef f(:\n", r"script.py, line 2: "),
        (b"\xff\xfe\x00", r"script.py"),
        (b"(" * 500, r"script.py, line 1: "),
        (None, r"cannot read \S+script.py: No such file"),
    ],
)
def test_a_script_that_cannot_be_read(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "script.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OptionError, match=f"--script: .*{said}"):
        read_imports(str(path))


def test_modules_of_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "script.py"
    path.write_text("import zmq, helper, nowhere\ntry:\n    import psutil\nexcept ImportError:\n    pass\n")
    (tmp_path / "helper.py").touch()
    facts = HostFacts(1024, 1 << 30, 1 << 30)
    versions = parse_installed(installed_packages())
    found = {
        "a": Probe("a", facts, {"zmq": versions["pyzmq"], "helper": "/srv/helper.py", "nowhere": "1", "psutil": ""}),
        "b": Probe("b", facts, {"zmq": "1.0", "helper": "", "nowhere": "", "psutil": versions["psutil"]}),
    }
    before = list(sys.path)
    checks = list(check_script(read_imports(str(path)), found))
    assert sys.path == before and [check.name for check in checks] == ["script"] * 4
    assert [(check.status, check.text) for check in checks] == [
        (Status.WARNING, "helper, a module of your own, is not installed on b"),
        (Status.ERROR, "nowhere is missing here"),
        (Status.WARNING, f"zmq: {versions['pyzmq']} here, 1.0 on b"),
        (Status.WARNING, f"psutil {versions['psutil']} is missing on a"),
    ]
    assert f"Client(modules=['{tmp_path}/helper.py'])" in checks[0].advice and "pyzmq" not in checks[0].advice
    path.write_text("import zmq, os\n")
    (check,) = check_script(read_imports(str(path)), {"a": found["a"]})
    assert check == ok("script", "1 module that script.py imports: all are here and on 1 host")


# ---------------------------------------------------------------------------------------------------- the whole command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.main(["doctor", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCALER_ADDRESS", "SCALER_KEYS", "SCALER_CLIENT_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)


def test_without_an_address_this_machine_is_examined(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys)
    assert (status, err) == (0, "") and "no scheduler's address was given" in out and out.endswith(" warning\n")


def test_json_without_a_scheduler(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, err = run(capsys, f"ipc://{tmp_path}/none", "--json")
    report = json.loads(out)
    assert (status, err) == (1, "") and report["status"] == "error" and report["address"] == f"ipc://{tmp_path}/none"
    assert [each["check"] for each in report["checks"] if each["status"] == "error"] == ["connection"]


def test_a_script_is_examined_without_a_scheduler(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import no_such_module_anywhere\n")
    status, out, _ = run(capsys, f"ipc://{tmp_path}/none", "--script", str(script))
    assert status == 1 and "no_such_module_anywhere is missing here" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tcp://host"], "address: bad address 'tcp://host': the port is missing"),
        (["--timeout", "no"], "--timeout"),
        (["--script", "/no/such/script.py"], "--script: cannot read /no/such/script.py"),
        (["--jso"], "doctor: unknown option --jso (did you mean --json?)"),
        (["tcp://a:1", "tcp://b:2"], "unexpected argument"),
    ],
)
def test_wrong_arguments(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "") and said in err and err.count("\n") == 1


def test_a_router_that_is_no_scheduler() -> None:
    with zmq_server(zmq.ROUTER) as address:
        checks = list(examine(Settings(address, "", 1.0)))
    check = found_by(checks, "scheduler")
    assert check.status == Status.ERROR and "within 1 seconds" in check.text and "Its log says" in check.advice
    assert checks[-1] is check, "nothing else can be checked"


@contextmanager
def publisher(path: str, **fields: Any) -> Iterator[None]:
    """A monitor address that publishes a snapshot to each subscriber; without fields nothing."""
    frame = snapshot_frame(1, 1.0, **fields) if fields else b""
    context = zmq.Context()
    socket = context.socket(zmq.XPUB)
    socket.linger = 0
    socket.setsockopt(zmq.XPUB_VERBOSE, 1)  # else a subscriber before whom another has just left is not seen
    socket.bind(f"ipc://{path}")

    def publish() -> None:
        with suppress(zmq.ContextTerminated), socket:
            while socket.recv():
                if frame:
                    socket.send(frame)

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    try:
        yield
    finally:
        context.term()
        thread.join()


def published(address: str, scheduler: int = 7, keys: str = "") -> list[Check]:
    checks = list(examination.check_published(parse_connect_address(address), scheduler, keys))
    assert {check.name for check in checks} == {"problems"}
    return checks


def test_a_published_snapshot_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "SNAPSHOT_SECONDS", 0.05)
    monkeypatch.delenv("SCALER_MONITOR_ADDRESS", raising=False)
    path = f"{tmp_path}/s"
    assert published(f"ipc://{path}") == [ok("problems", examination.NOT_PUBLISHED_HERE)]
    with publisher(f"{path}_monitor"):
        (check,) = published(f"ipc://{path}")
    assert check.status == Status.WARNING and "_monitor has sent nothing within 0.05 s" in check.text
    too_long = "ipc:///tmp/" + "x" * 95
    assert published(too_long) == [ok("problems", examination.NOT_PUBLISHED_HERE)]


def test_the_published_address_may_be_another_name_of_the_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "SNAPSHOT_SECONDS", SECONDS)
    path = f"{tmp_path}/m"
    monkeypatch.setenv("SCALER_MONITOR_ADDRESS", f"ipc://{path}")
    with publisher(path, incarnation=7, address="tcp://*:2345", deaths=[{"name": "signal 9", "count": 2}]):
        (check,) = published("tcp://127.0.0.1:2345", keys="/no/such/keys")
        assert check.status == Status.WARNING and "signal 9" in check.text
        (check,) = published("tcp://127.0.0.1:2345", scheduler=8)
    assert check.status == Status.WARNING and "another scheduler publishes at" in check.text
    with publisher(path, incarnation=7, address="tcp://*:2345"):
        assert published("tcp://127.0.0.1:2345") == [ok("problems", "the scheduler knows none")]


def test_a_monitor_address_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALER_MONITOR_ADDRESS", "tcp://host")
    (check,) = published("tcp://127.0.0.1:1")
    assert check.status == Status.WARNING and "SCALER_MONITOR_ADDRESS: bad address 'tcp://host'" in check.text
    monkeypatch.setenv("SCALER_MONITOR_ADDRESS", "tcp://127.0.0.1:1")
    (check,) = published("tcp://127.0.0.1:1", keys=str(tmp_path))
    assert check.status == Status.WARNING and check.text.startswith("not read: ") and check.advice


@pytest.mark.parametrize(
    ("outcome", "status", "said"),
    [
        (None, Status.OK, "an empty task takes "),
        (SchedulerLostError("its key was revoked"), Status.ERROR, "SchedulerLostError: its key was revoked"),
        (concurrent.futures.TimeoutError(), Status.WARNING, "no further task has ended"),
        (concurrent.futures.CancelledError(), Status.ERROR, "CancelledError"),
    ],
)
def test_round_trips(outcome: BaseException | None, status: Status, said: str) -> None:
    class Tasks:
        def submit(self, _: Any) -> Any:
            return self

        def result(self, _: float) -> None:
            if outcome is not None:
                raise outcome

    check = probes._round_trip_check(Tasks(), SECONDS)
    assert check.status == status and said in check.text


def test_probes_need_no_module_of_this_version(monkeypatch: pytest.MonkeyPatch) -> None:
    import cloudpickle

    assert packages_in(cloudpickle.dumps([probes._nothing(), probes._look()])) == ["cloudpickle"]
    look = cloudpickle.loads(cloudpickle.dumps(probes._look()))
    begun = time.monotonic()
    name, limit, shared, free, versions = look(["zmq", "no_such_module"], 0.01)
    assert time.monotonic() - begun >= 0.01 and name == socket.gethostname()
    facts = machine.measure()
    assert (limit, shared) == (facts.open_files, facts.shared_bytes) and 0 <= free <= shared
    assert versions["no_such_module"] == "" and versions["zmq"] == zmq.__version__
    monkeypatch.setitem(sys.modules, "scaler_client.pickling.package_versions", None)
    assert look(["zmq", "no_such_module"], 0.0)[4] == {"zmq": "unknown", "no_such_module": ""}
