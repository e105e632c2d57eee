"""`python packaging/documents FOLDER`: writes man pages, completions and default configurations.

man/<command>.1, completions/bash/<command>, completions/zsh/_<command>, configuration/scheduler.toml and so on.
"""

from __future__ import annotations

import sys
from pathlib import Path

from commands import COMMANDS
from completions import write_completions
from man_pages import write_man_pages

from scaler_client.commands.default_file import default_file


def main(folder: Path) -> None:
    """Write all documents into a folder."""
    write_man_pages(folder / "man")
    write_completions(folder / "completions")
    (folder / "configuration").mkdir(parents=True, exist_ok=True)
    for documented in COMMANDS:
        if documented.command is None:
            continue
        name = Path(documented.command.default_file).name
        text = default_file(documented.command, documented.program)
        (folder / "configuration" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
