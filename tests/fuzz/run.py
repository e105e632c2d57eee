"""Fuzzing guided by coverage. `make fuzz` calls it: `python -m tests.fuzz.run --target NAME --seconds N`.

What it finds to be new goes to a folder outside of the tree (`--found`), where a crash leaves its bytes too.
`--keep BYTES` takes the smallest of that into the corpus in the tree, so many bytes a target.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parents[2]
LONGEST = {"scheduler_wire": 2048, "scheduler_core": 1024, "peers_wire": 2048, "client_api": 512}
"""Bytes of an input."""


def main() -> int:
    arguments = _parse()
    if arguments.within:
        _fuzz(arguments.within, arguments.rest)
    names = list(LONGEST) if arguments.target == "all" else [arguments.target]
    for name in names:
        found = Path(arguments.found or tempfile.gettempdir()) / name
        found.mkdir(parents=True, exist_ok=True)
        if arguments.keep:
            _keep(found, CORPUS / name, arguments.keep)
            continue
        options = [f"-max_total_time={arguments.seconds // len(names)}", str(found), str(CORPUS / name)]
        limits = [f"-artifact_prefix={found}/", f"-max_len={LONGEST[name]}", "-timeout=20", "-rss_limit_mb=2048"]
        print(f"### {name}", flush=True)
        command = [sys.executable, "-m", "tests.fuzz.run", "--within", name, "--", *limits, *options]
        status = subprocess.run(command, cwd=ROOT).returncode
        if status:
            print(f"{name}: found something; its bytes are the newest file in {found}", file=sys.stderr)
            return status
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.fuzz.run", description=__doc__)
    parser.add_argument("--target", choices=["all", *LONGEST], default="all")
    parser.add_argument("--seconds", type=int, default=600, help="for all targets together")
    parser.add_argument("--found", help="a folder for what is new")
    parser.add_argument("--keep", type=int, default=0, help="bytes: instead of fuzzing, renew the corpus from there")
    parser.add_argument("--within", choices=list(LONGEST), help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def _keep(found: Path, corpus: Path, most: int) -> None:
    """libFuzzer has kept what adds to the coverage alone, and the shorter one of two alike."""
    chosen: dict[str, bytes] = {}
    size = 0
    for path in sorted([*found.iterdir(), *corpus.iterdir()], key=lambda path: (path.stat().st_size, path.name)):
        content = path.read_bytes()
        if size + len(content) > most:
            break
        if content not in chosen.values():
            chosen[path.name] = content
            size += len(content)
    for path in corpus.iterdir():
        path.unlink()
    for name, content in chosen.items():
        (corpus / name).write_bytes(content)


def _fuzz(name: str, options: list[str]) -> None:
    """In a process of its own: libFuzzer ends it."""
    import atheris

    logging.disable()  # the client logs what callbacks raise

    with atheris.instrument_imports(include=["scaler_scheduler", "scaler_client"]):
        from tests.fuzz.targets import TARGETS

        import scaler_client.protocol.wire  # noqa: F401

        if name == "client_api":
            import tests.fuzz.client_api  # noqa: F401
    atheris.Setup([sys.argv[0], *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
