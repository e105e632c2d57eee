"""Key folders, the list of authorized keys, and addresses that need keys. Runs under PyPy and CPython."""

from __future__ import annotations

import errno
import os
import resource
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from scaler_scheduler import cli
from scaler_scheduler.auth import authorized_keys, bind_policy, key_commands
from scaler_scheduler.auth.keyring import Keyring
from scaler_scheduler.commands.addresses import parse_bind_address
from scaler_scheduler.commands.key_files import (
    CLIENT,
    MONITOR,
    ROLES,
    SERVER,
    WORKER,
    KeyFileError,
    key_error_text,
    read_pair,
    read_peer_keys,
    read_public,
)
from scaler_scheduler.core.state.shares import ShareLimits
from scaler_scheduler.net.zap import MAIN_DOMAIN, MONITOR_DOMAIN, decode_z85

KEY, KEY2 = "0a" * 32, "0b" * 32


@pytest.fixture
def keys(tmp_path: Path, capsys) -> str:
    assert cli.main(["keygen", str(tmp_path / "keys")]) == 0
    capsys.readouterr()
    return str(tmp_path / "keys")


def mode(*path: str) -> int:
    return stat.S_IMODE(os.stat(os.path.join(*path)).st_mode)


def complaint(capsys, *arguments: str) -> str:
    """The error line of a command."""
    assert cli.main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert not out
    (line,) = err.splitlines()
    return line


def test_keygen_makes_all_pairs_and_prints_where_to_copy_them(tmp_path, capsys):
    folder = str(tmp_path / "a" / "keys")
    assert cli.main(["keygen", folder]) == 0
    said = capsys.readouterr().out.splitlines()
    assert mode(folder) == 0o700
    names = [name + suffix for name in (SERVER, *ROLES) for suffix in (".key", ".secret")]
    assert sorted(os.listdir(folder)) == sorted([*names, "authorized"])
    assert {mode(folder, name) for name in os.listdir(folder)} == {0o600}
    assert said[0] == f"The scheduler: scaler_scheduler --keys {folder} ADDRESS; server.secret stays here"
    assert [line.split(" to ")[0] for line in said[1:]] == [
        f"Copy server.key {role}.key {role}.secret" for role in ROLES
    ]
    assert [(entry.role, entry.name) for entry in authorized_keys.read(folder).values()] == [
        (role, role) for role in ROLES
    ]
    assert len({read_pair(folder, name) for name in (SERVER, *ROLES)}) == 4


def test_keygen_overwrites_no_key(keys, capsys):
    before = {path: path.read_bytes() for path in Path(keys).iterdir()}
    assert complaint(capsys, "keygen", keys) == (
        f"scaler_scheduler: {keys}/server.key exists already: keys are never overwritten"
    )
    assert complaint(capsys, "keygen", keys, "--as", "client").endswith("client.key exists already: keys are never "
                                                                        "overwritten")  # fmt: skip
    assert {path: path.read_bytes() for path in Path(keys).iterdir()} == before


def test_keygen_on_a_full_disk_leaves_no_files(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "keys"
    write_new, written = authorized_keys.write_new, []

    def write(path: str, text: str) -> None:
        written.append(path)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10 if len(written) == fails_at else before[0], before[1]))
        try:
            write_new(path, text)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    monkeypatch.setattr(authorized_keys, "write_new", write)
    for fails_at in range(1, 10):
        written.clear()
        line = complaint(capsys, "keygen", str(folder))
        assert line == f"scaler_scheduler: cannot make {written[-1]}: {os.strerror(errno.EFBIG)}"
        assert len(written) == fails_at and os.listdir(folder) == []
    fails_at = 0
    assert cli.main(["keygen", str(folder)]) == 0


def test_pair_of_another_host_is_authorized_by_its_file(keys, tmp_path, capsys):
    other = str(tmp_path / "alice")
    assert cli.main(["keygen", other, "--as", "client"]) == 0
    assert sorted(os.listdir(other)) == ["client.key", "client.secret"]
    public = read_public(other, CLIENT).hex()
    authorize, copy = capsys.readouterr().out.splitlines()
    assert public in authorize and copy.startswith(f"Copy server.key of the scheduler's folder to {other}: ")
    assert cli.main(["authorize", keys, f"{other}/client.key", "--as", "client", "--name", "alice"]) == 0
    assert authorized_keys.read(keys)[public] == authorized_keys.AuthorizedKey("client", public, "alice")
    assert cli.main(["list", keys]) == 0
    assert f"client  {public} alice\n" in capsys.readouterr().out
    assert cli.main(["revoke", keys, "alice"]) == 0
    assert public not in authorized_keys.read(keys)


def test_shares_of_keys(keys, capsys):
    authorize = ("authorize", keys, KEY, "--as", "client", "--name", "ada")
    assert cli.main([*authorize, "--share", "2.5", "--max-running", "100", "--max-waiting", "1000000"]) == 0
    keyring = Keyring(keys)
    assert keyring.share_limits()[f"client:{KEY}"] == ShareLimits("ada", 2.5, 100, 1_000_000)
    assert keyring.share_limits()[f"client:{read_public(keys, CLIENT).hex()}"] == ShareLimits("client")
    assert len(keyring.share_limits()) == 2  # only clients
    assert cli.main(["list", keys]) == 0
    assert f"client  {KEY} ada share=2.5 max-running=100 max-waiting=1000000\n" in capsys.readouterr().out
    assert cli.main([*authorize, "--share", "3"]) == 0
    assert Keyring(keys).share_limits()[f"client:{KEY}"] == ShareLimits("ada", 3.0)
    capsys.readouterr()
    assert "this key is authorized already, as client ada" in complaint(capsys, *authorize, "--share", "3")
    assert complaint(capsys, *authorize, "--share", "much") == (
        "scaler_scheduler: share 'much' is not a number from 0.001 to 1000"
    )
    for share in ("1_0", "\u0663", "nan", "1e300", "-1", ""):
        assert f"share {share!r} is not a number from 0.001 to 1000" in complaint(
            capsys, *authorize, f"--share={share}"
        )
    assert complaint(capsys, *authorize, "--max-runing", "3") == (
        "scaler_scheduler: authorize: unknown option --max-runing (did you mean --max-running?)"
    )
    assert complaint(capsys, *authorize, "3") == "scaler_scheduler: authorize: unexpected argument '3'"
    assert complaint(capsys, "authorize", keys, KEY2, "--as", "worker", "--name", "w", "--max-running", "1") == (
        "scaler_scheduler: max-running is for keys of clients, and this is the key of a worker"
    )


def test_key_in_zeromq_text_form():
    z85 = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
    assert authorized_keys.checked_key(z85, decode_z85) == decode_z85(z85).hex()
    assert authorized_keys.checked_key(KEY.upper(), decode_z85) == KEY


@pytest.mark.parametrize("given", ["", "abc", KEY[:-1], KEY + "0", "~" * 40, "g" * 64, "--help"])
def test_invalid_public_keys(given):
    with pytest.raises(KeyFileError, match="is not a public key"):
        authorized_keys.checked_key(given, decode_z85)


@pytest.mark.parametrize("name", ["", "two words", "a\nb", "x" * 65, "#a", "\x1b"])
def test_invalid_key_names(name):
    with pytest.raises(KeyFileError, match="is not a name"):
        authorized_keys.checked_name(name)


def test_keys_and_names_are_unique(keys, capsys):
    assert cli.main(["authorize", keys, KEY, "--as", "worker", "--name", "rack1"]) == 0
    capsys.readouterr()
    authorize = ("authorize", keys)
    assert complaint(capsys, *authorize, KEY, "--as", "client", "--name", "other") == (
        "scaler_scheduler: this key is authorized already, as worker rack1: revoke it first"
    )
    assert "this name is authorized already" in complaint(capsys, *authorize, KEY2, "--as", "client", "--name", "rack1")
    assert complaint(capsys, "revoke", keys, "nobody").endswith(
        f"no key with the name or value 'nobody' is authorized in {keys}"
    )
    assert "--as" in complaint(capsys, *authorize, KEY2, "--name", "x")
    assert "invalid choice" in complaint(capsys, *authorize, KEY2, "--as", "boss", "--name", "x")


def test_list_is_replaced_as_a_whole_and_keeps_its_mode(keys, monkeypatch):
    os.chmod(os.path.join(keys, "authorized"), 0o640)
    before = Path(keys, "authorized").read_bytes()

    def fail(*_paths: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", fail)
        with pytest.raises(KeyFileError, match="No space left"):
            authorized_keys.add(keys, authorized_keys.AuthorizedKey("client", KEY, "alice"))
    assert Path(keys, "authorized").read_bytes() == before
    names = sorted(os.listdir(keys))
    authorized_keys.add(keys, authorized_keys.AuthorizedKey("client", KEY, "alice"))
    assert sorted(os.listdir(keys)) == names  # no temporary file is left
    assert mode(keys, "authorized") == 0o640


@pytest.mark.parametrize(
    "line, text",
    [
        ("client", "3: expected a role"),
        (f"boss {KEY} x", "3: expected a role"),
        (f"client {KEY[:-1]} x", "3: expected a role"),
        (f"client {KEY} a b", "3: there is no option 'b': share, max-running, max-waiting"),
        (f"client {KEY} a share=0", "3: share '0' is not a number from 0.001 to 1000"),
        (f"client {KEY} a share=nan", "3: share 'nan' is not a number from 0.001 to 1000"),
        (f"client {KEY} a max-running=-1", "3: max-running '-1' is not a whole number of tasks from 1 to"),
        (f"worker {KEY} a max-waiting=1", "3: max-waiting is for keys of clients, and this is the key of a worker"),
        (f"client {KEY} a share=2 share=3", "3: an option is there more than once: 'share=2 share=3'"),
        (f"client {KEY} a\nclient {KEY} b", f"4: the key {KEY} is listed more than once"),
    ],
)
def test_error_names_the_wrong_line(tmp_path, line, text):
    (tmp_path / "authorized").write_text(f"# a comment\n\n{line}\n")
    with pytest.raises(KeyFileError) as caught:
        authorized_keys.read(str(tmp_path))
    assert text in str(caught.value)


def test_secret_that_others_can_read_is_rejected(keys):
    path = os.path.join(keys, "client.secret")
    for wrong in (0o604, 0o644, 0o620):
        os.chmod(path, wrong)
        with pytest.raises(KeyFileError, match=f"is open to others .mode {wrong:04o}.: chmod 600 {path}"):
            read_peer_keys(keys, CLIENT)
    os.chmod(path, 0o440)  # an operator may let a group read it
    assert "secret" not in repr(read_peer_keys(keys, CLIENT)).replace(keys, "")


@pytest.mark.parametrize("name", ["", "server.key", "authorized"])
@pytest.mark.parametrize("wrong", [0o702, 0o720, 0o777])
def test_key_files_that_others_can_write_are_rejected(keys, name, wrong):
    path = os.path.join(keys, name) if name else keys
    os.chmod(path, wrong)
    with pytest.raises(KeyFileError) as caught:
        read_peer_keys(keys, CLIENT)
        Keyring(keys)
    what = "file" if name else "folder of keys"
    assert str(caught.value) == f"others can write to the {what} {path} (mode {wrong:04o}): chmod go-w {path}"
    os.chmod(path, 0o750)
    assert Keyring(keys) and read_peer_keys(keys, CLIENT)


def test_sticky_folder_is_accepted(keys):
    os.chmod(keys, 0o1777)
    assert Keyring(keys) and read_peer_keys(keys, CLIENT)


def test_error_names_a_secret_of_another_pair(keys, tmp_path):
    other = str(tmp_path / "other")
    assert cli.main(["keygen", other, "--as", "client"]) == 0
    Path(keys, "client.secret").write_bytes(Path(other, "client.secret").read_bytes())
    with pytest.raises(KeyFileError) as caught:
        read_peer_keys(keys, CLIENT)
    assert str(caught.value) == f"{keys}/client.secret is not the secret of client.key beside it: copy both of one pair"
    assert read_pair(keys, SERVER)


@pytest.mark.parametrize("content", ["", "zz" * 32, KEY[:-2], f"{KEY}\n{KEY2}\n", "\xff" * 64])
def test_error_names_a_file_that_is_not_a_key(keys, content):
    path = os.path.join(keys, "worker.key")
    Path(path).write_text(content)
    with pytest.raises(KeyFileError, match=f"{path} is not a key"):
        read_peer_keys(keys, WORKER)


def test_errors_name_missing_folders_and_files(keys, tmp_path):
    with pytest.raises(KeyFileError, match="there is no folder of keys at /nowhere"):
        read_peer_keys("/nowhere", CLIENT)
    os.unlink(os.path.join(keys, "server.key"))
    with pytest.raises(KeyFileError, match="cannot read the key .*/server.key: No such file or directory$"):
        Keyring(keys)
    os.unlink(os.path.join(keys, "server.secret"))
    with pytest.raises(
        KeyFileError, match="/server.key: No such file .*: copy it from the scheduler's folder of keys$"
    ):
        read_peer_keys(keys, CLIENT)


def test_error_names_the_variable_that_the_folder_comes_from(tmp_path, monkeypatch):
    error = KeyFileError("wrong")
    assert key_error_text("keys", error) == "wrong"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCALER_KEYS", "keys")
    assert key_error_text(str(tmp_path / "keys"), error) == "SCALER_KEYS: wrong"
    assert key_error_text("others", error) == "wrong"


def test_errors_name_a_folder_of_another_role(tmp_path, capsys):
    alice, text = str(tmp_path / "alice"), "is not a scheduler's folder of keys: it has no"
    assert cli.main(["keygen", alice, "--as", "client"]) == 0
    with pytest.raises(KeyFileError) as caught:
        read_peer_keys(alice, WORKER)
    assert str(caught.value) == f"{alice} has a client's key; a worker needs server.key, worker.key and worker.secret"
    with pytest.raises(KeyFileError) as caught:
        Keyring(alice)
    assert str(caught.value) == f"{alice} {text} server.secret"
    capsys.readouterr()
    assert complaint(capsys, "list", alice) == f"scaler_scheduler: {alice} {text} authorized"
    assert complaint(capsys, "list", "/nowhere").endswith("there is no folder of keys at /nowhere")
    authorize = ["authorize", alice, KEY, "--as", "client", "--name", "x"]
    assert complaint(capsys, *authorize) == f"scaler_scheduler: {alice} {text} authorized"


def test_file_named_for_another_role_is_not_authorized(keys, tmp_path, capsys):
    alice = str(tmp_path / "alice")
    assert cli.main(["keygen", alice, "--as", "client"]) == 0
    capsys.readouterr()
    path = f"{alice}/client.key"
    assert complaint(capsys, "authorize", keys, path, "--as", "worker", "--name", "rack1") == (
        f"scaler_scheduler: '{path}' is a client's key: a worker connects with worker.key of `scaler_scheduler keygen "
        "DIR --as worker`"
    )
    own = f"{keys}/server.key"
    assert "is the scheduler's own key" in complaint(capsys, "authorize", keys, own, "--as", "client", "--name", "x")
    os.rename(path, f"{alice}/alice.key")
    assert cli.main(["authorize", keys, f"{alice}/alice.key", "--as", "worker", "--name", "rack1"]) == 0


def test_keyring_accepts_each_role_in_its_domain(keys):
    keyring = Keyring(keys)
    for role in ROLES:
        key = read_public(keys, role)
        user = f"{role}:{key.hex()}".encode()
        domain, other = (MONITOR_DOMAIN, MAIN_DOMAIN) if role == MONITOR else (MAIN_DOMAIN, MONITOR_DOMAIN)
        assert keyring.user(domain, key) == user and keyring.user(other, key) == b""
        assert user in keyring.allowed
    assert keyring.user(MAIN_DOMAIN, bytes.fromhex(KEY)) == keyring.user(MAIN_DOMAIN, b"") == b""


def test_rejected_connections_and_messages_have_separate_log_lines(keys, caplog):
    for key, role, name in ((KEY, "client", "alice"), (KEY2, "worker", "host2")):
        authorized_keys.add(keys, authorized_keys.AuthorizedKey(role, key, name))
    keyring = Keyring(keys)
    zap = SimpleNamespace(rejected=1, last_rejection=f"the key {KEY} from 127.0.0.1 is not authorized there")
    router = SimpleNamespace(rejected=0, last_rejected_user="")
    authorized_keys.remove(keys, "host2")
    keyring.reload(len)
    caplog.clear()
    keyring.log_rejections(zap, router, 100.0)
    router.rejected, router.last_rejected_user = 7, f"worker:{KEY2}"
    keyring.log_rejections(zap, router, 101.0)
    keyring.log_rejections(zap, router, 102.0)
    assert caplog.messages == [
        f"1 connection(s) rejected; the last: the key {KEY} from 127.0.0.1 is not authorized there",
        f"7 message(s) dropped; the last: from the key of worker host2, which was revoked ({KEY2})",
    ]
    caplog.clear()
    zap.rejected, router.rejected, router.last_rejected_user = 2, 9, f"client:{KEY}"
    keyring.log_rejections(zap, router, 102.0)
    assert not caplog.messages, "at most one line of each in ten seconds"
    keyring.log_rejections(zap, router, 120.0)
    assert caplog.messages[1] == (
        f"2 message(s) dropped; the last: from the key {KEY}, on a connection that has chosen its own name"
    )


def test_reload_cuts_off_revoked_keys(keys, caplog):
    keyring = Keyring(keys)
    cut = []

    def cut_off(users):
        cut.append(users)
        return 7

    authorized_keys.add(keys, authorized_keys.AuthorizedKey("client", KEY, "alice"))
    assert not keyring.reload(cut_off) and not cut
    assert keyring.user(MAIN_DOMAIN, bytes.fromhex(KEY)) == f"client:{KEY}".encode()
    authorized_keys.remove(keys, "alice")
    authorized_keys.add(
        keys, authorized_keys.AuthorizedKey("worker", KEY, "alice")
    )  # the same key and name in another role is another user
    assert not keyring.reload(cut_off)
    assert cut == [{f"client:{KEY}"}]
    authorized_keys.remove(keys, "monitor")
    assert keyring.reload(cut_off)
    assert "was revoked" in caplog.text


def test_reload_logs_new_and_changed_keys(keys, caplog):
    keyring = Keyring(keys)
    caplog.set_level("INFO")
    authorized_keys.add(keys, authorized_keys.AuthorizedKey("client", KEY, "alice"))
    keyring.reload(len)
    assert caplog.messages[0] == f"the key of client alice may connect from now on ({KEY})"
    caplog.clear()
    keyring.reload(len)
    assert len(caplog.messages) == 1 and "keys read again" in caplog.text
    authorized_keys.remove(keys, "alice")
    authorized_keys.add(keys, authorized_keys.AuthorizedKey("client", KEY, "alice", share=3))
    caplog.clear()
    keyring.reload(len)
    assert caplog.messages[0] == f"the key of client alice has changed: share=3 ({KEY})"


def test_reload_of_an_unreadable_list_changes_nothing(keys, caplog):
    keyring = Keyring(keys)
    before = keyring.allowed
    Path(keys, "authorized").write_text("nonsense\n")
    assert not keyring.reload(lambda users: pytest.fail("users are cut off"))
    assert keyring.allowed == before and "all keys stay as they were" in caplog.text


@pytest.mark.parametrize(
    "address",
    [
        "tcp://127.0.0.1:1",
        "tcp://127.9.9.9:1",
        "tcp://[::1]:1",
        "tcp://localhost:1",
        "ipc:///run/no.socket",
        "ipc://@x",
    ],
)
def test_local_addresses(address):
    assert bind_policy.is_local(parse_bind_address(address))


@pytest.mark.parametrize(
    "address", ["tcp://*:1", "tcp://0.0.0.0:1", "tcp://[::]:1", "tcp://10.1.2.3:1", "tcp://eth0:1"]
)
def test_addresses_that_other_machines_reach(address):
    wide, local = parse_bind_address(address), parse_bind_address("tcp://127.0.0.1:1")
    assert not bind_policy.is_local(wide)
    for text_of in (bind_policy.insecure_bind_error, bind_policy.insecure_warning):
        assert str(wide) in text_of(wide, None) and str(wide) in text_of(local, wide)
        assert not text_of(local, local) and not text_of(local, None)


def test_insecure_bind_error_names_the_commands():
    text = bind_policy.insecure_bind_error(parse_bind_address("tcp://*:2345"), None)
    commands = ["scaler_scheduler keygen DIR", "scaler_scheduler --keys DIR tcp://*:2345", "scaler_cluster --keys DIR"]
    assert all(command in text for command in commands) and "\n" not in text and "--insecure" in text


def test_errors_about_monitor_addresses():
    both = parse_bind_address("tcp://127.0.0.1:2390"), parse_bind_address("tcp://0.0.0.0:2391")
    text = bind_policy.insecure_bind_error(*both)
    assert text.startswith("--monitor-address: tcp://0.0.0.0:2391 can be reached from other machines")
    assert "`scaler_scheduler --keys DIR tcp://127.0.0.1:2390 --monitor-address tcp://0.0.0.0:2391`" in text
    assert "`scaler_top --keys DIR`" in text
    for line in (text, bind_policy.insecure_warning(*both)):
        assert "read the names of functions" in line and "run code" not in line and "--monitor-address" in line


def test_empty_list_is_reported(keys, caplog):
    Path(keys, "authorized").write_text("# nobody\n")
    keyring = Keyring(keys)
    keyring.warn_if_empty()
    assert caplog.messages == [
        f"{keys}/authorized lists no key, so no peer can connect: scaler_scheduler authorize {keys} PUBLICKEY "
        "--as ROLE --name NAME, then SIGHUP"
    ]
    assert cli.main(["authorize", keys, KEY, "--as", "client", "--name", "alice"]) == 0
    caplog.clear()
    keyring.reload(lambda users: 0)
    assert "no key" not in caplog.text
    assert cli.main(["revoke", keys, "alice"]) == 0
    keyring.reload(lambda users: 0)
    assert "lists no key" in caplog.text


def test_mistyped_command_gets_a_suggestion(tmp_path, capsys):
    assert cli.main(["keygn", str(tmp_path / "keys")]) == 2
    said = "scaler_scheduler: there is no command 'keygn' (did you mean keygen?)\n"
    assert capsys.readouterr().err == said and not (tmp_path / "keys").exists()


def test_address_is_not_a_key_command():
    assert not key_commands.is_key_command(["tcp://127.0.0.1:1"]) and not key_commands.is_key_command([])
