import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bezoar import BezoarError, attacks, networks
from bezoar.experiments import RunSpec


def poison(attack, labels, classes, seed=0):
    """The labels an agent trains on."""
    rng = np.random.default_rng(seed)
    touched = attack.touched(labels, rng)
    return np.where(touched, attack.corrupt(labels, classes, rng), labels)


LABELS = np.random.default_rng(3).integers(0, 10, 1000)


def test_label_flip_reverses_the_classes():
    assert np.array_equal(poison(attacks.create("label_flip"), LABELS, 10), 9 - LABELS)


def test_random_labels_are_always_wrong_and_reach_every_class():
    found = poison(attacks.create("random_labels"), LABELS, 10)
    assert np.all(found != LABELS)
    offsets = np.bincount((found - LABELS) % 10, minlength=10)
    assert offsets[1:].min() > 60  # 1000 samples over nine other classes


def test_targeted_touches_one_class():
    found = poison(attacks.create("targeted", source=3, target=7), LABELS, 10)
    assert np.array_equal(found, np.where(LABELS == 3, 7, LABELS))


@given(fraction=st.floats(0, 1), seed=st.integers(0, 99))
@pytest.mark.parametrize("name", ["label_flip", "random_labels", "dynamic_label_flip"])
def test_the_fraction_is_touched(name, fraction, seed):
    attack = attacks.create(name, fraction=fraction)
    touched = attack.touched(LABELS, np.random.default_rng(seed))
    assert touched.sum() == round(fraction * len(LABELS))


def test_a_fraction_of_the_source_class():
    attack = attacks.create("targeted", source=3, target=7, fraction=0.5)
    touched = attack.touched(LABELS, np.random.default_rng(0))
    assert touched.sum() == round(0.5 * (LABELS == 3).sum())
    assert set(LABELS[touched]) == {3}


def test_which_samples_depends_on_the_seed_alone():
    attack = attacks.create("label_flip", fraction=0.5)
    assert np.array_equal(poison(attack, LABELS, 10, 1), poison(attack, LABELS, 10, 1))
    assert not np.array_equal(poison(attack, LABELS, 10, 1), poison(attack, LABELS, 10, 2))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("label_flp", {}, "attack: 'label_flp' is not known; allowed: label_flip, "),
        ("label_flip", {"fraction": 1.5}, "fraction: expected a number of at most 1.0, found 1.5"),
        ("label_flip", {"fraction": float("nan")}, "fraction: expected a number of .*, found nan"),
        ("targeted", {"source": -1}, "source: expected a number of at least 0, found -1"),
        ("targeted", {"source": 2, "target": 2}, "target: must differ from source"),
        ("targeted", {"origin": 2}, "no option 'origin'; allowed: "),
    ],
)
def test_refusals(name, options, message):
    with pytest.raises(BezoarError, match=message):
        attacks.create(name, **options)


def test_classes_an_attack_cannot_work_with():
    with pytest.raises(BezoarError, match="target 7 is not a class; allowed: 0 … 4"):
        attacks.create("targeted", source=0, target=7).check(5)


def seen(knows):
    messages = torch.arange(12.0).view(1, 4, 3)
    ends = torch.tensor([1]), torch.tensor([2])
    return attacks.SeenMessages(1, networks.ring(4, {1}), knows, *ends, messages, 2 * messages)


def test_an_attack_is_given_what_it_says_that_it_knows():
    for knows in ("own", "neighbours", "everything"):
        known = seen(knows)
        assert known.own_messages().tolist() == [[[3, 4, 5]]]
        assert known.own_models().tolist() == [[[6, 8, 10]]]
    assert seen("neighbours").receivers_messages().tolist() == [[[6, 7, 8]]]
    assert seen("everything").all_messages().shape == (1, 4, 3)
    with pytest.raises(BezoarError, match="knows 'own' and asks for 'neighbours'"):
        seen("own").receivers_messages()
    with pytest.raises(BezoarError, match="knows 'neighbours' and asks for 'everything'"):
        seen("neighbours").all_messages()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scale": -1}, "scale: expected a number of at least 0.0, found -1"),
        ({"scale": True}, "scale: expected a number, found True"),
        ({"broadcast": 1}, "broadcast: expected true or false, found 1"),
    ],
)
def test_wrong_options_of_message_attacks_are_refused(options, told):
    with pytest.raises(BezoarError, match=told):
        attacks.create("sign_flip", **options)


@pytest.mark.parametrize("name", attacks.ATTACKS)
def test_every_attack_has_a_window(name):
    attack = attacks.create(name, from_iteration=3, until=5)
    assert [k for k in range(1, 9) if attack.active(k)] == [3, 4, 5]
    assert not attack.always
    assert attacks.create(name).always
    with pytest.raises(BezoarError, match="until: expected at least 3, as from_iteration is"):
        attacks.create(name, from_iteration=3, until=2)


@pytest.mark.parametrize("name", attacks.ATTACKS)
def test_every_label_attack_has_a_fraction(name):
    kind = attacks.ATTACKS[name]
    assert kind.lies != issubclass(kind, attacks.LabelAttack)
    if not kind.lies:
        assert (
            not attacks.create(name, fraction=0.0).touched(LABELS, np.random.default_rng(0)).any()
        )


def test_two_spellings_of_a_window_are_one_spec():
    plain = RunSpec.read({"attack": "label_flip"})
    table = {"name": "label_flip", "from_iteration": 1, "fraction": 1.0}
    assert plain == RunSpec.read({"attack": table}) == RunSpec.read({"attack": attacks.LabelFlip()})
    assert plain.document()["attack"]["until"] is None
    assert plain != RunSpec.read({"attack": "label_flip:until=5"})
    mixed = RunSpec.read({"attack": "label_flip+sign_flip:until=5"})
    assert mixed == RunSpec.read({"attack": attacks.create("label_flip+sign_flip", until=5)})
    assert mixed == RunSpec.recall(mixed.document())


def test_a_mix_has_the_labels_of_one_and_the_messages_of_the_other():
    mixed = attacks.create("targeted+ipm", source=2, target=5, scale=0.5, share=0.25)
    assert np.array_equal(poison(mixed, LABELS, 10), np.where(LABELS == 2, 5, LABELS))
    known = seen("everything")
    lie = attacks.create("ipm", scale=0.5).on_messages(known)
    expected = 0.75 * known.own_messages() + 0.25 * lie
    torch.testing.assert_close(mixed.on_messages(known), expected)
    assert mixed.lies
    assert mixed.knowledge == "everything"
    assert attacks.create("label_flip+gaussian").knowledge == "own"
    assert attacks.create("dynamic_label_flip+zero", judge="average").knowledge == "everything"
    assert attacks.create("worst_labels+sign_flip", knows="own").knowledge == "neighbours"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sign_flip+label_flip", "expected an attack on labels before the plus, found sign_flip"),
        ("label_flip+targeted", "expected an attack on messages after the plus, found targeted"),
        ("label_flop+zero", "attack, before the plus: 'label_flop' is not known"),
        ("label_flip+zeros", "attack: 'zeros' is not known; allowed: zero"),
    ],
)
def test_mixes_that_cannot_be(name, told):
    with pytest.raises(BezoarError, match=told):
        attacks.create(name)
    with pytest.raises(BezoarError, match=told):
        RunSpec.read({"attack": name})


def test_three_attacks_are_no_mix():
    with pytest.raises(BezoarError, match="expected one plus, found 2"):
        attacks.create("label_flip+next_class+zero")
    with pytest.raises(BezoarError, match="expected one plus, found 2"):
        RunSpec.read({"attack": "label_flip+next_class+zero"})


def test_a_patch_is_a_corner_of_every_channel():
    attack = attacks.create("backdoor", size=2)
    found = attack.patch((3, 5, 4))
    expected = np.zeros((3, 5, 4), dtype=bool)
    expected[:, 3:, 2:] = True
    assert np.array_equal(found, expected)
    assert np.array_equal(attack.patch((16,)).reshape(4, 4), np.outer([0, 0, 1, 1], [0, 0, 1, 1]))


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (np.zeros((2, 6), np.uint8), "needs images .* of uint8 of shape .6."),
        (np.zeros((2, 9)), "needs images .* of float64 of shape .9."),
        (np.zeros((2, 1, 2, 8), np.uint8), "size 3 is more than images of 2 × 8 pixels have"),
    ],
)
def test_samples_that_take_no_patch(samples, told):
    with pytest.raises(BezoarError, match=told):
        attacks.create("backdoor").check_samples(samples)
    with pytest.raises(BezoarError, match="target 7 is not a class"):
        attacks.create("backdoor", target=7).check(5)
