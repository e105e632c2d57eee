"""The command `scaler_client`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .. import __version__
from ..commands.options import OptionError, fail, interpreter
from ..monitor.options import monitor_address
from ..monitor.socket import MonitorKeysError
from ..monitor.task_names import parse_wanted
from ..monitor.text_layout import page_of, show
from .arguments import PROGRAM, parse_question
from .dump import check_file, dump_json, write_dump
from .first_snapshot import NothingHeardError, Watching
from .status import status_json, status_text
from .story import story_json, story_text
from .task_lookup import UnknownTaskError, find_story
from .workers import chosen, workers_json, workers_text

NOTHING_HEARD = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command to its end; `argv` is without the program's name. Returns the exit status."""
    try:
        question = parse_question(sys.argv[1:] if argv is None else argv, os.environ)
        if not question.subcommand:
            print(f"{PROGRAM} {_versions()}")
            return 0
        return _answer(question.subcommand, question.values)
    except (OptionError, MonitorKeysError) as error:
        return fail(PROGRAM, str(error))
    except (NothingHeardError, UnknownTaskError) as error:
        fail(PROGRAM, str(error))
        return NOTHING_HEARD
    except KeyboardInterrupt:
        return 130


def _answer(subcommand: str, values: Mapping[str, Any]) -> int:
    address = monitor_address(values)
    ask = {"status": _status, "workers": _workers, "story": _story, "dump": _dump}[subcommand]
    prepared = _prepare(subcommand, values)
    watching = Watching(address, values["timeout"], values["keys"])
    try:
        ask(watching, values, prepared)
    finally:
        watching.close()
    return 0


def _prepare(subcommand: str, values: Mapping[str, Any]) -> Any:
    """What can be wrong before anybody is asked. Raises OptionError."""
    try:
        if subcommand == "story":
            return parse_wanted(values["task_id"])
    except ValueError as error:
        raise OptionError(str(error)) from None
    if subcommand == "dump":
        check_file(values["file"], values["force"])
    return None


def _status(watching: Watching, values: Mapping[str, Any], _: Any) -> None:
    picture, address = watching.picture(), str(watching.address)
    if values["json"]:
        _show_json(status_json(picture, address))
    else:
        show(status_text(page_of(sys.stdout), picture, address))


def _workers(watching: Watching, values: Mapping[str, Any], _: Any) -> None:
    picture = watching.picture()
    rows = chosen(picture, values["sort"], values["filter"])
    if values["json"]:
        _show_json(workers_json(picture, rows))
    else:
        show(workers_text(page_of(sys.stdout), picture, rows))


def _story(watching: Watching, values: Mapping[str, Any], wanted: Any) -> None:
    story = find_story(watching, watching.picture(has_rates=False), wanted)
    picture = watching.picture(has_rates=False)
    if values["json"]:
        _show_json(story_json(story, picture))
    else:
        show(story_text(page_of(sys.stdout), story, picture))


def _dump(watching: Watching, values: Mapping[str, Any], _: Any) -> None:
    write_dump(values["file"], values["force"], dump_json(watching, os.environ))


def _show_json(answer: dict[str, Any]) -> None:
    show([json.dumps(answer, indent=2)])


def _versions() -> str:
    import zmq

    from ..protocol.messages import PROTOCOL_VERSION

    return f"{__version__}, {interpreter()}, ZeroMQ {zmq.zmq_version()}, protocol version {PROTOCOL_VERSION}"
