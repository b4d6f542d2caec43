import pickle
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from archives import (
    cifar10_archive,
    cifar100_archive,
    cifar100_files,
    cifar_batch,
    everything_in,
    tar_gz,
)

from bezoar import BezoarError, data
from bezoar.data import _cifar, _decoded, _official

NAME = "cifar-100-python-few.tar.gz"


def test_images_are_those_of_the_archive(image_archives):
    [path] = image_archives.glob("cifar-100-python-*.tar.gz")
    found = data.cifar100(str(image_archives))
    with tarfile.open(path) as archive:  # our own archive, so numpy may unpickle it
        parts = [
            pickle.load(archive.extractfile(f"cifar-100-python/{name}"))
            for name in ("train", "test", "meta")
        ]
    train, test, meta = parts
    np.testing.assert_array_equal(found.train.reshape(len(train["data"]), -1), train["data"])
    np.testing.assert_array_equal(found.test.reshape(len(test["data"]), -1), test["data"])
    assert found.train_labels.tolist() == train["fine_labels"]
    assert found.test_labels.tolist() == test["fine_labels"]
    assert found.class_names == tuple(meta["fine_label_names"])
    assert found.sample_shape == (3, 32, 32)
    assert found.classes == 100
    each, each_test = len(found.train) // 100, len(found.test) // 100
    assert found.note == (
        f"cut down: {each} of 500 training and {each_test} of 100 test images a class"
    )


def test_real_images(real_archives):
    found = data.cifar100(str(real_archives))
    assert found.class_names[:2] == ("apple", "aquarium_fish")
    assert found.class_names[-1] == "worm"
    # The means of the whole training set are 0.507, 0.487 and 0.441.
    means = found.train.mean((0, 2, 3)) / 255
    np.testing.assert_allclose(means, [0.507, 0.487, 0.441], atol=0.01)


def test_cifar10_has_its_training_images_in_five_files(folder):
    batches = cifar10_archive(folder / "cifar-10-python-few.tar.gz")
    found = data.cifar10(str(folder))
    train = np.concatenate([batches[f"data_batch_{number}"]["data"] for number in range(1, 6)])
    np.testing.assert_array_equal(found.train.reshape(100, -1), train)
    np.testing.assert_array_equal(found.test.reshape(20, -1), batches["test_batch"]["data"])
    assert found.train_labels.tolist() == list(range(10)) * 10
    assert found.classes == 10


def test_it_is_decoded_once_and_mapped(folder, monkeypatch, cache):
    cifar100_archive(folder / NAME)
    first = data.cifar100(str(folder))
    assert data.cifar100(str(folder)) is first
    _decoded._load.cache_clear()  # as in another process
    monkeypatch.setattr(_cifar, "_decode", lambda *_: pytest.fail("decoded again"))
    again = data.cifar100(str(folder))
    assert again is not first
    assert again.fingerprint == first.fingerprint
    assert (again.class_names, again.note) == (first.class_names, first.note)
    assert isinstance(again.train.base, np.memmap)
    assert not again.train.flags.writeable
    [kept] = (cache / "decoded").iterdir()
    assert everything_in(kept) == [
        "about.json", "test.npy", "test_labels.npy", "train.npy", "train_labels.npy",
    ]  # fmt: skip


def test_another_archive_of_the_same_name_is_another_dataset(folder):
    cifar100_archive(folder / NAME, train=2)
    first = data.cifar100(str(folder))
    cifar100_archive(folder / NAME, train=3)
    assert len(data.cifar100(str(folder)).train) == 300
    assert data.cifar100(str(folder)).fingerprint != first.fingerprint


def test_a_class_may_have_more_images_than_another(folder):
    rng = np.random.default_rng(0)
    some = cifar_batch([*range(100), 5, 5, 5], "fine_labels", rng)
    cifar100_archive(folder / NAME, replaced={"train": some})
    note = "cut down: 103 of 50,000 training and 100 of 10,000 test images"
    assert data.cifar100(str(folder)).note == note


def test_an_archive_with_everything_but_another_checksum_says_so(folder, monkeypatch):
    monkeypatch.setattr(_cifar, "CIFAR100", replace(_cifar.CIFAR100, whole=(3, 2)))
    cifar100_archive(folder / NAME, train=3, test=2)
    assert data.cifar100(str(folder)).note == "not the official archive"


def test_the_official_archive_has_no_note(folder, monkeypatch):
    path = cifar100_archive(folder / "cifar-100-python.tar.gz")
    official = replace(_cifar.CIFAR100.archive, md5=_official._md5(path))
    monkeypatch.setattr(_cifar, "CIFAR100", replace(_cifar.CIFAR100, archive=official))
    assert data.cifar100(str(folder)).note == ""


def python_object():
    class Malicious:
        def __reduce__(self):
            return print, ("it ran",)

    return pickle.dumps(Malicious(), 2)


def pickled(key, value):
    batch = cifar_batch([0, 1], "fine_labels", np.random.default_rng(0))
    return batch | {key: value}


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"train": python_object()}, r"train: refused: it asks for .*print"),
        ({"meta": python_object()}, r"meta: refused: it asks for .*print"),
        ({"test": None}, "expected a file cifar-100-python/test, found none"),
        ({"train": [1, 2]}, "train: expected a dictionary, found a list"),
        ({"train": pickled("data", "text")}, "train: expected an array of bytes in 'data'"),
        ({"train": pickled("data", np.zeros((2, 9), np.uint8))}, r"3 × 32 × 32 .*found \[2, 9\]"),
        ({"train": pickled("data", np.zeros((2, 3072)))}, "train: refused: an array of 'f8'"),
        ({"train": pickled("fine_labels", [1])}, "train_labels: expected 2 labels"),
        ({"train": pickled("fine_labels", [1, 100])}, "expected 0 … 99, found 1 … 100"),
        ({"train": pickled("fine_labels", [1, "a"])}, "a list of integers in 'fine_labels'"),
        ({"meta": {"fine_label_names": ["apple"]}}, "class_names: expected 100 names, found 1"),
        ({"meta": {}}, "meta: expected a list of names in 'fine_label_names'"),
    ],
)
def test_what_is_not_cifar_is_refused(folder, tmp_path, replaced, message, capsys):
    cifar100_archive(folder / NAME, replaced=replaced)
    with pytest.raises(BezoarError, match=message):
        data.cifar100(str(folder))
    assert everything_in(tmp_path) == ["data", f"data/{NAME}"]
    assert "it ran" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_an_archive_with_a_link_is_refused_and_leaves_nothing(folder, tmp_path, kind):
    link = tarfile.TarInfo("cifar-100-python/link")
    link.type, link.linkname = kind, "../../outside"
    tar_gz(folder / NAME, cifar100_files(), [link])
    with pytest.raises(BezoarError, match="is a link or a device"):
        data.cifar100(str(folder))
    assert everything_in(tmp_path) == ["data", f"data/{NAME}"]


def test_an_archive_that_leads_outside_is_refused_and_leaves_nothing(folder, tmp_path):
    tar_gz(folder / NAME, cifar100_files() | {"../outside": b"was here"})
    with pytest.raises(BezoarError, match="leads outside"):
        data.cifar100(str(folder))
    assert everything_in(tmp_path) == ["data", f"data/{NAME}"]


def test_a_truncated_archive_is_refused_and_leaves_nothing(folder, tmp_path):
    path = cifar100_archive(folder / NAME)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(BezoarError, match="damaged or not an archive"):
        data.cifar100(str(folder))
    assert everything_in(tmp_path) == ["data", f"data/{NAME}"]


def test_softmax_regression_on_images(folder):
    import torch

    from bezoar.models import SoftmaxRegression

    cifar100_archive(folder / NAME)
    images = data.cifar100(str(folder)).train[:7]
    model = SoftmaxRegression(classes=100, features=3072)
    design = model.design(images, torch.float64)
    expected = images.reshape(7, -1) / 127.5 - 1
    np.testing.assert_allclose(design[:, :3072].numpy(), expected, atol=1e-15)
