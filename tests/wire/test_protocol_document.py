"""PROTOCOL.md describes every message and every field of the schema."""

from __future__ import annotations

import re
import runpy

from tests.wire.vectors import FOLDER

PROTOCOL = FOLDER.parent
SCHEMA = (PROTOCOL / "scaler.capnp").read_text("utf-8")
DOCUMENT = (PROTOCOL / "PROTOCOL.md").read_text("utf-8")
WRITER = runpy.run_path(str(PROTOCOL.parents[1] / "packaging" / "protocol_fields.py"))


def test_field_tables_are_up_to_date() -> None:
    """If it fails, run make schema."""
    assert WRITER["with_field_tables"](DOCUMENT, SCHEMA) == DOCUMENT


def test_each_field_has_a_meaning() -> None:
    """Each field has a comment in the schema, or a default meaning by its name."""
    parts = WRITER["definitions"](SCHEMA)
    assert [f"{part.name}.{field.name}" for part in parts for field in part.fields if not field.meaning] == []


def test_field_tables_are_complete() -> None:
    """Check without the code that writes the tables."""
    code = re.sub(r"#.*", "", SCHEMA)
    listed = DOCUMENT[DOCUMENT.index(WRITER["BEGIN"]) :]
    rows = re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)
    members = WRITER["message_names"](SCHEMA)
    fields = re.findall(r"(\w+) @\d+", code)
    assert sorted(rows) == sorted([field for field in fields if field not in members] + _both(fields, members))
    defined = re.findall(r"(?:struct|enum) (\w+) \{", code)
    assert re.findall(r"^\*\*`(\w+)`\*\*", listed, re.MULTILINE) == [name for name in defined if name != "Message"]


def _both(fields: list[str], members: list[str]) -> list[str]:
    """Names of messages that are also names of fields or enum members."""
    return [name for name in members for _ in range(fields.count(name) - 1)]


def test_each_message_has_a_row() -> None:
    table = DOCUMENT[DOCUMENT.index("\n## Messages") : DOCUMENT.index("\n### Fields beyond")]
    named = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert named == set(WRITER["message_names"](SCHEMA))


def test_text_mentions_each_outcome() -> None:
    text = DOCUMENT[: DOCUMENT.index("\n## Every field")]
    outcomes = next(part for part in WRITER["definitions"](SCHEMA) if part.name == "Outcome")
    missing = [field.name for field in outcomes.fields if f"`{field.name}`" not in text]
    assert missing == []
