import gzip
import stat
import tarfile
import zipfile
from contextlib import suppress

import pytest
from archives import everything_in, tar_gz, write_zip
from hypothesis import given
from hypothesis import strategies as st

from bezoar import BezoarError
from bezoar.data._archives import open_zip, read_tar

FILES = {"folder/a": b"content of a", "folder/b": b"", "c": b"c" * 10_000}


def entry(name, kind=tarfile.REGTYPE, target=""):
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, target
    return found


def test_the_files_of_a_tar(tmp_path):
    path = tar_gz(tmp_path / "it.tar.gz", FILES, [entry("folder", tarfile.DIRTYPE)])
    assert read_tar(path) == FILES


@pytest.mark.parametrize(
    ("hostile", "message"),
    [
        (entry("../outside"), "'../outside' leads outside"),
        (entry("folder/../../outside"), "leads outside"),
        (entry("/outside"), "'/outside' leads outside"),
        (entry("C:\\outside"), "leads outside"),
        (entry("link", tarfile.SYMTYPE, "/etc/passwd"), "'link' is a link or a device"),
        (entry("link", tarfile.SYMTYPE, "c"), "is a link or a device"),
        (entry("link", tarfile.LNKTYPE, "c"), "is a link or a device"),
        (entry("device", tarfile.CHRTYPE), "is a link or a device"),
        (entry("device", tarfile.BLKTYPE), "is a link or a device"),
        (entry("pipe", tarfile.FIFOTYPE), "is a link or a device"),
    ],
)
def test_a_tar_that_leads_outside_is_refused(tmp_path, hostile, message):
    path = tar_gz(tmp_path / "it.tar.gz", FILES, [hostile])
    with pytest.raises(BezoarError, match=f"refused: its entry .*{message}".replace("\\", ".")):
        read_tar(path)
    assert everything_in(tmp_path) == ["it.tar.gz"]


def test_a_tar_that_unpacks_to_too_much_is_refused(tmp_path):
    path = tar_gz(tmp_path / "it.tar.gz", {"zeros": bytes(1 << 20)})
    assert path.stat().st_size < 1 << 12
    with pytest.raises(BezoarError, match="it holds more than 65,536 bytes"):
        read_tar(path, most_bytes=1 << 16)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_tar_is_refused(tmp_path, share):
    whole = tar_gz(tmp_path / "it.tar.gz", FILES).read_bytes()
    (tmp_path / "it.tar.gz").write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(BezoarError, match=r"it.tar.gz: damaged or not an archive"):
        read_tar(tmp_path / "it.tar.gz")


def test_a_tar_that_says_less_than_it_has_is_refused(tmp_path):
    tar = gzip.decompress(tar_gz(tmp_path / "it.tar.gz", FILES).read_bytes())
    (tmp_path / "it.tar.gz").write_bytes(gzip.compress(tar[:3000]))
    with pytest.raises(BezoarError, match="damaged or not an archive"):
        read_tar(tmp_path / "it.tar.gz")


def test_the_files_of_a_zip(tmp_path):
    with open_zip(write_zip(tmp_path / "it.zip", FILES)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == FILES


def zip_entry(name, mode=0):
    found = zipfile.ZipInfo(name)
    found.external_attr = mode << 16
    return found


@pytest.mark.parametrize(
    ("hostile", "message"),
    [
        (zip_entry("../outside"), "'../outside' leads outside"),
        (zip_entry("folder/../../outside"), "leads outside"),
        (zip_entry("/outside"), "leads outside"),
        (zip_entry("C:/outside"), "leads outside"),
        (zip_entry("link", stat.S_IFLNK | 0o777), "'link' is a link or a device"),
        (zip_entry("device", stat.S_IFCHR), "is a link or a device"),
    ],
)
def test_a_zip_that_leads_outside_is_refused(tmp_path, hostile, message):
    path = write_zip(tmp_path / "it.zip", FILES)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(hostile, b"/etc/passwd")
    with (
        pytest.raises(BezoarError, match=f"refused: its entry .*{message}"),
        open_zip(path) as archive,
    ):
        archive.extractall(tmp_path)
    assert everything_in(tmp_path) == ["it.zip"]


def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path):
    path = tmp_path / "it.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1 << 20))
    assert path.stat().st_size < 1 << 12
    with pytest.raises(BezoarError, match="found 1 of 1,048,576"), open_zip(path, 1 << 16):
        pass


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_zip_is_refused(tmp_path, share):
    path = write_zip(tmp_path / "it.zip", FILES)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(BezoarError, match="damaged or not an archive"), open_zip(path):
        pass


def test_a_zip_whose_content_is_damaged_is_refused(tmp_path):
    path = write_zip(tmp_path / "it.zip", FILES)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"content of a", b"content of x"))
    with pytest.raises(BezoarError, match="damaged or not an archive"), open_zip(path) as archive:
        archive.read("folder/a")


@given(st.data())
def test_any_damage_is_refused_or_harmless(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    packed_zip = bytearray(write_zip(folder / "it.zip", FILES).read_bytes())
    packed_tar = bytearray(gzip.decompress(tar_gz(folder / "it.tar.gz", FILES).read_bytes()))
    for content in (packed_zip, packed_tar):
        for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
            content[place] = data.draw(st.integers(0, 255))
    (folder / "it.zip").write_bytes(packed_zip)
    (folder / "it.tar.gz").write_bytes(gzip.compress(packed_tar, 1))
    with suppress(BezoarError):
        read_tar(folder / "it.tar.gz")
    with suppress(BezoarError), open_zip(folder / "it.zip") as archive:
        for entry in archive.infolist():
            archive.read(entry)
