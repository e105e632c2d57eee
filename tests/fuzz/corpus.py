"""The fuzzer's corpus: one zip archive of inputs for each target, in `tests/fuzz/corpus/`.

Archives keep git fast: the corpus has about 2,000 inputs. The same inputs give the same bytes of an archive.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"


def archive_of(target: str) -> Path:
    return FOLDER / f"{target}.zip"


def read_corpus(target: str) -> dict[str, bytes]:
    """Return the content of each input of `target`, by the input's name."""
    with zipfile.ZipFile(archive_of(target)) as archive:
        return {name: archive.read(name) for name in sorted(archive.namelist())}


def write_corpus(target: str, inputs: dict[str, bytes]) -> None:
    """Replace the archive of `target`. `inputs` has the content of each input by its name."""
    FOLDER.mkdir(exist_ok=True)
    with zipfile.ZipFile(archive_of(target), "w") as archive:
        for name in sorted(inputs):
            entry = zipfile.ZipInfo(name)  # has a constant date
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, inputs[name], compresslevel=9)
