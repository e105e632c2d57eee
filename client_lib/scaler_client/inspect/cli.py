"""The command `scaler_client`: runs the subcommands."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .. import __version__
from ..commands.command_line import begin_command
from ..commands.options import OptionError, fail
from ..errors import PackagesError
from ..monitor.monitor_address import resolve_monitor_address
from ..monitor.socket import MonitorKeysError
from ..monitor.task_names import parse_task_query
from ..monitor.text_layout import output_format, print_lines
from .arguments import PROGRAM, parse_command_line
from .dump import check_file, dump_json, write_dump
from .environment import check_action, write_lock
from .status import status_json, status_text
from .story import story_json, story_text
from .subscription import NoAnswerError, Subscription
from .task_lookup import UnknownTaskError, find_story
from .why import why_json, why_text
from .workers import select_workers, workers_json, workers_text

NO_ANSWER = 1
PROBLEM = 1
"""The exit status of the doctor if it has found an error."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: the arguments without the program's name; None takes those of the process.

    Returns:
        The exit status.
    """
    begin_command()
    try:
        command_line = parse_command_line(sys.argv[1:] if argv is None else argv, os.environ)
        if not command_line.subcommand:
            print(f"{PROGRAM} {_versions()}")
            return 0
        return _answer(command_line.subcommand, command_line.values)
    except (OptionError, MonitorKeysError, PackagesError) as error:
        return fail(PROGRAM, str(error))
    except (NoAnswerError, UnknownTaskError) as error:
        fail(PROGRAM, str(error))
        return NO_ANSWER
    except KeyboardInterrupt:
        return 130


def _doctor(values: Mapping[str, Any]) -> int:
    # Not at the top: the other subcommands run without the packages that a client needs.
    from .doctor.examination import Settings, examine
    from .doctor.report import Status, check_lines, report_json, summary, worst
    from .doctor.script_imports import read_imports

    script = read_imports(values["script"]) if values["script"] else None
    settings = Settings(values["address"], values["keys"], values["timeout"], script)
    output = output_format(sys.stdout)
    checks = []
    for check in examine(settings):
        checks.append(check)
        if not values["json"]:
            print_lines(check_lines(output, check))
    if values["json"]:
        _show_json(report_json(checks, "" if settings.address is None else str(settings.address)))
    else:
        print_lines([summary(checks)])
    return PROBLEM if worst(checks) == Status.ERROR else 0


def _answer(subcommand: str, values: Mapping[str, Any]) -> int:
    if subcommand == "doctor":
        return _doctor(values)
    if subcommand == "environment":
        check_action(values["action"])
        write_lock(values["output"], values["force"], values["hashes"], os.environ)
        return 0
    address = resolve_monitor_address(values)
    ask = {"status": _status, "workers": _workers, "story": _story, "why": _why, "dump": _dump}[subcommand]
    validated = _validate(subcommand, values)
    subscription = Subscription(address, values["timeout"], values["keys"])
    try:
        ask(subscription, values, validated)
    finally:
        subscription.close()
    return 0


def _validate(subcommand: str, values: Mapping[str, Any]) -> Any:
    """Check the arguments before the scheduler is contacted. Raises OptionError."""
    try:
        if subcommand in ("story", "why"):
            return parse_task_query(values["task_id"])
    except ValueError as error:
        raise OptionError(str(error)) from None
    if subcommand == "dump":
        check_file(values["file"], values["force"])
    return None


def _status(subscription: Subscription, values: Mapping[str, Any], _: Any) -> None:
    view, address = subscription.view(), str(subscription.address)
    if values["json"]:
        _show_json(status_json(view, address))
    else:
        print_lines(status_text(output_format(sys.stdout), view, address))


def _workers(subscription: Subscription, values: Mapping[str, Any], _: Any) -> None:
    view = subscription.view()
    rows = select_workers(view, values["sort"], values["filter"])
    if values["json"]:
        _show_json(workers_json(view, rows))
    else:
        print_lines(workers_text(output_format(sys.stdout), view, rows))


def _story(subscription: Subscription, values: Mapping[str, Any], query: Any) -> None:
    story = find_story(subscription, subscription.view(has_rates=False), query)
    view = subscription.view(has_rates=False)
    if values["json"]:
        _show_json(story_json(story, view))
    else:
        print_lines(story_text(output_format(sys.stdout), story, view))


def _why(subscription: Subscription, values: Mapping[str, Any], query: Any) -> None:
    story = find_story(subscription, subscription.view(has_rates=False), query)
    view = subscription.view(has_rates=False)
    if values["json"]:
        _show_json(why_json(story, view))
    else:
        print_lines(why_text(output_format(sys.stdout), story, view))


def _dump(subscription: Subscription, values: Mapping[str, Any], _: Any) -> None:
    write_dump(values["file"], values["force"], dump_json(subscription, os.environ))


def _show_json(answer: dict[str, Any]) -> None:
    print_lines([json.dumps(answer, indent=2)])


def _versions() -> str:
    from ..net.versions import versions_text

    return versions_text(__version__)
