"""Failures of providers are logged once for each cause, although names of hosts are random."""

from __future__ import annotations

from scaler_worker.autoscaler.provider_threads import Action
from scaler_worker.autoscaler.service import MAX_CAUSES, FailureLog

REFUSED = "ssh ended with status 255: ssh: connect to host box port 22: Connection refused"


def test_a_cause_is_logged_once_until_the_call_works() -> None:
    failures = FailureLog()
    assert failures.is_new("a", Action.START, f"a-0-abc123: {REFUSED} (and 2 more)")
    assert not failures.is_new("a", Action.START, f"a-1-xyz789: {REFUSED}"), "another host"
    assert not failures.is_new("a", Action.START, REFUSED), "one of several hosts"
    assert failures.is_new("a", Action.START, f"a-1-xyz789: {REFUSED.replace('refused', 'timed out')}")
    assert not failures.is_new("a", Action.START, f"a-2-xyz780: {REFUSED}"), "after another cause"
    assert failures.is_new("b", Action.START, f"b-0-abc123: {REFUSED}"), "another pool"
    assert failures.is_new("a", Action.DRAIN, f"a-0-abc123: {REFUSED}"), "another call"
    assert (failures.works("a", Action.START), failures.works("a", Action.START)) == (5, 0)
    assert failures.is_new("a", Action.START, f"a-0-abc123: {REFUSED}")


def test_only_so_many_causes_are_remembered() -> None:
    failures = FailureLog()
    assert all(failures.is_new("a", Action.LIST, f"process {number}") for number in range(MAX_CAUSES))
    assert not failures.is_new("a", Action.LIST, "process 0")
    assert failures.is_new("a", Action.LIST, "a further one") and failures.is_new("a", Action.LIST, "process 0")
