"""The commands with documents, and their tables of options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scaler_client.commands.command_line import argument_parser
from scaler_client.exporter.config import COMMAND as EXPORTER
from scaler_client.inspect.arguments import SUBCOMMANDS
from scaler_client.inspect.arguments import argument_parser as client_parser
from scaler_client.top.config import COMMAND as TOP
from scaler_client.ui.config import COMMAND as UI
from scaler_scheduler.auth.key_commands import argument_parser as key_parser
from scaler_scheduler.config.config import COMMAND as SCHEDULER
from scaler_worker.autoscaler.config import COMMAND as AUTOSCALER
from scaler_worker.config import COMMAND as CLUSTER


@dataclass(frozen=True)
class Documented:
    """A command with documents."""

    program: str
    command: Any
    """Its table of options: a `Command` of scaler_client, or of the scheduler, whose class has the same fields. None:
    the command has subcommands and no configuration."""
    aliases: tuple[str, ...] = ()
    """Older names of the command."""
    key_commands: Callable[[], argparse.ArgumentParser] | None = None
    """Makes the parser of the subcommands that may stand in place of the address."""

    @property
    def subcommands(self) -> dict[str, argparse.ArgumentParser]:
        """The parsers of the subcommands by name."""
        parser = self.parser(self.program) if self.key_commands is None else self.key_commands()
        actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        return {name: part for action in actions for name, part in action.choices.items()}

    def parser(self, program: str) -> argparse.ArgumentParser:
        """The parser of the command under this name."""
        return client_parser(program) if self.command is None else argument_parser(self.command, program)

    @property
    def options(self) -> dict[str, Any]:
        """All options by key, including those of subcommands."""
        commands = [each.command for each in SUBCOMMANDS] if self.command is None else [self.command]
        return {option.key: option for command in commands for option in command.options}


COMMANDS = (
    Documented("scaler_scheduler", SCHEDULER, key_commands=key_parser),
    Documented("scaler_cluster", CLUSTER, aliases=("scaler_worker",)),
    Documented("scaler_top", TOP),
    Documented("scaler_exporter", EXPORTER),
    Documented("scaler_client", None),
    Documented("scaler_ui", UI),
    Documented("scaler_autoscaler", AUTOSCALER),
)
