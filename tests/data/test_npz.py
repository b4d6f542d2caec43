import re
from pathlib import Path

import numpy as np
import pytest

from bezoar import BezoarError, data


def written(path, **changes):
    rng = np.random.default_rng(0)
    arrays = {
        "x_train": rng.integers(0, 256, (6, 8, 9), dtype=np.uint8),
        "y_train": np.array([0, 1, 2, 0, 1, 2]),
        "x_test": rng.integers(0, 256, (3, 8, 9), dtype=np.uint8),
        "y_test": np.array([2, 1, 0]),
    } | changes
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    return arrays


def test_grey_images(tmp_path):
    arrays = written(tmp_path / "mine.npz")
    found = data.load("npz", path=str(tmp_path / "mine.npz"))
    assert found.name == "mine"
    assert found.sample_shape == (1, 8, 9)
    assert found.classes == 3
    np.testing.assert_array_equal(found.train[:, 0], arrays["x_train"])
    np.testing.assert_array_equal(found.test_labels, arrays["y_test"])


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels_first_and_channels_last_are_the_same(tmp_path, channels):
    rng = np.random.default_rng(1)
    train, test = (
        rng.integers(0, 256, (count, channels, 8, 9), dtype=np.uint8) for count in (6, 3)
    )
    written(tmp_path / "first.npz", x_train=train, x_test=test)
    last = {"x_train": train.transpose(0, 2, 3, 1), "x_test": test.transpose(0, 2, 3, 1)}
    written(tmp_path / "last.npz", **last)
    first, last = (data.from_npz(str(tmp_path / f"{name}.npz")) for name in ("first", "last"))
    assert first.sample_shape == (channels, 8, 9)
    assert first.fingerprint == last.fingerprint


def test_features_and_small_integer_labels(tmp_path):
    rng = np.random.default_rng(2)
    written(
        tmp_path / "it.npz",
        x_train=rng.normal(size=(6, 5)),
        x_test=rng.normal(size=(3, 5)),
        y_train=np.array([0, 1, 2, 0, 1, 2], dtype=np.uint8),
    )
    found = data.from_npz(str(tmp_path / "it.npz"))
    assert found.features == 5
    assert found.train_labels.dtype == np.int64


def test_a_file_is_read_once_until_it_changes(tmp_path):
    path = tmp_path / "it.npz"
    written(path)
    first = data.from_npz(str(path))
    assert data.from_npz(str(path)) is first
    for array in (first.train, first.train_labels, first.test, first.test_labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    written(path, x_train=np.zeros((6, 8, 9), np.uint8), extra=np.zeros(99))
    assert data.from_npz(str(path)).fingerprint != first.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_train": np.array([None] * 6, dtype=object)}, "not a .npz file of plain arrays"),
        ({"y_test": np.array([0, 1, 2], dtype=object)}, "not a .npz file of plain arrays"),
        ({"x_test": None}, "expected an array 'x_test', found x_train, y_train, y_test"),
        ({"x_train": np.zeros((6, 5, 8, 9), np.uint8)}, "train: expected 1, 3 or 4 channels"),
        ({"x_train": np.zeros((6, 3, 8, 3), np.uint8)}, "train: expected 1, 3 or 4 channels"),
        ({"x_train": np.full((6, 4), np.nan)}, "train: expected finite numbers"),
        ({"x_train": np.full((6, 4), np.inf)}, "train: expected finite numbers"),
        ({"x_train": np.zeros((6, 4), dtype=np.int64)}, "train: expected uint8"),
        ({"x_train": np.zeros((6, 8, 9))}, "train: expected images of uint8, found float64"),
        ({"x_train": np.zeros((6, 0))}, r"train: expected samples .* found \[6, 0\]"),
        ({"x_train": np.zeros(6)}, r"train: expected samples .* found \[6\]"),
        ({"x_test": np.zeros((3, 8, 8), np.uint8)}, r"test: expected .* \[1, 8, 9\] as in train"),
        ({"y_train": np.array([0, 1])}, "train_labels: expected 6 labels"),
        ({"y_train": np.zeros(6, dtype=int)}, "train_labels: expected two classes"),
        ({"y_train": np.zeros(6)}, "y_train: expected a list of integers, found float64"),
        ({"y_train": np.zeros((6, 1), dtype=int)}, r"y_train: expected a list .* \[6, 1\]"),
        ({"y_test": np.array([0, -1, 2])}, "test_labels: expected 0 … 2, found -1 … 2"),
        ({"y_test": np.zeros(0, dtype=int)}, r"y_test: expected a list .* \[0\]"),
        (
            {"y_test": np.array([0, 123_456, 2])},
            "y_test: expected the numbers of classes, .* found 123,456 in a file of 9",
        ),
        (
            {"x_test": np.zeros((3, 72), np.uint8), "x_train": np.zeros((6, 72))},
            "test: expected float64 as in train, found uint8",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused(tmp_path, changes, message):
    written(tmp_path / "it.npz", **changes)
    with pytest.raises(BezoarError, match=rf"it.npz: .*{message}"):
        data.from_npz(str(tmp_path / "it.npz"))


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 not a zip"])
def test_a_file_that_is_no_npz_is_refused(tmp_path, content):
    (tmp_path / "it.npz").write_bytes(content)
    with pytest.raises(BezoarError, match=r"it.npz: not a .npz file .* is no archive") as refused:
        data.from_npz(str(tmp_path / "it.npz"))
    assert "pickle" not in str(refused.value)  # numpy takes whatever it does not know for one


def test_a_single_array_is_refused(tmp_path):
    np.save(tmp_path / "it.npy", np.zeros(3))
    with pytest.raises(BezoarError, match=r"not a .npz file .* it holds a single array"):
        data.from_npz(str(tmp_path / "it.npy"))


def test_a_truncated_file_is_refused(tmp_path):
    written(tmp_path / "it.npz")
    content = (tmp_path / "it.npz").read_bytes()
    (tmp_path / "it.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(BezoarError, match=r"not a .npz file of plain arrays"):
        data.from_npz(str(tmp_path / "it.npz"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BezoarError, match=r"path: .*it.npz cannot be read: No such file"):
        data.from_npz(str(tmp_path / "it.npz"))


def test_the_folder_of_a_user_who_is_not_there():
    with pytest.raises(
        BezoarError, match=r"path: ~nobody-here/x\.npz cannot be read: No such file"
    ):
        data.from_npz("~nobody-here/x.npz")
    with pytest.raises(BezoarError, match="data_dir: ~nobody-here lacks the file"):
        data.cifar10(data_dir="~nobody-here")


def test_the_path_must_be_given():
    with pytest.raises(BezoarError, match="dataset npz: the option 'path' must be given"):
        data.load("npz")


def test_the_example_in_the_documentation(tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "datasets.md"
    [code] = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = written(tmp_path / "it.npz")
    exec(compile(code, page.name, "exec"), names)
    np.testing.assert_array_equal(names["mine"].train[:, 0], names["x_train"])
