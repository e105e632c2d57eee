"""The provider `ssh`: a list of hosts, each with at most one agent, by OpenSSH's client.

The number in a host's name says which host of the list it is. On it, a file in ~/.cache/scaler-autoscaler has the
agent's process id; the agent's log lies beside it. The next list removes both when the agent has ended, and brings the
end of the log.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from scaler_client.autoscale.pools import parse_host_name

from .providers import HostCommand, ProviderError, for_each, raise_first, run_program

CONNECT_SECONDS = 10

LOG_LINES = 5
"""So many lines of the log of an ended agent are kept."""

LOG_CHARACTERS = 500
"""At most so many characters of them, the last ones."""

_LINE_END = "\x1f"
"""Ends a line of a log within a line of a list."""

_FOLDER = 'd="$HOME/.cache/scaler-autoscaler"; '

_START = (
    '(cd "$HOME"; command -v {program} >/dev/null) || '
    '{{ echo {program} "is not found on this host; PATH is $PATH" >&2; exit 127; }}; '
    + _FOLDER
    + 'umask 077; mkdir -p "$d" && cd "$d" || exit 1; '
    'nohup $(command -v setsid) sh -c \'echo $$ >{name}.pid; cd "$HOME"; exec "$@"\' {name} {command} '
    ">{name}.log 2>&1 </dev/null & "
    # It is there when its file has an id, which takes milliseconds.
    "n=0; while [ ! -s {name}.pid ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done; [ -s {name}.pid ]"
)

# Whether the process of a file still is the agent of this name: ids are used again.
_IS_AGENT = (
    'p=$(cat "$f" 2>/dev/null) && [ -n "$p" ] && '
    'ps -ww -o args= -p "$p" | grep -qF -e "--agent-name ${{f%.pid}} "'  # without -ww it may cut the arguments
)

_LIST = (
    _FOLDER
    + 'cd "$d" 2>/dev/null || exit 0; for f in {pool}-*-*.pid; do [ -e "$f" ] || continue; '
    + _IS_AGENT
    + '; if [ $? -eq 0 ]; then echo "${{f%.pid}}"; else printf "%s " "-${{f%.pid}}"; '
    f'tail -c 4000 "${{{{f%.pid}}}}.log" 2>/dev/null | tail -n {LOG_LINES} | tr "\\n" "\\037"; echo; '
    'rm -f "$f" "${{f%.pid}}.log"; fi; done'
)

_SIGNAL = _FOLDER + 'cd "$d" 2>/dev/null || exit 0; f={name}.pid; if ' + _IS_AGENT + "; then {signal}; fi"


class SshProvider:
    """Runs host agents on a list of hosts.

    Args:
        command: makes the command of a host.
        seconds: the longest run of ssh.
    """

    def __init__(self, command: HostCommand, seconds: float) -> None:
        self._command = command
        self._hosts = command.settings.hosts
        self._seconds = seconds
        self._listed: dict[str, set[str]] = {}
        """The agents of each host by its last answer. A host that does not answer keeps them."""
        self._last_lines: dict[str, str] = {}

    def start(self, names: Sequence[str]) -> dict[str, str]:
        def start_one(name: str) -> None:
            arguments = self._command.arguments(name)
            program, command = shlex.quote(arguments[0]), shlex.join(arguments)
            self._run(self._host(name), _START.format(name=name, program=program, command=command))

        failed = for_each(names, start_one)
        if len(failed) == len(names):
            raise_first(failed)
        return failed

    def drain(self, names: Sequence[str]) -> None:
        self._signal(names, 'kill -TERM "$p"')

    def kill(self, names: Sequence[str]) -> None:
        # First in order: SIGINT ends the agent and its workers within two seconds.
        self._signal(
            names, 'kill -INT "$p"; sleep 3; kill -KILL -- "-$p" 2>/dev/null || kill -KILL "$p" 2>/dev/null; true'
        )

    def host_names(self) -> set[str]:
        script = _LIST.format(pool=self._command.pool.name)

        def list_one(host: str) -> None:
            names = set()
            for line in self._run(host, script).split("\n"):
                name, _, said = line.strip().partition(" ")
                if parse_host_name(name) is not None:
                    names.add(name)
                elif name.startswith("-") and parse_host_name(name[1:]) is not None:
                    self._last_lines[name[1:]] = _one_line(said)
            self._listed[host] = names

        errors = for_each(self._hosts, list_one)
        if len(errors) == len(self._hosts):
            raise_first(errors)
        return {name for names in self._listed.values() for name in names}

    def last_lines(self) -> dict[str, str]:
        found, self._last_lines = self._last_lines, {}
        return found

    def _host(self, name: str) -> str:
        parsed = parse_host_name(name)
        if parsed is None or parsed[1] >= len(self._hosts):
            raise ProviderError(f"{name} is on no host of the list any more")
        return self._hosts[parsed[1]]

    def _signal(self, names: Sequence[str], command: str) -> None:
        def signal_one(name: str) -> None:
            self._run(self._host(name), _SIGNAL.format(name=name, signal=command))

        raise_first(for_each(names, signal_one))

    def _run(self, host: str, script: str) -> str:
        options = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}", *self._command.settings.options]
        options += ["-o", "LogLevel=ERROR"]  # no warning that it has added a host's key; ssh takes the first value
        return run_program(["ssh", *options, "--", host, script], seconds=self._seconds, keeps_begin=True)


def _one_line(said: str) -> str:
    """Return the lines of a log as one, without control characters."""
    lines = [" ".join(line.split()) for line in said.split(_LINE_END)]
    text = " | ".join(filter(None, lines))[-LOG_CHARACTERS:]
    return "".join(character if character.isprintable() else "?" for character in text)
