"""Checks an implementation of the protocol. The findings refer to the sections of PROTOCOL.md.

make conformance ADDRESS=tcp://127.0.0.1:5555
    Runs a scripted scheduler at this address. Connect a worker or a client to it. A client must submit at least 20
    tasks at once (their results are empty) and end when it has all answers.
make conformance SCHEDULER=tcp://127.0.0.1:2345
    Runs scripted clients and workers against this scheduler, which must have no other peers.

KEYS=DIR, a folder of `scaler_scheduler keygen DIR`, makes both use CURVE, and checks keys too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import zmq
from tests.conformance.calls import Call
from tests.conformance.findings import Findings, OverError, WrongError
from tests.conformance.keys import keys_for
from tests.conformance.listener import Gone, Listener
from tests.conformance.of_client import ClientConversation
from tests.conformance.of_scheduler import SchedulerConversation
from tests.conformance.of_worker import WorkerConversation

from scaler_client.commands.addresses import AddressError, parse_bind_address, parse_connect_address
from scaler_client.commands.key_files import KeyFileError

HELLO_SECONDS = 120.0


@contextmanager
def _to_its_end(findings: Findings) -> Iterator[None]:
    """Show a summary at the end of the block, even after an error."""
    try:
        yield
    except OverError:
        return
    except (AddressError, KeyFileError):
        raise
    except Exception as error:
        what = str(error) if isinstance(error, (Gone, WrongError)) else f"{type(error).__name__}: {error}"
        with findings.check("Join", "the conversation ends without an error"):
            raise WrongError(what) from None


def check_peer(
    listener: Listener,
    findings: Findings,
    quick: Call | None = None,
    slow: Call | None = None,
    seconds: float = HELLO_SECONDS,
) -> None:
    """Run the conversation with the first peer that sends a hello.

    Args:
        quick: a call that returns soon, for a worker.
        slow: a call that runs until it is stopped, for a worker.
        seconds: how long to wait for the hello.
    """
    with _to_its_end(findings):
        with findings.check("Join", "the first message is a hello"):
            hello = listener.expect("hello", seconds)
        if findings.wrong:
            return
        if hello.fields["role"] == "worker":
            WorkerConversation(listener, findings, quick, slow).run(hello)
        else:
            ClientConversation(listener, findings).run(hello)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Show one line instead of argparse's page of usage."""
        self.exit(2, f"conformance: {message}\n")


def _wait_for_peer(listener: Listener, given: argparse.Namespace, findings: Findings) -> None:
    print(f"at {listener.address}: start a worker or a client there", flush=True)
    try:
        check_peer(listener, findings, given.call, given.slow)
    finally:
        listener.close()


def main(argv: list[str] | None = None) -> int:
    """Run the command; return its exit status.

    Args:
        argv: the arguments without the program's name.
    """
    parser = _Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", help="the address of the scripted scheduler for a worker or client under test")
    parser.add_argument("--scheduler", help="the address of the scheduler under test")
    parser.add_argument(
        "--call", type=Call.parse, help="for a worker: a call that returns soon, such as: named json add [1, 2]"
    )
    parser.add_argument("--slow", type=Call.parse, help="for a worker: a call that runs until it is stopped")
    parser.add_argument("--keys", default="", help="a folder with the keys of the scheduler and of all roles")
    given = parser.parse_args(argv)
    if bool(given.address) == bool(given.scheduler):
        parser.error(
            "give ADDRESS=tcp://HOST:PORT, where a worker or client under test will be started, or "
            "SCHEDULER=tcp://HOST:PORT, where the scheduler under test is (either with KEYS=DIR)"
        )
    findings = Findings()
    try:
        if given.scheduler:
            parse_connect_address(given.scheduler)
            for role in ("client", "worker"):  # fail before any peer connects
                keys_for(given.keys, role, 0)
            with _to_its_end(findings):
                SchedulerConversation(given.scheduler, findings, given.keys).run()
        else:
            parse_bind_address(given.address)
            _wait_for_peer(_listener(given, findings), given, findings)
    except (AddressError, KeyFileError, Gone) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print(f"interrupted: {findings.summary()}")
        return 130
    print(findings.summary())
    return 1 if findings.wrong else 0


def _listener(given: argparse.Namespace, findings: Findings) -> Listener:
    try:
        return Listener(given.address, findings, given.keys)
    except zmq.ZMQError as error:
        raise Gone(f"cannot listen at {given.address}: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main())
