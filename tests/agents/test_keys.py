import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from bezoar import BezoarError
from bezoar.agents import (
    Peer,
    _local,
    agent_folder,
    make_key,
    read_key,
    read_peers,
    write_key,
    write_peer,
)


def test_a_key_is_for_its_owner_alone(tmp_path):
    own, public = write_key(make_key("ward-7"), tmp_path, "10.0.0.7:7000")
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert b"PRIVATE" not in public.read_bytes()
    key = read_key(own)
    assert read_peers(tmp_path) == {"ward-7": Peer("ward-7", key.certificate, "10.0.0.7:7000")}


@pytest.mark.parametrize("name", ["3", "Station Süd", 'a "b" \\c', "../../etc/passwd", "..", "."])
def test_agents_may_be_called_anything(tmp_path, name):
    own, public = write_key(make_key(name), tmp_path)
    assert own.parent == public.parent == tmp_path
    assert agent_folder(tmp_path, name).resolve().parent == tmp_path / "agents"
    assert read_key(own).name == name
    assert list(read_peers(tmp_path)) == [name]


def test_agents_of_different_names_have_different_files():
    names = ["Ward 19b", "Ward\u2019b", "Ward%2019b", "Ward_19b", ".a", "%2ea", "\udcff"]
    assert len({agent_folder(Path(), name) for name in names}) == len(names)


@pytest.mark.parametrize("name", ["", "病" * 22, "a\nb", "\x1b[2J", "\udcff"])
def test_names_that_no_certificate_or_terminal_takes_are_refused(name):
    with pytest.raises(BezoarError, match="name: expected 1 to 64 bytes in UTF-8"):
        make_key(name)


def test_a_key_is_not_replaced(tmp_path):
    write_key(make_key("a"), tmp_path)
    with pytest.raises(BezoarError, match="is there already"):
        write_key(make_key("a"), tmp_path)


def test_an_expired_key_is_refused(tmp_path):
    old = make_key("a", days=1, now=datetime.now(UTC) - timedelta(days=3))
    own, _ = write_key(old, tmp_path)
    with pytest.raises(BezoarError, match=r"expired on .*; make a new key"):
        read_key(own)


def test_throwaway_keys_are_valid_when_a_run_goes_on_after_years(tmp_path):
    _local._make_keys(["0"], tmp_path)
    certificate = x509.load_pem_x509_certificate(read_key(tmp_path / "0.key").certificate)
    assert certificate.not_valid_after_utc > datetime.now(UTC) + timedelta(days=3000)


@pytest.mark.parametrize("days", [0, -1, 3_000_000, 10**12, float("nan")])
def test_a_key_is_valid_for_a_time_that_a_certificate_can_tell(days):
    with pytest.raises(BezoarError, match="days: expected more than 0 and at most 1,000,000"):
        make_key("a", days)


def test_an_address_that_nobody_can_reach_is_refused_before_there_is_a_key(tmp_path):
    with pytest.raises(BezoarError, match=r"address: expected HOST:PORT, .* found 'b.example'"):
        write_key(make_key("b"), tmp_path, "b.example")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("private", "told"),
    [
        (b"", "its private key cannot be read"),
        (b"-----BEGIN PRIVATE KEY-----\nxx\n-----END PRIVATE KEY-----\n", "cannot be read"),
        (make_key("a").private, "its private key does not belong to its certificate"),
    ],
)
def test_a_private_key_that_does_not_fit_is_told(tmp_path, private, told):
    own, _ = write_key(replace(make_key("a"), private=private), tmp_path)
    with pytest.raises(BezoarError, match=f"key: .*{told}"):
        read_key(own)


def test_a_certificate_is_not_taken_for_another_agent(tmp_path):
    peer = Peer("a", make_key("b").certificate, "localhost:1")
    write_peer(peer, tmp_path)
    with pytest.raises(BezoarError, match="made for 'b', not for 'a'"):
        read_peers(tmp_path)


def test_two_files_for_one_agent_are_refused(tmp_path):
    peer = Peer("a", make_key("a").certificate)
    write_peer(peer, tmp_path).rename(tmp_path / "other.toml")
    write_peer(replace(peer, address="localhost:1"), tmp_path)
    with pytest.raises(BezoarError, match="in another file"):
        read_peers(tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "name: expected a text, found 'nothing'"),
        ('name = "a"\naddress = 3\n', "address: expected a text, found 3"),
        ('name = "a"\naddress = ""\ncertificate = "x"', "expected a certificate in PEM"),
        ("= =", "cannot read"),
    ],
)
def test_wrong_files_of_peers_are_told(tmp_path, text, told):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(BezoarError, match=told):
        read_peers(tmp_path)


def test_missing_files_are_told(tmp_path):
    with pytest.raises(BezoarError, match="bezoar agents key --name NAME"):
        read_key(tmp_path / "a.key")
    with pytest.raises(BezoarError, match="expected a folder"):
        read_peers(tmp_path / "peers")
