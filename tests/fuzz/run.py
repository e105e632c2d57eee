"""Fuzzing guided by coverage. `make fuzz` calls it: `python -m tests.fuzz.run --target NAME --seconds N`.

The fuzzer writes each input that reaches new code to a folder outside the tree (`--found`). It writes the input of a
crash there too. `--keep BYTES` replaces each target's corpus with the smallest inputs of the corpus and that folder, up
to so many bytes. `--add FILE` adds one input to the corpus of `--target`.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.corpus import read_corpus, write_corpus

ROOT = Path(__file__).parents[2]
MAX_INPUT_BYTES = {
    "scheduler_wire": 2048,
    "scheduler_core": 1024,
    "peers_wire": 2048,
    "client_api": 512,
    "data_address": 1024,
}
"""The most bytes of an input, for each target."""


def main() -> int:
    arguments = _parse()
    if arguments.within:
        _fuzz(arguments.within, arguments.rest)
    names = list(MAX_INPUT_BYTES) if arguments.target == "all" else [arguments.target]
    if arguments.add:
        (name,) = names
        path = Path(arguments.add)
        write_corpus(name, {**read_corpus(name), path.name: path.read_bytes()})
        return 0
    for name in names:
        found = Path(arguments.found or tempfile.gettempdir()) / name
        found.mkdir(parents=True, exist_ok=True)
        if arguments.keep:
            _keep(found, name, arguments.keep)
            continue
        limits = [
            f"-artifact_prefix={found}/",
            f"-max_len={MAX_INPUT_BYTES[name]}",
            "-timeout=20",
            "-rss_limit_mb=2048",
        ]
        print(f"### {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="scaler-corpus-") as corpus:
            for each, content in read_corpus(name).items():
                (Path(corpus) / each).write_bytes(content)
            options = [f"-max_total_time={arguments.seconds // len(names)}", str(found), corpus]
            command = [sys.executable, "-m", "tests.fuzz.run", "--within", name, "--", *limits, *options]
            status = subprocess.run(command, cwd=ROOT).returncode
        if status:
            print(f"{name}: found a fault; its input is the newest file in {found}", file=sys.stderr)
            return status
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.fuzz.run", description=__doc__)
    parser.add_argument("--target", choices=["all", *MAX_INPUT_BYTES], default="all")
    parser.add_argument("--seconds", type=int, default=600, help="for all targets together")
    parser.add_argument("--found", help="a folder for inputs that reach new code, and for the inputs of crashes")
    parser.add_argument("--keep", type=int, default=0, help="do not fuzz: renew the corpus, at most so many bytes each")
    parser.add_argument("--add", metavar="FILE", help="do not fuzz: add this input to the corpus of --target")
    parser.add_argument("--within", choices=list(MAX_INPUT_BYTES), help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.add and parsed.target == "all":
        parser.error("--add needs --target")
    return parsed


def _keep(found: Path, target: str, most: int) -> None:
    """Replace the target's corpus with the smallest inputs of it and of `found`, at most `most` bytes.

    libFuzzer has already dropped the inputs that add no coverage.
    """
    candidates = {**read_corpus(target), **{path.name: path.read_bytes() for path in found.iterdir()}}
    chosen: dict[str, bytes] = {}
    contents: set[bytes] = set()
    size = 0
    for name, content in sorted(candidates.items(), key=lambda item: (len(item[1]), item[0])):
        if size + len(content) > most:
            break
        if content not in contents:
            chosen[name] = content
            contents.add(content)
            size += len(content)
    write_corpus(target, chosen)


def _fuzz(name: str, options: list[str]) -> None:
    """Runs in a process of its own, because libFuzzer ends the process."""
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
