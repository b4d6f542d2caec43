import numpy as np
import pytest
import torch
from scipy import sparse

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


def test_its_repr_is_a_line_without_arrays():
    assert repr(made(name="mine")) == "Dataset(mine: 4 + 2 samples of 3, 2 classes)"


def test_lists_and_tensors_are_arrays_too():
    rows, labels = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [0, 0, 1]], [0, 1, 0, 1]
    expected = made(train=np.array(rows, dtype=float), test=np.array(rows[:2], dtype=float))
    lists = made(
        train=rows, train_labels=labels, test=rows[:2], test_labels=(0, 1), classes=np.int64(2)
    )
    tensors = made(
        train=torch.tensor(rows, dtype=torch.float64).requires_grad_(),
        train_labels=torch.tensor(labels),
        test=torch.tensor(rows[:2], dtype=torch.float64),
        test_labels=torch.tensor([0, 1]),
    )
    assert lists.fingerprint == tensors.fingerprint == expected.fingerprint


@pytest.mark.parametrize("kind", ["u1", "i4", "u8", ">i2", "<i8"])
def test_labels_of_any_integer_type_are_the_same(kind):
    given = made(
        train_labels=np.array([0, 1, 0, 1], dtype=kind), test_labels=np.array([0, 1], dtype=kind)
    )
    assert given.train_labels.dtype == given.test_labels.dtype == np.int64
    assert given.fingerprint == made().fingerprint


def test_numbers_are_in_the_order_of_bytes_that_torch_reads():
    features = np.arange(12.0).reshape(4, 3)
    swapped = made(train=features.astype(">f8"), test=features[:2].astype(">f8"))
    assert torch.from_numpy(swapped.train).tolist() == features.tolist()
    assert swapped.fingerprint == made(train=features, test=features[:2]).fingerprint


def test_numbers_have_no_more_bits_than_torch_reads():
    samples = np.arange(12, dtype=np.longdouble).reshape(4, 3)
    assert made(train=samples).train.dtype == np.float64
    assert made(train=samples).fingerprint == made(train=samples.astype(np.float64)).fingerprint


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
        (
            {"train": np.zeros((4, 3), dtype=int)},
            r"train: expected uint8 \(pixels\) or floating point",
        ),
        ({"train_labels": np.array([0, 1])}, "train_labels: expected 4 labels"),
        ({"train_labels": np.array([0, 1, 0, 2])}, "train_labels: expected 0 … 1, found 0 … 2"),
        ({"test_labels": np.array([-1, 1])}, "test_labels: expected 0 … 1, found -1 … 1"),
        ({"test_labels": np.array([0.0, 1.0])}, "test_labels: expected integers"),
        (
            {"test": np.zeros((2, 5))},
            r"test: expected .* \[3\] as in train, found \[5\]",
        ),
        (
            {"train": np.zeros((4, 3), np.uint8)},
            "test: expected uint8 as in train, found float32; uint8 pixels are scaled",
        ),
        ({"train": np.zeros((4, 0))}, r"train: expected samples .* found \[4, 0\]"),
        ({"train": np.zeros((4, 1, 2, 2))}, "train: expected images of uint8, found float64"),
        ({"train": np.array([[0.0, 1.0, np.nan]] * 4)}, "train: expected finite numbers"),
        ({"train_labels": np.ones(4, dtype=int)}, "train_labels: expected two classes or more"),
        ({"classes": 1}, "classes: expected an integer of at least 2, found 1"),
        ({"classes": "two"}, "classes: expected an integer of at least 2, found 'two'"),
        ({"train": None}, "train: expected an array, found NoneType"),
        ({"test": sparse.csr_array(np.eye(3))}, "test: expected an array, found csr_array"),
        ({"train_labels": 3}, "train_labels: expected an array, found int"),
        ({"train": [[1, 2, 3], [4, 5]]}, "train: expected an array, found list"),
        ({"train": [["a", "b", "c"]] * 4}, "train: expected uint8 .* found <U1"),
        ({"class_names": ("cat",)}, "class_names: expected 2 names, found 1"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(BezoarError, match=message):
        made(**changes)
