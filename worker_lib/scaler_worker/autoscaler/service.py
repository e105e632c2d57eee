"""The loop of `scaler_autoscaler`: snapshots and outcomes of providers go to the policy, its decisions to providers."""

from __future__ import annotations

import logging
import os
import queue
import random
import re
import string
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from scaler_client.autoscale import AutoscalePolicy, Decision, Drain, Kill, Start, demand_of
from scaler_client.autoscale.pools import HOST_NAME
from scaler_client.commands.exit_signal import exit_signal
from scaler_client.commands.key_files import WORKER, KeyFileError, PeerKeys, key_error_text, read_peer_keys
from scaler_client.commands.logs import on_one_line
from scaler_client.commands.options import EXIT_UNAVAILABLE, fail
from scaler_client.commands.systemd_notify import SystemdNotifier, pop_variables
from scaler_client.monitor.reader import Presence
from scaler_client.monitor.socket import MonitorAccessError, MonitorSocket

from .. import __version__
from .command import CommandProvider
from .config import PROGRAM, Config
from .kubernetes_pods import KubernetesProvider
from .local import LocalProvider
from .pool_settings import PoolSettings
from .provider_threads import LIST_SECONDS, Action, Outcome, ProviderThread
from .providers import HostCommand, Provider
from .report_link import ReportLink
from .slurm import SlurmProvider
from .ssh import SshProvider

TURN_SECONDS = 0.25
"""The longest wait of the loop for a snapshot."""

LOCAL_LIST_SECONDS = 0.5
"""Local hosts are listed more often: it costs nothing."""

PROBLEM_SECONDS = 3.0
"""A problem with the scheduler's monitor address is logged if it lasts so long: the scheduler may start, or end."""

STOP_SECONDS = 6.0
"""With `end_hosts`: how long the hosts may take to end. After this time they are killed."""

NAMED_HOSTS = 5
"""So many names of hosts are in the log line of a decision."""

MAX_CAUSES = 100
"""So many causes of failures are remembered for each kind of call of a pool."""

_OTHERS = re.compile(r" \(and [0-9]+ more\)$")
"""What the error of a call for several hosts ends with."""

_ACTIONS: dict[type, Action] = {Start: Action.START, Drain: Action.DRAIN, Kill: Action.KILL}
_PAST = {Action.START: "started", Action.DRAIN: "drained", Action.KILL: "ended", Action.LIST: "listed"}

_log = logging.getLogger(__name__)


def run(config: Config) -> int:
    """Run until a signal ends the process. Returns the exit status."""
    notifier = SystemdNotifier(pop_variables(os.environ))
    try:
        keys = read_peer_keys(config.keys, WORKER) if config.keys else None
    except KeyFileError as error:
        return fail(PROGRAM, key_error_text(config.keys, error))
    with exit_signal() as exit_requested:
        try:
            with MonitorSocket(config.monitor_address, keys=config.keys) as monitor:
                return Autoscaler(config, monitor, keys, notifier).serve(exit_requested)
        except MonitorAccessError as error:
            return fail(PROGRAM, str(error), EXIT_UNAVAILABLE)
        finally:
            notifier.close()


def make_provider(settings: PoolSettings, config: Config) -> Provider:
    """Make the provider of a pool.

    Raises:
        ProviderError: something that the provider needs is missing.
    """
    command = HostCommand(settings, str(config.address), settings.keys or config.keys)
    if settings.provider == "local":
        return LocalProvider(command, ends_with_parent=config.end_hosts)
    makers: dict[str, Callable[[HostCommand, float], Provider]] = {
        "ssh": SshProvider,
        "slurm": SlurmProvider,
        "kubernetes": KubernetesProvider,
        "command": CommandProvider,
    }
    return makers[settings.provider](command, config.call_seconds)


class MonitorProblem:
    """Notes since when nothing can arrive from the monitor address."""

    def __init__(self) -> None:
        self._text = ""
        self._since = 0.0
        self._is_told = False

    def new(self, text: str, now: float) -> str:
        """Return the problem when it has lasted for PROBLEM_SECONDS, once; else an empty text.

        Args:
            text: the present problem; empty: none.
            now: the monotonic time in seconds.
        """
        if text != self._text:
            self._text, self._since, self._is_told = text, now, False
        if self._is_told or now - self._since < PROBLEM_SECONDS:
            return ""
        self._is_told = True
        return text


class FailureLog:
    """Decides which failures of providers are logged: each cause of a pool once, until its calls work again."""

    def __init__(self) -> None:
        self._causes: dict[tuple[str, Action], dict[str, int]] = {}
        """How often each cause came, without names of hosts, which are random."""

    def is_new(self, pool: str, action: Action, text: str) -> bool:
        """Count a failure. Returns whether its cause is new."""
        causes = self._causes.setdefault((pool, action), {})
        cause = HOST_NAME.sub("", _OTHERS.sub("", text)).lstrip(": ")
        causes[cause] = causes.get(cause, 0) + 1
        if len(causes) > MAX_CAUSES:
            del causes[next(iter(causes))]
        return causes[cause] == 1

    def works(self, pool: str, action: Action) -> int:
        """Note that a call works. Returns how many failures there were since the last one that worked."""
        return sum(self._causes.pop((pool, action), {}).values())


class Autoscaler:
    """Follows a scheduler, and carries out the decisions of the policy.

    Args:
        config: the configuration.
        monitor: the subscription to the scheduler.
        keys: a worker's keys, for the report of the pools; None: none.
        notifier: tells systemd the state.
    """

    def __init__(
        self, config: Config, monitor: MonitorSocket, keys: PeerKeys | None, notifier: SystemdNotifier
    ) -> None:
        self._config = config
        self._monitor = monitor
        self._notifier = notifier
        now = time.monotonic()
        self._link = None if config.dry_run else ReportLink(config.address, keys, now)
        drawn = random.SystemRandom()
        self._policy = AutoscalePolicy(
            [settings.pool for settings in config.pool],
            target_seconds=config.target_seconds,
            idle_seconds=config.idle_seconds,
            draw=lambda: "".join(drawn.choices(string.ascii_lowercase + string.digits, k=6)),
            now=now,
        )
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._threads = {
            settings.pool.name: ProviderThread(
                settings.pool.name,
                partial(make_provider, settings, config),
                self._outcomes,
                LOCAL_LIST_SECONDS if settings.provider == "local" else LIST_SECONDS,
            )
            for settings in config.pool
        }
        self._failures = FailureLog()
        self._would: dict[tuple[str, type], int] = {}
        """With `dry_run`: how many hosts the last logged decision was about, by pool and kind."""
        self._seen = 0
        """The number of the newest snapshot that the policy has seen."""
        self._scheduler = 0

    def serve(self, exit_requested: threading.Event) -> int:
        """Run the loop. Returns the exit status."""
        pools = ", ".join(self._threads)
        mode = "; dry run, nothing is started or ended" if self._config.dry_run else ""
        _log.info(f"{PROGRAM} {__version__}: pools {pools} for the scheduler at {self._config.address}{mode}")
        self._notifier.ready()
        presence, problem = Presence.UNKNOWN, MonitorProblem()
        try:
            while not exit_requested.is_set() and not self._is_orphan():
                self._monitor.wait(TURN_SECONDS)
                if self._monitor.reader.presence is not presence:
                    presence = self._monitor.reader.presence
                    _log.info(f"the scheduler at {self._monitor.address} is {presence.value}")
                # A parent process starts the scheduler beside this, and tells its user itself if that fails.
                if presence is not Presence.UNKNOWN or not self._config.parent_process:
                    found = "" if presence is Presence.UP else self._monitor.connection_problem()
                    new_problem = problem.new(found, time.monotonic())
                    if new_problem:
                        _log.warning(new_problem)
                self._apply_outcomes()
                if presence is Presence.UP:
                    self._decide()
                if self._link is not None:
                    self._link.tick(self._policy.counts(time.monotonic()), time.monotonic())
                self._notifier.watchdog()
                self._notifier.status(self._status())
        finally:
            self._notifier.stopping()
            self._end()
        return 0

    def _is_orphan(self) -> bool:
        return bool(self._config.parent_process) and os.getppid() != self._config.parent_process

    def _apply_outcomes(self) -> None:
        while True:
            try:
                outcome = self._outcomes.get_nowait()
            except queue.Empty:
                return
            self._apply(outcome, time.monotonic())

    def _apply(self, outcome: Outcome, now: float) -> None:
        pool, policy = outcome.pool, self._policy
        self._log_problem(outcome)
        if outcome.action is not Action.START:  # of starts, the policy is told more
            what = f"hosts could not be {_PAST[outcome.action]}: {outcome.error}" if outcome.error else ""
            policy.note_call(pool, outcome.action.value, what, now)
        if outcome.action is Action.LIST and not outcome.error:
            for line in policy.listed(pool, outcome.names, outcome.begun_at, now, outcome.failed):
                _log.warning(on_one_line(line))
        elif outcome.action is Action.START and outcome.error:
            policy.start_failed(pool, outcome.names, outcome.error, now)
        elif outcome.action is Action.START:
            policy.started(pool, [name for name in outcome.names if name not in outcome.failed], now)
            for name, reason in outcome.failed.items():
                policy.start_failed(pool, [name], reason, now)

    def _log_problem(self, outcome: Outcome) -> None:
        """Log that a provider fails, once for each cause until it works."""
        pool, action = outcome.pool, outcome.action
        failed = outcome.failed if action is Action.START else {}
        if outcome.error and self._failures.is_new(pool, action, outcome.error):
            _log.error(f"hosts of pool {pool} could not be {_PAST[action]}: {on_one_line(outcome.error)}")
        for name, reason in failed.items():
            if self._failures.is_new(pool, action, reason):
                _log.warning(f"host {name} could not be started: {on_one_line(reason)}")
        if not outcome.error and not failed and (count := self._failures.works(pool, action)):
            failures = "1 failure" if count == 1 else f"{count} failures"
            _log.info(f"hosts of pool {pool} can be {_PAST[action]} again, after {failures}")

    def _decide(self) -> None:
        view = self._monitor.reader.view
        assert view is not None
        snapshot = view.snapshot
        if (snapshot.incarnation, snapshot.sequence) == (self._scheduler, self._seen):
            return
        self._scheduler, self._seen = snapshot.incarnation, snapshot.sequence
        decisions, lines = self._policy.decide(demand_of(snapshot), time.monotonic())
        for line in lines:
            _log.warning(on_one_line(line))
        if self._config.dry_run:
            self._log_only(decisions)
            return
        for decision in decisions:
            shown = ", ".join(decision.names[:NAMED_HOSTS]) + (", ..." if len(decision.names) > NAMED_HOSTS else "")
            _log.info(on_one_line(f"{decision.reason}: {shown}"))
            self._threads[decision.pool].call(_ACTIONS[type(decision)], decision.names)

    def _log_only(self, decisions: list[Decision]) -> None:
        """Log what would be done. The policy forgets it, so that it decides the same again; it is logged once."""
        would: dict[tuple[str, type], int] = {}
        for decision in decisions:
            key = decision.pool, type(decision)
            would[key] = len(decision.names)
            if self._would.get(key) != would[key]:
                _log.info(on_one_line(f"would {decision.reason}"))
        self._would = would
        self._policy.withdraw(decisions)

    def _status(self) -> str:
        counts = self._policy.counts()
        parts = [f"{each.pool} {each.there} there, {each.booting} booting, {each.draining} draining" for each in counts]
        return "; ".join(parts)

    def _end(self) -> None:
        if self._link is not None:
            self._link.close()
        for thread in self._threads.values():
            thread.stop()
        if self._config.end_hosts and not self._config.dry_run:
            self._end_hosts(self._config.call_seconds)

    def _end_hosts(self, seconds: float) -> None:
        """End all hosts at once. Local ones end in order; those that do not end in time are killed."""
        deadline = time.monotonic() + min(seconds, STOP_SECONDS)
        providers: Mapping[str, Provider] = {
            name: thread.provider
            for name, thread in self._threads.items()
            if thread.join(max(0.0, deadline - time.monotonic())) and thread.provider is not None
        }
        for name, provider in providers.items():
            try:
                names = sorted(provider.host_names())
                if isinstance(provider, LocalProvider):
                    provider.stop(names)
                    while names and time.monotonic() < deadline:
                        time.sleep(0.02)
                        names = sorted(provider.host_names())
                if names:
                    provider.kill(names)
            except Exception as error:
                _log.error(f"hosts of pool {name} could not be ended: {error}")
