"""Keys and certificates: who an agent is, and whom it trusts.

Every agent makes its own key, signs its own certificate, and hands the certificate to its
neighbours. Nobody signs for others: an agent trusts exactly the certificates in its folder of
peers.

    b.key     the private key and the certificate of agent b, for b alone
    b.toml    its name, address and certificate, for its neighbours
"""

import hashlib
import json
import os
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unicodedata import category

from bezoar._errors import BezoarError
from bezoar._files import make_folder, write_whole
from bezoar.agents._extra import needed
from bezoar.agents._ports import read_address

#: How long a certificate is valid if nothing else is said.
DAYS = 365

#: How long it may be valid: a certificate must end before the year 10,000.
MOST_DAYS = 1_000_000

#: What a key file and a peer's file end in.
KEY, PEER = ".key", ".toml"

#: How many characters are told of a text that others may have written.
TOLD = 500


@dataclass(frozen=True)
class Key:
    """An agent's own key.

    Attributes:
        name: the agent's name.
        private: the private key, PEM.
        certificate: the certificate, PEM.
    """

    name: str
    private: bytes
    certificate: bytes


@dataclass(frozen=True)
class Peer:
    """Somebody whose certificate is trusted.

    Attributes:
        name: what it is called: for an agent, its name in the network.
        certificate: the certificate, PEM.
        address: where it listens, ``HOST:PORT``; empty for those who only ask.
    """

    name: str
    certificate: bytes
    address: str = ""


def host_name(name: str) -> str:
    """What TLS calls an agent: names of agents may have any characters, names of hosts may not."""
    return f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.agent.bezoar"


def make_key(name: str, days: float = DAYS, now: datetime | None = None) -> Key:
    """A new key, with a certificate that it signs itself.

    Args:
        name: the agent's name.
        days: how long the certificate is valid.
        now: from when on it is valid; by default from an hour ago, since clocks differ.
    """
    x509: Any = needed("cryptography.x509")
    hashes: Any = needed("cryptography.hazmat.primitives.hashes")
    serialization: Any = needed("cryptography.hazmat.primitives.serialization")
    ec: Any = needed("cryptography.hazmat.primitives.asymmetric.ec")
    if not name or name != one_line(name) or len(name.encode()) > 64:
        raise BezoarError(
            f"name: expected 1 to 64 bytes in UTF-8 without control characters, found {name!r}"
        )
    if not 0 < days <= MOST_DAYS:
        raise BezoarError(f"days: expected more than 0 and at most {MOST_DAYS:,}, found {days!r}")
    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    begin = now or datetime.now(UTC) - timedelta(hours=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host_name(name))]), False)
        # Whoever holds this key can sign for nobody else.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    return Key(
        name,
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        certificate.public_bytes(serialization.Encoding.PEM),
    )


def write_key(key: Key, folder: Path, address: str = "") -> tuple[Path, Path]:
    """Write a key for its owner alone, and what its neighbours need beside it.

    Raises:
        BezoarError: where there is a key already: who replaces it is known to nobody any more; or
            where the address is none.
    """
    if address:
        read_address("address", address)
    own = key_file(folder, key.name)
    make_folder(folder)
    try:
        descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BezoarError(
            f"key: {own} is there already, and the neighbours know it; remove it first if it is to "
            "be replaced"
        ) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(key.private + key.certificate)
    return own, write_peer(Peer(key.name, key.certificate, address), folder)


def write_peer(peer: Peer, folder: Path) -> Path:
    """Write what neighbours need to know of an agent."""
    # A text is quoted in TOML as it is in JSON.
    name, address = (json.dumps(each, ensure_ascii=False) for each in (peer.name, peer.address))
    text = (
        f"name = {name}\n"
        f"address = {address}  # HOST:PORT, where its neighbours reach it\n"
        f'certificate = """\n{peer.certificate.decode()}"""\n'
    )
    return write_whole(folder / f"{file_name(peer.name)}{PEER}", text.encode())


def key_file(folder: Path, name: str) -> Path:
    """Where the key of an agent is in a folder."""
    return folder / f"{file_name(name)}{KEY}"


def read_key(path: Path) -> Key:
    """The key in a file.

    Raises:
        BezoarError: where it cannot be read, or its certificate has expired.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BezoarError(
            f"key: cannot read {path}: {error.strerror}; 'bezoar agents key --name NAME' makes one"
        ) from error
    before, begin, after = content.partition(b"-----BEGIN CERTIFICATE-----")
    certificate = begin + after
    name, found = _read_certificate(certificate, f"key: {path}")
    serialization: Any = needed("cryptography.hazmat.primitives.serialization")
    try:
        private = serialization.load_pem_private_key(before, None)
    except (ValueError, TypeError) as error:  # the latter where it needs a password
        raise BezoarError(f"key: {path}: its private key cannot be read: {error}") from None
    if private.public_key() != found.public_key():
        raise BezoarError(f"key: {path}: its private key does not belong to its certificate")
    if (ends := found.not_valid_after_utc) < datetime.now(UTC):
        raise BezoarError(
            f"key: the certificate in {path} expired on {ends:%Y-%m-%d}; make a new key, and hand "
            "the new certificate to the neighbours"
        )
    return Key(name, before, certificate)


def read_peers(folder: Path) -> dict[str, Peer]:
    """Everybody in a folder of peers, by name.

    Raises:
        BezoarError: naming the file, what was found and what is allowed.
    """
    if not folder.is_dir():
        raise BezoarError(
            f"peers: expected a folder with a file for each neighbour, found {folder}"
        )
    peers: dict[str, Peer] = {}
    for path in sorted(folder.glob(f"*{PEER}")):
        peer = _read_peer(path)
        if peer.name in peers:
            raise BezoarError(f"peers: {path}: {peer.name!r} is in another file of it, too")
        peers[peer.name] = peer
    return peers


def _read_peer(path: Path) -> Peer:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BezoarError(f"peers: cannot read {path}: {error}") from error
    for field in ("name", "address", "certificate"):
        if not isinstance(document.get(field), str):
            found = document.get(field, "nothing")
            raise BezoarError(f"peers: {path}: {field}: expected a text, found {found!r}")
    certificate = document["certificate"].strip().encode() + b"\n"
    name, _ = _read_certificate(certificate, f"peers: {path}")
    if name != document["name"]:
        raise BezoarError(
            f"peers: {path}: its certificate was made for {name!r}, not for {document['name']!r}"
        )
    return Peer(name, certificate, document["address"])


def _read_certificate(content: bytes, source: str) -> tuple[str, Any]:
    """The name in a certificate, and the certificate."""
    x509: Any = needed("cryptography.x509")
    try:
        certificate = x509.load_pem_x509_certificate(content)
        [name] = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    except ValueError as error:
        raise BezoarError(f"{source}: expected a certificate in PEM, found none: {error}") from None
    return str(name.value), certificate


def same_certificate(one: bytes, other: bytes) -> bool:
    """Whether two certificates, PEM, are the same."""
    return _content(one) == _content(other)


def _content(certificate: bytes) -> bytes:
    return b"".join(line.strip() for line in certificate.strip().splitlines())


def one_line(text: str) -> str:
    """A text that others may have written, without what a terminal takes for commands."""
    return "".join(" " if category(each) in ("Cc", "Cs") else each for each in text[:TOLD])


def file_name(name: str) -> str:
    """A name as a file's: what cannot be in one, and a dot in front, is written as its bytes."""
    return "".join(
        letter
        if letter.isalnum() or letter in "-_."
        else "".join(f"%{byte:02x}" for byte in letter.encode(errors="surrogatepass"))
        for letter in name
    ).replace(".", "%2e", name.startswith("."))
