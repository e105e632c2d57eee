"""Manifests: the same bytes for the same content, and no path that leaves its folder."""

from __future__ import annotations

import json

import pytest

from scaler_client.environments.manifest import (
    MAX_FILES,
    Manifest,
    ManifestError,
    ModuleFile,
    digest_of,
    is_native,
    read_manifest,
)

DIGEST = digest_of(b"content")


def manifest_with(*rows: object, **more: object) -> bytes:
    return json.dumps({"format": 1, "modules": list(rows), "packages": None, **more}).encode()


def test_a_manifest_is_read_as_it_was_written() -> None:
    files = (ModuleFile("helpers.py", DIGEST), ModuleFile("pkg/__init__.py", digest_of(b""), True))
    manifest = Manifest(files, {"lock": "x"})
    assert read_manifest(manifest.to_bytes()) == manifest
    assert manifest.module_digests == [DIGEST, digest_of(b"")]


def test_the_bytes_are_canonical() -> None:
    """They are in PROTOCOL.md, because their hash is the name of the environment."""
    written = Manifest((ModuleFile("ä.py", DIGEST),)).to_bytes()
    assert written == b'{"format":1,"modules":[["\\u00e4.py","%s",false]],"packages":null}' % DIGEST.encode()


@pytest.mark.parametrize(
    "path",
    ["../x.py", "/etc/passwd", "a/../b.py", "a//b.py", "./a.py", "", "a/", "a\\b.py", "C:a.py", "a\0.py", "a\n.py", 7,
     "x" * 1001, "..", "a/."],
)  # fmt: skip
def test_no_path_leaves_the_folder(path: object) -> None:
    with pytest.raises(ManifestError, match="path"):
        read_manifest(manifest_with([path, DIGEST, False]))


@pytest.mark.parametrize(
    "data, why",
    [
        (b"no json", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "does not have the format 1"),
        (manifest_with(format=2), "does not have the format 1"),
        (manifest_with(modules={}), "has no list of modules"),
        (manifest_with(packages=[]), "its packages are no object"),
        (manifest_with(["a.py", DIGEST]), "is not a path, a SHA-256 and"),
        (manifest_with(["a.py", "0" * 63, False]), "is not a SHA-256"),
        (manifest_with(["a.py", DIGEST.upper(), False]), "is not a SHA-256"),
        (manifest_with(["b.py", DIGEST, False], ["a.py", DIGEST, False]), "do not ascend at 'a.py'"),
        (manifest_with(["a.py", DIGEST, False], ["a.py", DIGEST, False]), "do not ascend"),
        (manifest_with(["a", DIGEST, False], ["a/b.py", DIGEST, False]), "'a' is a file and a folder"),
    ],
)
def test_a_malformed_manifest(data: bytes, why: str) -> None:
    with pytest.raises(ManifestError, match=why):
        read_manifest(data)


def test_too_many_files() -> None:
    rows = [[f"m{number:06}.py", DIGEST, False] for number in range(MAX_FILES + 1)]
    with pytest.raises(ManifestError, match="20,001 files of modules, more than 20,000"):
        read_manifest(manifest_with(*rows))


def test_native_files() -> None:
    assert is_native("fast.cpython-311-x86_64-linux-gnu.so") and is_native("lib/libx.so.1") and is_native("a.pyd")
    assert not is_native("a.py") and not is_native("so/notes.txt")
