"""The rules for names and samples of metrics, as in promtool and Prometheus' documents. Each breach is one line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import Metric

NAME = re.compile(r"scaler(_[a-z][a-z0-9]*)+")
RESERVED_ENDINGS = ("_count", "_sum", "_bucket", "_created", "_total", "_info")
OTHER_UNITS = {
    "milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "days", "ms", "us", "ns", "percent", "kilobytes",
    "megabytes", "kb", "mb", "kib", "mib", "bits",
}  # fmt: skip
KINDS_AS_WORDS = {"gauge", "counter", "histogram", "summary", "untyped"}
UNITS = {"seconds", "bytes"}


def breaches(families: Iterable[Metric]) -> list[str]:
    """Breaches of the rules in families as Prometheus' parser returns them: names of counters without `_total`."""
    families = list(families)
    twice = [name for name, count in Counter(family.name for family in families).items() if count > 1]
    found = [f"{name} is there more than once" for name in twice]
    for family in families:
        found += [f"{family.name} {complaint}" for complaint in (*_of_name(family), *_of_samples(family))]
    return found


def _of_name(family: Metric) -> Iterator[str]:
    words = family.name.split("_")
    if not NAME.fullmatch(family.name):
        yield "is no name in lower case with underscores that begins with scaler"
    if not family.documentation or not family.documentation.endswith("."):
        yield "has no help"
    name = family.name.removesuffix("_info") if family.type == "gauge" else family.name
    if name.endswith(RESERVED_ENDINGS):
        yield "ends as what is made of other metrics"
    for word in words:
        if word in OTHER_UNITS:
            yield f"has the unit {word}, which is not a base unit"
        if word in KINDS_AS_WORDS:
            yield f"says that it is a {word}"
    for unit in UNITS & set(words[:-1]):
        if family.type != "info":
            yield f"has its unit {unit} within"
    if family.type == "unknown":
        yield "has no type"


def _of_samples(family: Metric) -> Iterator[str]:
    seen = set()
    for sample in family.samples:
        labels = tuple(sorted(sample.labels.items()))
        if (sample.name, labels) in seen:
            yield f"has {sample.name}{dict(labels)} more than once"
        seen.add((sample.name, labels))
        for label in sample.labels:
            if not re.fullmatch("[a-z]+", label):
                yield f"has a label {label}"
        if sample.value != sample.value or (family.type in ("counter", "histogram") and sample.value < 0):
            yield f"is {sample.value}"
    if family.type == "histogram":
        yield from _of_buckets(family)


def _of_buckets(family: Metric) -> Iterator[str]:
    buckets = [(float(each.labels["le"]), each.value) for each in family.samples if each.name.endswith("_bucket")]
    edges, counts = [edge for edge, _ in buckets], [count for _, count in buckets]
    if edges != sorted(set(edges)) or edges[-1] != float("inf"):
        yield "has edges that do not ascend to infinity"
    if counts != sorted(counts):
        yield "has buckets that do not ascend: they are cumulative"
    (total,) = [each.value for each in family.samples if each.name.endswith("_count")]
    if counts[-1] != total:
        yield f"has {total} observations and {counts[-1]} in its last bucket"
