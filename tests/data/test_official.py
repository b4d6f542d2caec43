import hashlib
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from archives import cifar100_archive, everything_in, idx

from bezoar import BezoarError, data
from bezoar.data import _cifar, _mnist, _official
from bezoar.data._official import OfficialFile, find


def md5_of(content):
    return hashlib.md5(content).hexdigest()


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        self.server.asked.append(self.path)

    def do_GET(self):
        """Answer for a part of a file, if so asked, and break off after so many bytes, if any."""
        self.server.ranges.append(self.headers.get("Range"))
        file = self.server.folder / self.path.lstrip("/")
        if not file.exists():
            self.send_error(404)
            return
        content = file.read_bytes()
        first = 0
        if self.server.knows_ranges and self.headers.get("Range"):
            first = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            if first >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            last = len(content) - 1
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        self.wfile.write(content[first:][: self.server.breaks_after])


@pytest.fixture
def site(tmp_path):
    """A web site that offers what is in a folder, and remembers what it was asked for."""
    (tmp_path / "site").mkdir()
    handler = partial(Handler, directory=tmp_path / "site")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.asked, server.ranges = [], []
        server.breaks_after, server.knows_ranges = None, True
        server.folder = tmp_path / "site"
        server.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def offered(site, content, name="it.bin"):
    (site.folder / name).write_bytes(content)
    return OfficialFile("mine", name, md5_of(content), f"{site.address}/{name}")


def test_a_file_is_downloaded_once(site, cache):
    content = np.random.default_rng(0).bytes(1 << 20)
    file = offered(site, content)
    for _ in range(3):
        found = find(file)
        assert found == (cache / "it.bin", file.md5, True)
        assert found.path.read_bytes() == content
    assert len(site.asked) == 1


def test_a_download_with_another_checksum_is_refused_and_leaves_nothing(site, cache):
    file = offered(site, b"right")
    (site.folder / "it.bin").write_bytes(b"wrong")
    with pytest.raises(BezoarError, match=rf"mine: cannot be downloaded.*{file.md5}"):
        find(file)
    assert everything_in(cache) == []


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_download_that_breaks_off_goes_on_where_it_was(site, cache, knows_ranges):
    content = np.random.default_rng(0).bytes(3 << 20)
    file = offered(site, content)
    site.knows_ranges, site.breaks_after = knows_ranges, 1 << 20
    with pytest.raises(BezoarError, match="mine: cannot be downloaded"):
        find(file)
    assert not (cache / "it.bin").exists()
    have = (cache / "it.bin.part").stat().st_size
    assert 0 < have <= 1 << 20
    site.breaks_after = None
    assert find(file).path.read_bytes() == content
    assert site.ranges == [None, f"bytes={have}-"]
    assert everything_in(cache) == ["it.bin"]


def test_a_download_that_broke_off_before_a_move_is_complete(site, cache):
    file = offered(site, b"right")
    cache.mkdir(parents=True)
    (cache / "it.bin.part").write_bytes(b"right")
    assert find(file).path.read_bytes() == b"right"
    (cache / "it.bin").unlink()
    (cache / "it.bin.part").write_bytes(b"something longer")
    with pytest.raises(BezoarError, match=file.md5):
        find(file)
    assert find(file).path.read_bytes() == b"right"


def test_a_file_that_is_not_there_is_refused_and_leaves_nothing(site, cache):
    file = offered(site, b"right")
    (site.folder / "it.bin").unlink()
    with pytest.raises(BezoarError, match="mine: cannot be downloaded: 404"):
        find(file)
    assert everything_in(cache) == []


def test_offline_the_error_says_what_to_put_where(site, cache):
    file = replace(offered(site, b"right"), url="http://127.0.0.1:9/it.bin")
    expected = (
        f"put it.bin (md5 {file.md5}, from {file.url}) into {cache}, or into a folder that "
        "data_dir or the environment variable BEZOAR_DATA names"
    )
    with pytest.raises(BezoarError) as error:
        find(file)
    assert str(error.value).startswith("mine: cannot be downloaded: ")
    assert str(error.value).endswith(expected)
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "it.bin").write_bytes(b"right")
    assert find(file).path == cache / "it.bin"


def test_a_damaged_file_in_the_cache_is_downloaded_again(site, cache):
    file = offered(site, b"right")
    cache.mkdir(parents=True)
    (cache / "it.bin").write_bytes(b"damaged")
    assert find(file).path.read_bytes() == b"right"


def test_a_folder_that_is_named_must_have_the_file(site, folder):
    file = offered(site, b"right")
    with pytest.raises(BezoarError, match=rf"data_dir: {folder} lacks the file; put it.bin"):
        find(file, str(folder))
    (folder / "it.bin").write_bytes(b"right")
    assert find(file, str(folder)).path == folder / "it.bin"
    assert site.asked == []


def test_the_environment_names_a_folder(site, folder, monkeypatch, cache):
    file = offered(site, b"right")
    monkeypatch.setenv("BEZOAR_DATA", str(folder))
    assert find(file).path == cache / "it.bin"
    (folder / "it.bin").write_bytes(b"right")
    assert find(file).path == folder / "it.bin"


def test_a_file_with_another_checksum_is_refused(site, folder):
    file = offered(site, b"right")
    (folder / "it.bin").write_bytes(b"wrong")
    with pytest.raises(BezoarError, match=rf"md5 {md5_of(b'wrong')}, expected {file.md5}"):
        find(file, str(folder))


def test_a_cut_down_archive_has_another_name(site, folder):
    file = replace(offered(site, b"right"), cut_down="it-*.bin")
    (folder / "it-small.bin").write_bytes(b"cut down")
    assert find(file, str(folder)) == (folder / "it-small.bin", md5_of(b"cut down"), False)
    (folder / "it-small.bin").write_bytes(b"right")
    assert find(file, str(folder)).official, "the checksum decides, not the name"
    (folder / "it-smaller.bin").write_bytes(b"cut")
    with pytest.raises(BezoarError, match=r"expected one archive .* it-small.bin, it-smaller.bin"):
        find(file, str(folder))
    (folder / "it.bin").write_bytes(b"right")
    assert find(file, str(folder)).official
    (folder / "it.bin").write_bytes(b"wrong!")
    with pytest.raises(BezoarError, match=r"a cut-down archive is named it-\*.bin"):
        find(file, str(folder))


def test_a_file_that_cannot_be_read_is_refused(site, folder, monkeypatch):
    file = offered(site, b"right")
    (folder / "it.bin").write_bytes(b"right")

    def fails(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(_official, "_md5_of", fails)
    with pytest.raises(BezoarError, match=r"it.bin: cannot be read: Permission denied"):
        find(file, str(folder))


def test_cifar100_from_its_site(site, folder, monkeypatch):
    name = "cifar-100-python.tar.gz"
    content = cifar100_archive(site.folder / name).read_bytes()
    there = replace(_cifar.CIFAR100.archive, url=f"{site.address}/{name}", md5=md5_of(content))
    monkeypatch.setattr(_cifar, "CIFAR100", replace(_cifar.CIFAR100, archive=there))
    downloaded = data.load("cifar100")
    (folder / name).write_bytes(content)
    assert downloaded.fingerprint == data.load("cifar100", data_dir=str(folder)).fingerprint
    assert downloaded.note == ""


@pytest.fixture
def clothes(site, monkeypatch):
    """Fashion-MNIST with few images at random, on a site of our own."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 256, (30, 28, 28), dtype=np.uint8),
        np.arange(30, dtype=np.uint8) % 10,
        rng.integers(0, 256, (10, 28, 28), dtype=np.uint8),
        np.arange(10, dtype=np.uint8),
    ]
    files = []
    for file, array in zip(_mnist.FASHION_FILES, arrays, strict=True):
        there = offered(site, idx(array), file.filename.split("/")[-1])
        files.append(replace(file, md5=there.md5, url=there.url))
    monkeypatch.setattr(_mnist, "FASHION_FILES", tuple(files))
    return arrays


def test_fashion_mnist(clothes, cache, site):
    found = data.fashion_mnist()
    np.testing.assert_array_equal(found.train[:, 0], clothes[0])
    np.testing.assert_array_equal(found.train_labels, clothes[1])
    np.testing.assert_array_equal(found.test[:, 0], clothes[2])
    np.testing.assert_array_equal(found.test_labels, clothes[3])
    assert found.class_names[0] == "T-shirt/top"
    assert found.note == ""
    assert data.fashion_mnist() is found
    assert len(site.asked) == 4
    assert len(list((cache / "fashion-mnist").iterdir())) == 4


def test_every_official_file_has_its_own_checksum_and_address():
    from bezoar.data import _tiny_imagenet

    files = [
        _cifar.CIFAR10.archive, _cifar.CIFAR100.archive, _tiny_imagenet.ARCHIVE,
        *_mnist.FASHION_FILES,
    ]  # fmt: skip
    assert len({file.md5 for file in files}) == len({file.url for file in files}) == len(files)
    for file in files:
        assert len(file.md5) == 32
        assert int(file.md5, 16) > 0
        assert file.url.endswith(file.filename.split("/")[-1])
