"""`python -m scaler_worker.packages.build_process`: prepares one environment, apart from the agent.

The first line of its standard input is the request, as JSON. It prints the result as one line of JSON, and holds its
locks until its standard input ends: by then the agent has locks of its own. If the agent ends before, so does this
process, with the installer and all that the installer has started.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from typing import Any

from scaler_client.commands import module_folders
from scaler_client.errors import PackagesError
from scaler_client.packages.package_set import package_set_from

from .cache import Lock
from .preparation import CannotPrepareError, Request, prepare

MAX_REQUEST_BYTES = 16 << 20


def main() -> int:
    """Run the process. Returns its exit status: 0, also if the environment cannot be made."""
    module_folders.restore(os.environ)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the agent decides: it closes our standard input
    line = _read_line(0)
    locks: list[Lock] = []
    try:
        prepared, locks = prepare(request_from(json.loads(line)))
        answer: dict[str, Any] = {"ready": prepared.to_plain()}
    except CannotPrepareError as error:
        answer = {"error": str(error), "damaged": list(error.damaged)}
    except PackagesError as error:
        answer = {"error": str(error)}
    except Exception as error:  # said to the clients that wait, and the agent goes on
        logging.getLogger(__name__).exception("the environment cannot be made")
        answer = {"error": f"{type(error).__name__}: {error}"}
    try:
        os.write(1, json.dumps(answer).encode() + b"\n")
        os.close(1)
    except OSError:
        return 1
    while os.read(0, 4096):
        pass
    for lock in locks:
        lock.release()
    return 0


def request_from(plain: dict[str, Any]) -> Request:
    """Read a request. Raises PackagesError for packages that are not well formed."""
    values = {name: plain[name] for name in ("files", "allowed", "cache", "limit_bytes", "seconds")}
    return Request(package_set_from(plain["packages"]), **values)


def request_to_plain(request: Request) -> dict[str, Any]:
    """A request as plain JSON."""
    values = {name: getattr(request, name) for name in ("files", "allowed", "cache", "limit_bytes", "seconds")}
    return {"packages": request.packages.to_manifest(), **values}


def _read_line(descriptor: int) -> bytes:
    """Read the first line. What comes after it, and the end of the input, is left to be seen by `select`."""
    data = bytearray()
    while not data.endswith(b"\n") and len(data) < MAX_REQUEST_BYTES:
        chunk = os.read(descriptor, 65536)
        if not chunk:
            break
        data += chunk
    return bytes(data)


if __name__ == "__main__":
    sys.exit(main())
