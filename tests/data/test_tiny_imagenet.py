import io
import zipfile

import numpy as np
import pytest
from archives import (
    everything_in,
    jpeg,
    tiny_imagenet_archive,
    tiny_imagenet_files,
    write_zip,
)
from PIL import Image

from bezoar import BezoarError, data
from bezoar.data import _decoded, _tiny_imagenet

NAME = "tiny-imagenet-200-few.zip"
ROOT = "tiny-imagenet-200"


def test_images_and_labels_are_those_of_the_archive(image_archives):
    [path] = image_archives.glob("tiny-imagenet-200-*.zip")
    found = data.tiny_imagenet(str(image_archives))
    assert found.sample_shape == (3, 64, 64)
    assert found.classes == 200
    with zipfile.ZipFile(path) as archive:
        kinds = sorted(archive.read(f"{ROOT}/wnids.txt").decode().split())
        train = sorted(name for name in archive.namelist() if name.startswith(f"{ROOT}/train/"))
        assert len(train) == len(found.train)
        for place in range(0, len(train), 7):
            image = Image.open(io.BytesIO(archive.read(train[place]))).convert("RGB")
            expected = np.asarray(image).transpose(2, 0, 1)
            np.testing.assert_array_equal(found.train[place], expected)
            assert kinds[found.train_labels[place]] == train[place].split("/")[2]
        table = archive.read(f"{ROOT}/val/val_annotations.txt").decode().strip().split("\n")
        annotations = dict(line.split("\t")[:2] for line in table)
        test = sorted(name for name in archive.namelist() if f"{ROOT}/val/images/" in name)
    assert len(test) == len(found.test)
    for name, label in zip(test, found.test_labels, strict=True):
        assert annotations[name.split("/")[-1]] == kinds[label]
    each, each_test = len(train) // 200, len(test) // 200
    assert found.note == (
        f"cut down: {each} of 500 training and {each_test} of 50 test images a class"
    )


def test_real_images(real_archives):
    found = data.tiny_imagenet(str(real_archives))
    assert found.class_names[0] == "goldfish"
    assert len(set(found.class_names)) == 200
    red, _, blue = found.train[found.train_labels == 0].mean((0, 2, 3))
    assert red > blue + 30, "goldfish are red"


def test_greyscale_becomes_rgb(folder):
    grey = np.tile(np.arange(64, dtype=np.uint8) * 4, (64, 1))
    files = tiny_imagenet_files()
    name = min(name for name in files if "/train/" in name)
    write_zip(folder / NAME, files | {name: jpeg(grey)})
    found = data.tiny_imagenet(str(folder)).train[0].astype(int)
    assert (found == found[0]).all()
    assert np.abs(found[0] - grey).max() <= 8  # JPEG is not exact


def test_class_names_are_the_first_of_several(folder):
    tiny_imagenet_archive(folder / NAME)
    assert data.tiny_imagenet(str(folder)).class_names == (
        "name of n00001000", "name of n00001001", "name of n00001002",
    )  # fmt: skip


def test_it_is_decoded_once_and_mapped(folder, monkeypatch):
    tiny_imagenet_archive(folder / NAME)
    first = data.tiny_imagenet(str(folder))
    _decoded._load.cache_clear()  # as in another process
    monkeypatch.setattr(_tiny_imagenet, "_decode", lambda _: pytest.fail("decoded again"))
    again = data.tiny_imagenet(str(folder))
    assert again.fingerprint == first.fingerprint
    assert isinstance(again.train.base, np.memmap)


def changed(**changes):
    return lambda files: files | {f"{ROOT}/{name}": new for name, new in changes.items()}


def first_image(content):
    def change(files):
        return files | {min(name for name in files if "/train/" in name): content}

    return change


def without(part):
    return lambda files: {name: files[name] for name in files if part not in name}


def png():
    content = io.BytesIO()
    Image.fromarray(np.zeros((64, 64, 3), np.uint8)).save(content, "PNG")
    return content.getvalue()


SMALL = np.zeros((64, 63, 3), np.uint8)
WHOLE = jpeg(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (first_image(jpeg(SMALL)), r"_0.JPEG: expected 64 × 64 pixels, found 63 × 64"),
        (first_image(png()), r"_0.JPEG: cannot be decoded"),
        (first_image(b"not an image"), r"_0.JPEG: cannot be decoded"),
        (first_image(WHOLE[: len(WHOLE) // 2]), r"_0.JPEG: cannot be decoded"),
        (first_image(b""), r"_0.JPEG: cannot be decoded"),
        (without("wnids"), r"expected a file tiny-imagenet-200/wnids.txt, found none"),
        (without("val_annotations"), r"expected a file .*val_annotations.txt, found none"),
        (without("/train/"), r"train: expected samples .* found \[0, 3, 64, 64\]"),
        (changed(**{"wnids.txt": b"n00001000\n"}), "two or more different lines in wnids"),
        (
            changed(**{"val/val_annotations.txt": b"val_0.JPEG\tn1\n"}),
            r"expected a class of wnids.txt for val_0.JPEG in val_annotations.txt, found n1",
        ),
        (
            changed(**{"val/val_annotations.txt": b""}),
            r"expected a class of wnids.txt for val_0.JPEG in val_annotations.txt, found None",
        ),
        (changed(**{"../../outside": b"was here"}), "leads outside"),
        (changed(**{"wnids.txt": b"\xff\xfe"}), "damaged or not an archive"),
    ],
)
def test_what_is_not_tiny_imagenet_is_refused_and_leaves_nothing(folder, tmp_path, change, message):
    write_zip(folder / NAME, change(tiny_imagenet_files()))
    with pytest.raises(BezoarError, match=message):
        data.tiny_imagenet(str(folder))
    assert everything_in(tmp_path) == ["data", f"data/{NAME}"]
