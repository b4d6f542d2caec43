import gzip

import numpy as np
import pytest

from bezoar import BezoarError, data
from bezoar.data import _mnist


def test_it_is_the_whole_set():
    mnist = data.load("mnist")
    assert mnist.train.shape == (60_000, 1, 28, 28)
    assert mnist.test.shape == (10_000, 1, 28, 28)
    assert mnist.features == 784
    assert mnist.class_names == tuple("0123456789")
    assert np.bincount(mnist.train_labels).tolist() == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949,
    ]  # fmt: skip
    assert np.bincount(mnist.test_labels).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip


def test_it_is_read_once():
    assert data.mnist() is data.mnist()


def test_nobody_can_change_it_by_accident():
    mnist = data.mnist()
    for values in (mnist.train, mnist.train_labels, mnist.test, mnist.test_labels):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1


def test_a_damaged_file_is_refused(monkeypatch):
    monkeypatch.setitem(_mnist.FILES, "t10k-labels-idx1-ubyte.gz", "0" * 32)
    with pytest.raises(BezoarError, match=r"t10k-labels-idx1-ubyte.gz is damaged.*install"):
        _mnist._read_digits("t10k-labels-idx1-ubyte.gz")


@pytest.mark.parametrize(
    "content",
    [b"", b"not gzip", gzip.compress(b"x" * 99, mtime=0)[:-9]],
    ids=["empty", "not gzip", "truncated"],
)
def test_an_unreadable_file_is_refused(monkeypatch, tmp_path, content):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(content)
    monkeypatch.setattr(_mnist.resources, "files", lambda _: tmp_path)
    with pytest.raises(BezoarError, match=r"mnist: .*t10k-labels-idx1-ubyte.gz"):
        _mnist._read_digits("t10k-labels-idx1-ubyte.gz")


def test_an_unknown_dataset_lists_those_there_are():
    with pytest.raises(BezoarError, match="dataset: 'mnits' is not known; allowed: mnist"):
        data.load("mnits")
