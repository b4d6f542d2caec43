"""Which samples an agent takes, and what augmentation makes of images."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezoar.training._agent_samples import PADDING, crop_and_flip
from bezoar.training._batches import Batches

SIZES = st.integers(1, 40)


@given(
    size=SIZES,
    batch=SIZES,
    passes=st.integers(1, 5),
    order=st.sampled_from(["random", "consecutive"]),
)
def test_every_sample_once_before_any_again(size, batch, passes, order):
    batches = Batches(np.array([3, size]), batch, order)
    updates = -(-passes * size // batch)
    taken = [batches.places(5, 1, update) for update in range(1, updates + 1)]
    assert all(len(places) == batch for places in taken)
    each_pass = np.concatenate(taken)[: passes * size].reshape(passes, size)
    assert (np.sort(each_pass) == np.arange(size)).all()
    if order == "consecutive":
        assert (each_pass == np.arange(size)).all()


@given(size=SIZES, batch=SIZES, updates=st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_a_batch_depends_on_no_other(size, batch, updates):
    """In any order, and from an agent who has just begun, it is the same."""
    used = Batches(np.array([size]), batch)
    for update in updates:
        fresh = Batches(np.array([size]), batch)
        assert (used.places(1, 0, update) == fresh.places(1, 0, update)).all()


def test_seeds_agents_and_passes_have_orders_of_their_own():
    batches = Batches(np.array([50, 50]), 50)
    orders = {
        tuple(batches.places(seed, agent, update))
        for seed in (0, 1)
        for agent in (0, 1)
        for update in (1, 2)
    }
    assert len(orders) == 8


def images(count, channels=2, height=6, width=5):
    return np.random.default_rng(0).integers(1, 256, (count, channels, height, width), np.uint8)


def test_images_are_moved_and_mirrored_and_nothing_else():
    """Every result is one of the 81 × 2 that there can be, and all of them are about as likely."""
    [image] = images(1)
    found = crop_and_flip(np.repeat(image[None], 4000, axis=0), np.random.default_rng(1))
    padded = np.pad(image, ((0, 0), (PADDING, PADDING), (PADDING, PADDING)))
    possible = set()
    for down in range(2 * PADDING + 1):
        for right in range(2 * PADDING + 1):
            part = padded[:, down : down + 6, right : right + 5]
            possible |= {part.tobytes(), part[..., ::-1].tobytes()}
    counts = Counter(each.tobytes() for each in found)
    assert set(counts) == possible
    # Some 25 each, with a standard deviation of 5.
    assert min(counts.values()) > 5
    assert max(counts.values()) < 50


def test_every_image_is_moved_by_itself():
    """No image is taken for another, and images next to each other are not moved alike."""
    some = np.stack([np.full((2, 9, 9), value, np.uint8) for value in range(1, 65)])
    found = crop_and_flip(some, np.random.default_rng(3))
    assert (found.max((1, 2, 3)) == np.arange(1, 65)).all()
    black = (found == 0).reshape(64, -1)
    assert len(np.unique(black, axis=0)) > 30


def test_augmentation_is_a_function_of_its_generator():
    some = images(20)
    before = some.copy()
    one, again, other = (crop_and_flip(some, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (some == before).all()
    assert (one == again).all()
    assert (one != other).any()
    assert one.dtype == np.uint8


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_augmentation_keeps_shape_and_type(dtype):
    some = images(3, channels=1, height=28, width=28).astype(dtype)
    found = crop_and_flip(some, np.random.default_rng(0))
    assert (found.shape, found.dtype) == (some.shape, some.dtype)
