"""Rate limits: a number of operations at once, and a number a second."""

from scaler_scheduler.net.rate_limit import RateLimits


def test_burst_and_rate() -> None:
    rate_limits = RateLimits(3, 2)
    assert [rate_limits.exceeds(b"a", 100.0) for _ in range(3)] == [False] * 3
    assert not rate_limits.exceeds(b"b", 100.0), "each key has its own limit"
    assert not rate_limits.exceeds(b"a", 100.5), "one operation is allowed again"
    assert rate_limits.exceeds(b"a", 100.5)
    assert not rate_limits.exceeds(b"a", 100.5), "the count begins anew"


def test_old_entries_are_removed() -> None:
    rate_limits = RateLimits(3, 2)
    for number in range(100):
        rate_limits.exceeds(b"%d" % number, float(number))
    assert len(rate_limits._used) < 20
