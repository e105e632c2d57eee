"""What Client(environment=...) takes, and what it refuses with which words."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wheel_files import make_wheel

from scaler_client.errors import PackagesError
from scaler_client.packages.package_set import (
    REQUIREMENTS_FILE,
    PackageFile,
    PackageSet,
    hash_of_file,
    package_set_from,
)
from scaler_client.packages.python_versions import allows, this_python
from scaler_client.packages.requirements import parse_canonical
from scaler_client.packages.sources import PackageSource, read_packages
from scaler_client.packages.uv_lock import find_uv

A, B = "a" * 64, "b" * 64
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def text_of(source: PackageSource, name: str = REQUIREMENTS_FILE) -> list[str]:
    """The lines of a text of an environment."""
    file = source.packages.file(name)
    assert file is not None
    content = source.contents[file.sha256]
    assert isinstance(content, bytes)
    return content.decode().splitlines()


def written(folder: Path, content: str, name: str = "requirements.txt") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")
    return str(path)


def pex_file(path: Path, **info: object) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("PEX-INFO", json.dumps(info))
    return str(path)


def test_requirements_become_one_canonical_text(tmp_path: Path) -> None:
    written(tmp_path, "Beta >= 2, < 3\n-c limits.txt\n", "more/base.txt")
    written(tmp_path, "gamma<4\n", "more/limits.txt")
    path = written(
        tmp_path,
        f"""# a comment
        alpha == 1.0 ; python_version >= "3.8" --hash=sha256:{B} \\
            --hash sha256:{A}  # two files
        -r more/base.txt
        --extra-index-url=https://${{HOST}}/simple
        delta[one, two] @ git+https://example.org/delta@{COMMIT}
        """,
    )
    source = read_packages(path, {"HOST": "example.org"})
    assert text_of(source) == [
        "--extra-index-url https://example.org/simple",
        "Beta>=2,<3",
        f'alpha==1.0 ; python_version >= "3.8" --hash=sha256:{A} --hash=sha256:{B}',
        f"delta[one,two] @ git+https://example.org/delta@{COMMIT}",
    ]
    assert text_of(source, "constraints.txt") == ["gamma<4"]
    assert source.unlocked == "Beta>=2,<3 has no exact version"
    assert source.packages.python == this_python()


def test_the_same_packages_have_the_same_hash(tmp_path: Path) -> None:
    one = read_packages(written(tmp_path, "a==1\nb==2\n", "one.txt")).packages
    other = read_packages(written(tmp_path, "# other order\nb == 2\n\na==1  # same\n", "other.txt")).packages
    assert one.key == other.key
    assert one.key != read_packages(written(tmp_path, "a==1\nb==3\n", "third.txt")).packages.key


@pytest.mark.parametrize(
    ("line", "unlocked"),
    [
        (f"a==1.0 --hash=sha256:{A}", ""),
        (f"a @ https://example.org/a-1-py3-none-any.whl --hash=sha256:{A}", ""),
        ("a==1.0", "a==1.0 has no hash"),
        (f"a==1.* --hash=sha256:{A}", "a==1.* has no exact version"),
        (f"a>=1.0 --hash=sha256:{A}", "a>=1.0 has no exact version"),
        (f"a @ https://example.org/a-1.tar.gz --hash=sha256:{A}", "a @ https://example.org/a-1.tar.gz is not a wheel"),
        (
            f"a @ git+https://example.org/a@{COMMIT} --hash=sha256:{A}",
            f"a @ git+https://example.org/a@{COMMIT} is built from source",
        ),
        (f"a==1.0 --hash=sha256:{A}\n--no-binary a", "--no-binary a builds packages from source"),
    ],
)
def test_locked_means_exact_versions_hashes_and_wheels(tmp_path: Path, line: str, unlocked: str) -> None:
    assert read_packages(written(tmp_path, line)).unlocked == unlocked


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("-e .", "is a folder of this machine: send the folder with Client(modules=[...])"),
        ("--editable=git+https://x.org/y", "is a folder of this machine"),
        ("./project", "line 1: './project' is not a wheel"),
        (".", "is a folder of this machine"),
        ("a @ file:///nowhere/a.tar.gz", "is not a wheel: build one (pip wheel --no-deps)"),
        ("./a-1-py3-none-any.whl", "there is no file"),
        ("a @ git+https://x.org/y@main", "name a commit"),
        ("a @ git+ssh://x.org/y", "name a commit"),
        ("hg+https://x.org/y#egg=a", "name a commit"),
        ("a @ ftp://x.org/a.whl", "is not an address that a host can reach"),
        ("https://x.org/a-1.tar.gz", "write the package's name before its address"),
        ("--index-url /srv/index", "is a place of this machine"),
        ("--find-links ./wheels", "is a place of this machine; name a folder of wheels itself"),
        ("-r https://x.org/r.txt", "download https://x.org/r.txt and name the file"),
        ("-r missing.txt", "cannot read"),
        ("-r requirements.txt", "include one another without end"),
        ("--config-settings x=y", "the option '--config-settings' is not supported"),
        ("a==1 --global-option=x", "only --hash is supported behind a requirement"),
        ("a==1 --hash=md5:00", "is not a hash as in sha256"),
        ("a==${SECRET}", "the variable SECRET is not set"),
        ("a b c", "'a b c' is not a requirement as in name==1.0"),
        ("a=1", "'a=1' is not a requirement"),
        ("import os\nprint(1)", "'import os' is not a requirement"),
        ('-r "x', "a quotation mark is not closed"),
        ("a\0b", "is not text: it has a zero byte"),
        ("# nothing\n", "there are no packages in it"),
    ],
)
def test_what_no_host_could_install_is_refused(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(PackagesError) as error:
        read_packages(written(tmp_path, content), {})
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(b"a==1\n\xff")
    with pytest.raises(PackagesError, match="is not UTF-8 text"):
        read_packages(tmp_path / "requirements.txt")


def test_a_wheel_that_is_named_by_path_travels(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "local")
    sha256 = hash_of_file(wheel)[0]
    source = read_packages(written(tmp_path, "./local-1.0-py3-none-any.whl\n"))
    assert text_of(source) == [f"./local-1.0-py3-none-any.whl --hash=sha256:{sha256}"]
    assert source.contents[sha256] == wheel and source.unlocked == ""
    # pip takes no file without a hash once another has one.
    source = read_packages(written(tmp_path, f"local @ file://{wheel}\nother==1.0\n"))
    assert text_of(source) == ["./local-1.0-py3-none-any.whl", "other==1.0"]


def test_a_wheel_with_another_hash_than_its_line_is_refused(tmp_path: Path) -> None:
    make_wheel(tmp_path, "local")
    with pytest.raises(PackagesError, match="has another hash than its lock says"):
        read_packages(written(tmp_path, f"./local-1.0-py3-none-any.whl --hash=sha256:{A}\n"))


def test_a_folder_of_wheels_is_locked_and_asks_no_index(tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path, "one"), make_wheel(tmp_path, "two", tag="cp311-cp311-linux_x86_64")]
    wheels.append(make_wheel(tmp_path, "two", tag="cp311-cp311-macosx_11_0_arm64"))
    (tmp_path / "README").write_text("not a wheel")
    source = read_packages(tmp_path)
    hashes = [hash_of_file(path)[0] for path in wheels]
    both = " ".join(f"--hash=sha256:{each}" for each in sorted(hashes[1:]))
    assert text_of(source) == ["--no-index", f"one==1.0 --hash=sha256:{hashes[0]}", f"two==1.0 {both}"]
    assert source.unlocked == "" and set(hashes) < set(source.contents)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([], "has no wheels"),
        (["a-1.tar.gz"], "is a source package: build a wheel of it"),
        (["a.whl"], "not the name of a wheel"),
        (["a-1-py3-none-any.whl"], "the file is damaged, or still being written"),
        (["PEX-INFO"], "is a loose PEX"),
    ],
)
def test_folders_that_are_not_of_wheels_are_refused(tmp_path: Path, names: list[str], says: str) -> None:
    for name in names:
        (tmp_path / name).write_text("x")
    with pytest.raises(PackagesError, match=says):
        read_packages(tmp_path)


def test_a_folder_with_two_versions_is_refused(tmp_path: Path) -> None:
    make_wheel(tmp_path, "one", "1.0")
    make_wheel(tmp_path, "one", "2.0")
    with pytest.raises(PackagesError, match=r"has one in two versions, 1\.0 and 2\.0"):
        read_packages(tmp_path)


PYLOCK = f"""
lock-version = "1.0"
requires-python = ">=3.8"
default-groups = ["default"]

[[packages]]
name = "alpha"
version = "1.0"
marker = "sys_platform == 'linux'"
sdist = {{ name = "alpha-1.0.tar.gz", url = "https://x.org/alpha-1.0.tar.gz", hashes = {{ sha256 = "{A}" }} }}
wheels = [{{ name = "alpha-1.0-py3-none-any.whl", url = "https://x.org/a.whl", hashes = {{ sha256 = "{B}" }} }}]

[[packages]]
name = "beta"
marker = "'default' in dependency_groups"
archive = {{ url = "https://x.org/beta-2.0-py3-none-any.whl", hashes = {{ sha256 = "{A}" }} }}

[[packages]]
name = "tests"
version = "3.0"
marker = "'test' in dependency_groups"
"""


def test_a_pylock_file(tmp_path: Path) -> None:
    source = read_packages(written(tmp_path, PYLOCK, "pylock.toml"))
    assert text_of(source) == [
        f"alpha==1.0 ; sys_platform == 'linux' --hash=sha256:{A} --hash=sha256:{B}",
        f"beta @ https://x.org/beta-2.0-py3-none-any.whl --hash=sha256:{A}",
    ]
    assert source.unlocked == ""


def test_a_pylock_file_with_a_wheel_and_a_commit(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "local")
    git = f"type = 'git', url = 'https://x.org/vcs', commit-id = '{COMMIT}', subdirectory = 'src'"
    package = f"[[packages]]\nname = 'vcs'\nvcs = {{ {git} }}\n"
    package += "[[packages]]\nname = 'local'\narchive = { path = 'local-1.0-py3-none-any.whl', hashes = {} }\n"
    source = read_packages(written(tmp_path, "lock-version = '1.0'\n" + package, "pylock.dev.toml"))
    assert text_of(source) == [
        "./local-1.0-py3-none-any.whl",
        f"vcs @ git+https://x.org/vcs@{COMMIT}#subdirectory=src",
    ]
    assert hash_of_file(wheel)[0] in source.contents
    assert "is built from source" in source.unlocked


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("x = ", "is not TOML"),
        ("x = 1", "is not a lock file of PEP 751"),
        ("lock-version = '2.0'\npackages = []", "only 1.x is known"),
        ("lock-version = '1.0'\nrequires-python = '>=3.99'\npackages = []", "requires Python >=3.99: this is 3."),
        ("lock-version = '1.0'\n[[packages]]\nversion = '1'", "is not a lock file of PEP 751: KeyError 'name'"),
        ("lock-version = '1.0'\n[[packages]]\nname = 'a'", "package 'a' has no version"),
        (
            "lock-version = '1.0'\n[[packages]]\nname = 'a'\ndirectory = { path = '.', editable = true }",
            "is the folder '.' of this machine: leave it out of the lock (uv export --no-emit-project)",
        ),
        ("lock-version = '1.0'\n[[packages]]\nname = 'a'\nvcs = { type = 'hg' }", "build a wheel of it"),
        (
            "lock-version = '1.0'\n[[packages]]\nname = 'a'\nversion = '1'\nmarker = \"'x' in extras and y\"",
            "depends on extras or groups",
        ),
    ],
)
def test_wrong_pylock_files_are_refused(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(PackagesError) as error:
        read_packages(written(tmp_path, content, "pylock.toml"))
    assert says in str(error.value)


UV_PROJECT = """
[project]
name = "mine"
version = "0.1"
requires-python = ">=3.10"
dependencies = ["alpha"]
"""
UV_LOCK = """
version = 1
revision = 3
requires-python = ">=3.10"

[[package]]
name = "alpha"
version = "1.0"
source = { registry = "https://pypi.org/simple" }
wheels = [
    { url = "https://files.example.org/alpha-1.0-py3-none-any.whl", hash = "sha256:HASH" },
]

[[package]]
name = "mine"
version = "0.1"
source = { virtual = "." }
dependencies = [{ name = "alpha" }]

[package.metadata]
requires-dist = [{ name = "alpha" }]
""".replace("HASH", A)


@pytest.mark.main_environment
@pytest.mark.skipif(not find_uv(os.environ), reason="there is no uv")
def test_a_uv_lock_is_exported_by_uv(tmp_path: Path) -> None:
    written(tmp_path, UV_PROJECT, "pyproject.toml")
    source = read_packages(written(tmp_path, UV_LOCK, "uv.lock"))
    assert text_of(source) == [f"alpha==1.0 --hash=sha256:{A}"]


@pytest.mark.main_environment
@pytest.mark.skipif(not find_uv(os.environ), reason="there is no uv")
def test_what_uv_says_of_a_bad_lock_is_passed_on(tmp_path: Path) -> None:
    written(tmp_path, UV_PROJECT, "pyproject.toml")
    with pytest.raises(PackagesError, match=r"uv.lock: uv export failed: .*(parse|TOML)"):
        read_packages(written(tmp_path, "version = ", "uv.lock"))


def test_a_uv_lock_without_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaler_client.packages.uv_lock.find_uv", lambda _: "")
    with pytest.raises(PackagesError, match=r"only uv can read its lock.*uv export --no-emit-project -o pylock.toml"):
        read_packages(written(tmp_path, UV_LOCK, "uv.lock"))


def test_a_pex_file(tmp_path: Path) -> None:
    path = pex_file(tmp_path / "app.pex", interpreter_constraints=["CPython>=3.8,<4"])
    source = read_packages(path)
    assert source.packages.kind == "pex" and [file.name for file in source.packages.files] == ["app.pex"]
    assert source.contents == {hash_of_file(path)[0]: path}
    assert read_packages(pex_file(tmp_path / "app")).packages.kind == "pex"


def test_wrong_pex_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PackagesError, match=r"is for CPython==3\.6\.\*: this is Python 3"):
        read_packages(pex_file(tmp_path / "old.pex", interpreter_constraints=["CPython==3.6.*"]))
    (tmp_path / "damaged.pex").write_bytes(b"#!/usr/bin/env python\nPK")
    with pytest.raises(PackagesError, match="is not a PEX file"):
        read_packages(tmp_path / "damaged.pex")
    with pytest.raises(PackagesError, match="give the file a name of letters"):
        read_packages(pex_file(tmp_path / "my app.pex"))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("pyproject.toml", "lock it"),
        ("poetry.lock", "poetry export"),
        ("environment.yml", "conda"),
        ("other.toml", "is of no known kind; it takes a requirements file, a pylock.toml or uv.lock"),
        ("a-1-py3-none-any.whl", "put it into a folder of wheels"),
    ],
)
def test_other_files_are_refused_with_the_way_that_works(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(PackagesError, match=says):
        read_packages(written(tmp_path, "x", name))


def test_paths_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(PackagesError, match="there is no .*nothing; it takes a requirements file"):
        read_packages(tmp_path / "nothing")
    with pytest.raises(PackagesError, match="is not a path"):
        read_packages("")


@pytest.mark.parametrize(
    ("specifiers", "is_allowed"),
    [
        (">=3.10,<3.13", True),
        ("==3.11.*", True),
        ("==3.11.4", True),
        ("!=3.11.*", False),
        ("~=3.10", True),
        ("~=3.11.5", False),
        ("<=3.11", False),
        ("<3.11", False),
        ("", True),
        ("not known", True),
    ],
)
def test_versions_of_python(specifiers: str, is_allowed: bool) -> None:
    assert allows(specifiers, (3, 11, 4)) is is_allowed


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    make_wheel(tmp_path, "one")
    packages = read_packages(tmp_path).packages
    assert package_set_from(json.loads(json.dumps(packages.to_manifest()))) == packages


def good() -> dict[str, object]:
    return {
        "kind": "requirements",
        "python": "3.11",
        "files": [["a-1-py3-none-any.whl", A, 5], ["requirements.txt", B, 3]],
    }


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {**good(), "more": 1},
        {**good(), "kind": "conda"},
        {**good(), "python": "3.11; rm -rf /"},
        {**good(), "python": 3.11},
        {**good(), "files": []},
        {**good(), "files": [["a-1-py3-none-any.whl", A, 5]]},
        {**good(), "files": [["../requirements.txt", A, 5], ["requirements.txt", B, 3]]},
        {**good(), "files": [["-r.whl", A, 5], ["requirements.txt", B, 3]]},
        {**good(), "files": [["a.sh", A, 5], ["requirements.txt", B, 3]]},
        {**good(), "files": [["a.whl", "0", 5], ["requirements.txt", B, 3]]},
        {**good(), "files": [["a.whl", A, -1], ["requirements.txt", B, 3]]},
        {**good(), "files": [["a.whl", A, True], ["requirements.txt", B, 3]]},
        {**good(), "files": [["requirements.txt", B, 3], ["a.whl", A, 5]]},
        {**good(), "files": [["requirements.txt", B, 1 << 40]]},
        {**good(), "kind": "pex"},
    ],
)
def test_manifests_that_are_not_well_formed_are_refused(wrong: object) -> None:
    assert package_set_from(good()) == PackageSet(
        "requirements", "3.11", (PackageFile("a-1-py3-none-any.whl", A, 5), PackageFile("requirements.txt", B, 3))
    )
    with pytest.raises(PackagesError):
        package_set_from(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "--index-url file:///etc",
        "--find-links /etc",
        "-r /etc/passwd",
        "-e .",
        "--config-settings=x=y",
        "/etc/x.whl",
        "./other.whl",
        "../a.whl",
        "./",
        "a @ file:///etc/a.whl",
        "a==${HOME}",
        "a==1 ; x # --hash=sha256:" + A,
        "a==1 \\",
        "a==1\t",
    ],
)
def test_hosts_refuse_lines_that_clients_do_not_make(line: str) -> None:
    with pytest.raises(PackagesError):
        parse_canonical(line + "\n", ["a.whl"], "requirements.txt")


@pytest.mark.main_environment
@given(st.text(alphabet=st.sampled_from("ab1=<>!~;@#./:+-_[]() \\\"'$\n\r\t\0{}*,é"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parsed = parse_canonical(text, ["a.whl"], "requirements.txt")
    except PackagesError:
        return
    again = parse_canonical(parsed.canonical(), ["a.whl"], "requirements.txt")
    assert again.canonical() == parsed.canonical()


def test_hosts_read_what_clients_make(tmp_path: Path) -> None:
    make_wheel(tmp_path, "local")
    source = read_packages(
        written(tmp_path, f"./local-1.0-py3-none-any.whl\na[b]==1;os_name=='x' --hash=sha256:{A}\n--pre\n")
    )
    text = "\n".join(text_of(source))
    parsed = parse_canonical(text, ["local-1.0-py3-none-any.whl"], "requirements.txt")
    assert parsed.canonical().splitlines() == text.splitlines()
    assert sys.version_info[:2] == tuple(map(int, source.packages.python.split(".")))
