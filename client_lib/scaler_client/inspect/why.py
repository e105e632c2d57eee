"""`scaler_client why`: why a task waits, or where it runs."""

from __future__ import annotations

from typing import Any

from ..monitor.snapshot_view import SnapshotView
from ..monitor.task_names import exact_name
from ..monitor.text_layout import BOLD, OutputFormat, clean, wrapped
from .story import current_state
from .task_lookup import Story


def why_text(output: OutputFormat, story: Story, view: SnapshotView) -> list[str]:
    """The lines of the answer: the task, and each reason."""
    head = output.styled(f"{clean(story.name)}#{story.id}", BOLD) + f"  task {exact_name(story.client, story.id)}"
    if not story.wait_reasons:
        return [head, *wrapped(current_state(story, view), output.columns)]
    width = max(len(kind) for kind, _ in story.wait_reasons)
    lines = [head]
    for kind, text in story.wait_reasons:
        first, *more = wrapped(clean(text), max(20, output.columns - width - 2)) or [""]
        lines += [f"{kind:{width}}  {first}", *(" " * (width + 2) + line for line in more)]
    return lines


def why_json(story: Story, view: SnapshotView) -> dict[str, Any]:
    """The answer as JSON. Its keys are stable."""
    return {
        "task": exact_name(story.client, story.id),
        "client": str(story.client),
        "id": str(story.id),
        "name": story.name,
        "reasons": [{"kind": kind, "text": text} for kind, text in story.wait_reasons],
        "now": current_state(story, view),
    }
