import numpy as np
import pytest

from bezoar import BezoarError
from bezoar.data import Dataset


def made(**changes):
    parts = {
        "name": "mine",
        "train": np.zeros((4, 3), dtype=np.float32),
        "train_labels": np.array([0, 1, 0, 1]),
        "test": np.zeros((2, 3), dtype=np.float32),
        "test_labels": np.array([0, 1]),
        "classes": 2,
    }
    return Dataset(**(parts | changes))


def test_a_dataset_of_ones_own():
    mine = made()
    assert mine.features == 3
    assert mine.sample_shape == (3,)
    assert mine.class_names == ("0", "1")
    assert mine.note == ""


def test_images():
    train, test = np.zeros((4, 3, 5, 7), np.uint8), np.zeros((2, 3, 5, 7), np.uint8)
    images = made(train=train, test=test, class_names=["cat", "dog"], note="cut down")
    assert images.features == 3 * 5 * 7
    assert images.sample_shape == (3, 5, 7)
    assert images.class_names == ("cat", "dog")
    assert images.note == "cut down"


def test_the_fingerprint_depends_on_every_array_and_on_nothing_else():
    mine = made()
    assert mine.fingerprint == made(name="yours", note="x", class_names=("a", "b")).fingerprint
    changes = [
        {"train": np.ones((4, 3), dtype=np.float32)},
        {"train": np.zeros((4, 3), dtype=np.float64)},
        {"train_labels": np.array([1, 1, 0, 1])},
        {"test": np.ones((2, 3), dtype=np.float32)},
        {"test_labels": np.array([1, 1])},
        {"classes": 3},
    ]
    found = {made(**change).fingerprint for change in changes} | {mine.fingerprint}
    assert len(found) == len(changes) + 1


def test_the_fingerprint_tells_shapes_apart_that_have_the_same_bytes():
    shapes = [(3, 4, 5), (4, 3, 5), (1, 6, 10)]
    images = [
        made(train=np.zeros((4, *shape), np.uint8), test=np.zeros((2, *shape), np.uint8))
        for shape in shapes
    ]
    assert len({dataset.fingerprint for dataset in images}) == len(shapes)


def test_the_fingerprint_is_of_values_wherever_they_lie_in_memory():
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(8, 6)), rng.normal(size=(4, 6))
    strided = made(train=train[::2, ::2], test=test[::2, ::2])
    copied = made(train=train[::2, ::2].copy(), test=test[::2, ::2].copy())
    assert strided.fingerprint == copied.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": np.zeros(4)}, r"train: expected samples of shape \[n, features\]"),
        ({"train": np.zeros((4, 3), dtype=int)}, "train: expected uint8 or floating point"),
        ({"train_labels": np.array([0, 1])}, "train_labels: expected 4 labels"),
        ({"train_labels": np.array([0, 1, 0, 2])}, "train_labels: expected 0 … 1, found 0 … 2"),
        ({"test_labels": np.array([-1, 1])}, "test_labels: expected 0 … 1, found -1 … 1"),
        ({"test_labels": np.array([0.0, 1.0])}, "test_labels: expected integers"),
        (
            {"test": np.zeros((2, 5))},
            r"test: expected .* \[3\] as in train, found \[5\]",
        ),
        ({"train": np.zeros((4, 0))}, r"train: expected samples .* found \[4, 0\]"),
        ({"train": np.zeros((4, 1, 2, 2))}, "train: expected images of uint8, found float64"),
        ({"train": np.array([[0.0, 1.0, np.nan]] * 4)}, "train: expected finite numbers"),
        ({"class_names": ("cat",)}, "class_names: expected 2 names, found 1"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(BezoarError, match=message):
        made(**changes)
