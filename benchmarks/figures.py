"""A figure: one quantity, measured in several runs, and its bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Bar:
    value: float
    is_lower_limit: bool

    def is_met_by(self, value: float) -> bool:
        return value >= self.value if self.is_lower_limit else value <= self.value


def at_least(value: float) -> Bar:
    return Bar(value, True)


def at_most(value: float) -> Bar:
    return Bar(value, False)


@dataclass(frozen=True)
class Figure:
    name: str
    """The name in the JSON: unique within a result, and the same in every result."""
    title: str
    unit: str
    runs: Sequence[float]
    """The value of each run, in order, without the warm-up."""
    bar: Bar | None = None

    @property
    def median(self) -> float:
        return median(self.runs)

    @property
    def is_met(self) -> bool | None:
        """Whether the median meets the bar; None if there is no bar."""
        return None if self.bar is None else self.bar.is_met_by(self.median)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "unit": self.unit,
            "runs": list(self.runs),
            "median": self.median,
            "min": min(self.runs),
            "max": max(self.runs),
            "bar": None if self.bar is None else self.bar.value,
            "bar_is": None if self.bar is None else ("at least" if self.bar.is_lower_limit else "at most"),
            "is_met": self.is_met,
        }


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the ratio of each pair of runs. A disturbance mostly hits both runs of a pair."""
    return [numerator / denominator for numerator, denominator in zip(numerators, denominators, strict=True)]


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
