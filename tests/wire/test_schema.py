"""The generated schema module and the constants, against the schema. Runs under PyPy and CPython."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.wire.vectors import FOLDER

from scaler_scheduler.core import effects, events
from scaler_scheduler.wire import encode, schema
from scaler_scheduler.wire.message_kinds import KIND_NAMES

SCHEMA = FOLDER.parent / "scaler.capnp"
TEXT = SCHEMA.read_text("utf-8")


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), name)


def union_members() -> list[str]:
    union = TEXT[TEXT.index("union {") :]
    members = re.findall(r"^ +(\w+) @(\d+)", union[: union.index("}")], re.MULTILINE)
    assert [int(ordinal) for _, ordinal in members] == list(range(len(members)))
    return [name for name, _ in members]


def without_date(source: str) -> str:
    return re.sub(r"^# generated on .*\n", "", source, flags=re.MULTILINE)


def test_generated_module_is_up_to_date(tmp_path):
    if shutil.which("capnp") is None:
        pytest.skip("the capnp tool, which capnpy's compiler runs, is not installed")
    shutil.copy(SCHEMA, tmp_path)
    command = [sys.executable, "-m", "capnpy", "compile", "scaler.capnp"]
    command += ["--no-pyx", "--no-reflection", "--text-type=unicode"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    fresh = without_date((tmp_path / "scaler.py").read_text("utf-8"))
    committed = Path(schema.__file__).read_text("utf-8")
    version = re.compile(r"^__capnproto_version__ = .*$", re.MULTILINE)  # it does not affect the code
    assert version.sub("", fresh).rstrip() == version.sub("", without_date(committed)).rstrip()


def test_protocol_version():
    declared = re.search(r"^const protocolVersion :UInt32 = (\d+);", TEXT, re.MULTILINE)
    assert declared is not None
    assert int(declared.group(1)) == encode.PROTOCOL_VERSION


def test_protocol_version_of_the_client():
    messages = pytest.importorskip(
        "scaler_client.protocol.messages", reason="the client's library is for CPython from 3.10 on"
    )
    assert messages.PROTOCOL_VERSION == encode.PROTOCOL_VERSION


def test_message_kinds_are_ordinals_of_the_union():
    members = [snake(name) for name in union_members()]
    assert list(KIND_NAMES) == members
    assert events.KINDS == len(members)
    for module, base in ((events, events.Event), (effects, effects.Effect)):
        kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, base)]
        assert len(kinds) > 5
        for kind in kinds:
            assert kind.kind == base.kind or snake(kind.__name__)[1:] == members[kind.kind]


def test_roles_and_outcomes():
    def enumerants(name: str) -> list[str]:
        body = re.search(rf"enum {name} {{(.*?)}}", TEXT, re.DOTALL)
        assert body is not None
        return re.findall(r"(\w+) @\d+;", body.group(1))

    assert tuple(enumerants("Role")) == events.ROLE_NAMES
    outcomes = enumerants("Outcome")
    assert outcomes[effects.OUTCOME_VALUE] == "value"
    assert outcomes[effects.OUTCOME_WORKER_DIED] == "workerDied"
    assert outcomes[effects.OUTCOME_CANCELLED] == "cancelled"
    assert outcomes[effects.OUTCOME_RETRYABLE] == "retryable"
    assert outcomes[effects.OUTCOME_TIMED_OUT] == "timedOut"
    others = ["workerDied", "cancelled", "timedOut", "kept", "inputLost", "stored", "environmentFailed", "noRoom"]
    assert outcomes[effects.WORKER_OUTCOMES :] == [*others, "file"]
    assert outcomes[effects.OUTCOME_ENVIRONMENT_FAILED] == "environmentFailed"
    assert outcomes[effects.OUTCOME_KEPT] == "kept"
    assert outcomes[effects.OUTCOME_INPUT_LOST] == "inputLost"
    assert outcomes[effects.OUTCOME_STORED] == "stored"
    keeps = enumerants("Keep")
    assert [keeps[keep] for keep in (events.KEEP_NO, events.KEEP_YES, events.KEEP_BOTH)] == ["no", "yes", "both"]
    assert enumerants("RefusedReason")[effects.REFUSED_MALFORMED_HELLO] == "malformedHello"
    assert enumerants("RefusedReason")[effects.REFUSED_NOT_AUTHORIZED] == "notAuthorized"
