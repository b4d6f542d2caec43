import os

import numpy as np
import pytest
from archives import cifar100_archive, everything_in

from bezoar import BezoarError, data
from bezoar.data import Dataset, _cifar, _decoded

NAME = "cifar-100-python-few.tar.gz"


def test_a_write_that_fails_leaves_nothing_and_can_be_tried_again(folder, cache, monkeypatch):
    cifar100_archive(folder / NAME)
    save, calls = np.save, []

    def full_disk(*arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise OSError("no space left on device")
        save(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", full_disk)
        with pytest.raises(BezoarError, match=r"cifar100: the cache folder .* no space left"):
            data.cifar100(str(folder))
    assert len(calls) == 3
    assert everything_in(cache / "decoded") == []
    assert len(data.cifar100(str(folder)).train) == 200


def test_two_processes_may_decode_at_once(folder, cache, monkeypatch):
    cifar100_archive(folder / NAME)
    decode = _cifar._decode

    def decode_after_the_other_process(*arguments):
        monkeypatch.setattr(_cifar, "_decode", decode)
        data.cifar100(str(folder))
        return decode(*arguments)

    monkeypatch.setattr(_cifar, "_decode", decode_after_the_other_process)
    assert len(data.cifar100(str(folder)).train) == 200
    assert len(list((cache / "decoded").iterdir())) == 1


@pytest.mark.parametrize("name", ["train.npy", "test_labels.npy", "about.json"])
@pytest.mark.parametrize("size", [0, 10, 100])
def test_a_damaged_folder_says_what_to_delete(folder, cache, name, size):
    cifar100_archive(folder / NAME)
    data.cifar100(str(folder))
    _decoded._load.cache_clear()
    [kept] = (cache / "decoded").iterdir()
    os.truncate(kept / name, size)
    with pytest.raises(BezoarError, match=f"{kept.name} is damaged .* delete it"):
        data.cifar100(str(folder))


def test_what_is_kept_is_what_was_decoded(tmp_path):
    rng = np.random.default_rng(0)
    given = Dataset(
        "mine",
        rng.integers(0, 256, (6, 2, 3, 4), dtype=np.uint8),
        np.arange(6) % 2,
        rng.integers(0, 256, (3, 2, 3, 4), dtype=np.uint8),
        np.array([0, 1, 1]),
        classes=2,
        class_names=("räv", "狐"),
        note="a note",
    )
    _decoded._save(given, tmp_path / "kept")
    found = _decoded._load(tmp_path / "kept")
    assert found.fingerprint == given.fingerprint
    assert (found.name, found.class_names, found.note) == ("mine", ("räv", "狐"), "a note")
