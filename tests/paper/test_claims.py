import dataclasses
import math
import zlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_curves import METRICS, constant, curves

from bezoar.paper import CLAIMS, FIGURES, Claim, Curves, Place, judge, verdict
from bezoar.paper._criteria import Ahead, Alike, Between, Drops, Rises, Settles
from bezoar.report import Curve

MARGINS = st.lists(st.floats(-1, 1), min_size=1, max_size=6)


def seen(runs):
    """Curves of one seed each, from finals or values by place."""
    made = {Place(*place): Curve(place[2], (constant(value),)) for place, value in runs.items()}
    return Curves(made)


def margin_of(criterion, runs):
    """The margin of a criterion at one seed."""
    [margin] = criterion.judge(seen(runs))[0]
    return margin


def numbers_of(criterion, runs):
    """The numbers behind it."""
    return {name: float(value) for name, [value] in criterion.judge(seen(runs))[1].items()}


# The rule of verdicts.


@pytest.mark.parametrize(
    ("margins", "expected"),
    [
        ([0.02], "holds"),
        ([-0.02], "does not hold"),
        ([0.01], "undecided"),  # at the resolution, not above it
        ([-0.01], "undecided"),
        ([0.02, 0.5], "holds"),
        ([0.5, 0.005], "undecided"),
        ([0.5, -0.5], "undecided"),
        ([-0.5, -0.02], "does not hold"),
        ([0.5, math.nan], "undecided"),
        ([-0.5, math.nan], "undecided"),
        ([], "undecided"),
    ],
)
def test_all_seeds_must_agree_beyond_the_resolution(margins, expected):
    assert verdict(margins, 0.01) == expected


@given(MARGINS, st.floats(0, 0.5), st.randoms(use_true_random=False))
def test_a_verdict_does_not_depend_on_the_order_of_seeds(margins, resolution, random):
    shuffled = list(margins)
    random.shuffle(shuffled)
    assert verdict(shuffled, resolution) == verdict(margins, resolution)


@given(MARGINS, st.floats(0, 0.5))
def test_the_opposite_claim_gets_the_opposite_verdict(margins, resolution):
    opposite = {"holds": "does not hold", "does not hold": "holds", "undecided": "undecided"}
    negated = verdict([-margin for margin in margins], resolution)
    assert negated == opposite[verdict(margins, resolution)]


@given(MARGINS, st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 0.5))
def test_more_seeds_or_a_coarser_resolution_decide_no_more(margins, margin, resolution, further):
    decided = verdict(margins, resolution)
    assert verdict([*margins, margin], resolution) in (decided, "undecided")
    assert verdict(margins, resolution + further) in (decided, "undecided")


# The criteria.


def test_ahead_is_the_lowest_leader_over_the_highest_other():
    runs = {("fan", "iid", "ios"): 0.8, ("fan", "iid", "faba"): 0.7, ("fan", "iid", "rfa"): 0.65}
    criterion = Ahead("fan", "iid", ("ios", "faba"), ("rfa",))
    assert margin_of(criterion, runs) == pytest.approx(0.05)
    assert numbers_of(criterion, runs) == {"IOS": 0.8, "FABA": 0.7, "RFA": 0.65}
    near = dataclasses.replace(criterion, leaders=("rfa",), others=("ios", "faba"), by=-0.2)
    assert margin_of(near, runs) == pytest.approx(0.05)


@pytest.mark.parametrize(("best", "decides"), [(0.02, False), (0.03, False), (0.04, True)])
def test_nothing_is_told_where_an_accuracy_of_zero_would_be_near_enough(best, decides):
    runs = {("fan", "iid", "ios"): 0.01, ("fan", "iid", "rfa"): best}
    assert (
        np.isfinite(margin_of(Ahead("fan", "iid", ("ios",), ("rfa",), by=-0.03), runs)) == decides
    )


def test_ahead_may_be_by_a_share_of_the_leader_or_of_all_but_the_best():
    runs = {("fan", "iid", "ios"): 0.8, ("fan", "iid", "faba"): 0.9, ("fan", "iid", "rfa"): 0.5}
    by_share = Ahead("fan", "iid", ("ios",), ("rfa",), share=0.25)
    assert margin_of(by_share, runs) == pytest.approx(0.1)
    ranked = Ahead("fan", "iid", ("ios",), ("faba", "rfa"))
    assert margin_of(ranked, runs) == pytest.approx(-0.1)
    assert margin_of(dataclasses.replace(ranked, top=2), runs) == pytest.approx(0.3)


def test_ahead_looks_at_the_end_alone():
    rising = {"accuracy": np.linspace(0, 0.9, 6)}
    runs = {("fan", "iid", "ios"): rising, ("fan", "iid", "rfa"): {"accuracy": 0.5}}
    assert margin_of(Ahead("fan", "iid", ("ios",), ("rfa",)), runs) == pytest.approx(0.4)


def test_drops_count_the_rules_that_lose_enough():
    ends = {"ios": (0.9, 0.6), "faba": (0.9, 0.8), "rfa": (0.9, 0.95)}
    runs = {("fan", "iid", rule): before for rule, (before, _) in ends.items()}
    runs |= {("fan", "mild", rule): after for rule, (_, after) in ends.items()}
    criterion = Drops(("fan", "iid"), ("fan", "mild"), tuple(ends))
    assert margin_of(criterion, runs) == pytest.approx(-0.05)  # all must: the one that gained
    two = dataclasses.replace(criterion, least=2, by=0.02)
    assert margin_of(two, runs) == pytest.approx(0.08)
    one = dataclasses.replace(criterion, least=1, share=0.25)  # 0.3 lost of 0.9, a third
    assert margin_of(one, runs) == pytest.approx(0.075)
    assert numbers_of(criterion, runs) == pytest.approx({"IOS": -0.3, "FABA": -0.1, "RFA": 0.05})


@pytest.mark.parametrize(
    ("values", "margin"),
    [((1e-5, 1e-5), 1), ((1e-5, 1e-6), 0), ((1e-5, 1e-3), -1), ((1e-7, 1e-5), -1)],
)
def test_between_is_in_powers_of_ten_to_the_nearer_end(values, margin):
    runs = dict(zip([("fan", "iid", "ios"), ("fan", "iid", "rfa")], values, strict=True))
    criterion = Between("fan", "iid", ("ios", "rfa"), "consensus_error", 1e-6, 1e-4)
    assert margin_of(criterion, runs) == pytest.approx(margin)


def test_a_consensus_error_of_zero_is_far_below_every_order():
    criterion = Between("fan", "iid", ("ios",), "consensus_error", 1e-6, 1e-4)
    assert -1000 < margin_of(criterion, {("fan", "iid", "ios"): 0.0}) < -100


def test_rises_needs_every_rule_every_step_and_every_measurement():
    criterion = Rises("fan", ("iid", "mild", "by_class"), ("ios", "rfa"), "heterogeneity")
    runs = {
        ("fan", partition, rule): value
        for rule in ("ios", "rfa")
        for partition, value in (("iid", 0.1), ("mild", 1.0), ("by_class", 100.0))
    }
    assert margin_of(criterion, runs) == pytest.approx(1)
    crossing = {"heterogeneity": np.array([1, 1, 1, 0.01, 1, 1])}
    assert margin_of(criterion, runs | {("fan", "mild", "rfa"): crossing}) == pytest.approx(-1)
    numbers = numbers_of(criterion, runs)
    assert numbers.pop("smallest growth factor of all rules") == pytest.approx(10)
    assert numbers == {"i.i.d.": 0.1, "mild non-i.i.d.": 1.0, "by class": 100.0}


@pytest.mark.parametrize(("xi", "margin"), [(1, 0), (1.5, math.log10(1.5)), (27, -math.log10(3))])
def test_alike_is_symmetric_in_the_ratio(xi, margin):
    metrics = {"heterogeneity": xi, "disturbance": 3.0}
    criterion = Alike("fan", "iid", ("ios",), ("heterogeneity", "disturbance"), 3.0)
    assert margin_of(criterion, {("fan", "iid", "ios"): metrics}) == pytest.approx(margin)
    turned = dataclasses.replace(criterion, metrics=("disturbance", "heterogeneity"))
    assert margin_of(turned, {("fan", "iid", "ios"): metrics}) == pytest.approx(margin)


@pytest.mark.parametrize(
    ("curve", "growth"),
    [([9, 1, 1, 3, 1, 1], 1 / 3), ([1, 1, 1, 1, 1, 1], 1), ([1, 2, 3, 4, 5, 6], 2)],
)
def test_settles_compares_the_halves(curve, growth):
    criterion = Settles("fan", ("iid",), ("ios",), "disturbance", 1.5)
    runs = {("fan", "iid", "ios"): {"disturbance": np.array(curve, dtype=float)}}
    assert margin_of(criterion, runs) == pytest.approx(math.log10(1.5 / growth))
    assert numbers_of(criterion, runs) == pytest.approx(
        {"largest": max(curve), "largest growth factor": growth}
    )


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text)
def test_not_a_number_decides_nothing(claim):
    judged = judge(claim, curves(claim.figure, lambda place, seed: constant(math.nan)))
    assert judged.verdict == "undecided"
    assert judged.margins == ()


# The paper's claims.


def test_every_figure_has_claims_and_they_are_told_apart():
    assert set(Counter(claim.figure for claim in CLAIMS)) == set(FIGURES)
    assert len({(claim.figure, claim.text) for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert claim.text.endswith(".")
        assert claim.paper.startswith(("Section ", "Supplement"))


@pytest.mark.parametrize(
    ("accuracy", "tests", "resolution"),
    [(0.9, 10_000, 0.01), (0.5, 10_000, 0.01), (0.1, 1000, 0.018974), (math.nan, 2500, 0.02)],
)
def test_accuracies_are_resolved_to_two_standard_errors(accuracy, tests, resolution):
    """Of the highest, or of 0.5: a model that is right half of the time is the least certain."""
    ends = {("fan", "iid", "ios"): accuracy, ("fan", "iid", "rfa"): accuracy / 3}
    made = dataclasses.replace(seen(ends), tests=tests)
    criterion = Ahead("fan", "iid", ("ios",), ("rfa",))
    assert criterion.resolution(made) == pytest.approx(resolution, rel=1e-4)
    sizes = Between("fan", "iid", ("ios",), "consensus_error", 1e-6, 1e-4)
    assert sizes.resolution(made) == 0.05


def random_finals(rng, places):
    """Finals that differ by network, by partition, by rule and by themselves, each more or less."""
    effects = [
        {value: rng.uniform(-1, 1, len(METRICS)) for value in set(values)}
        for values in zip(*places, strict=True)
    ]
    *sizes, rest = rng.choice([0.01, 0.1, 1], 4)
    centre = rng.uniform(-6, 0, len(METRICS))
    finals = {}
    for place in places:
        parts = [s * e[value] for s, e, value in zip(sizes, effects, place, strict=True)]
        powers = centre + sum(parts) + rest * rng.uniform(-1, 1, len(METRICS))
        finals[place] = dict(zip(METRICS, 10**powers, strict=True))
    return finals


def between(one, other, share):
    """Finals on the way from one to the other, geometrically."""
    return {
        place: {m: one[place][m] ** (1 - share) * other[place][m] ** share for m in METRICS}
        for place in one
    }


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text)
def test_every_claim_can_come_out_all_three_ways(claim):
    """Otherwise it would claim nothing: search for runs that support it, and that refute it."""
    rng = np.random.default_rng(0)
    places = [place for place, _ in FIGURES[claim.figure].comparisons()[0].runs()]
    growth = rng.uniform(0.2, 3, (1000, 6))

    def judged(finals, shape):
        # Every curve has its final at the end; before that it is made larger or smaller.
        factor = np.where(np.arange(6) < 5, shape, 1)
        runs = {p: constant({m: finals[p][m] * factor for m in METRICS}) for p in places}
        return judge(
            claim, Curves({place: Curve(place.rule, (run,)) for place, run in runs.items()})
        )

    found = {}
    for shape in growth:
        finals = random_finals(rng, places)
        found.setdefault(judged(finals, shape).verdict, (finals, shape))
        if {"holds", "does not hold"} <= set(found):
            break
    assert {"holds", "does not hold"} <= set(found)
    # On the way from support to refutation lies a place where nothing is decided.
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        finals = between(found["holds"][0], found["does not hold"][0], middle)
        shape = found["holds"][1] ** (1 - middle) * found["does not hold"][1] ** middle
        outcome = judged(finals, shape).verdict
        if outcome == "undecided":
            return
        low, high = (middle, high) if outcome == "holds" else (low, middle)
    pytest.fail("no undecided outcome found")


def test_a_claim_is_judged_by_every_seed_it_depends_on():
    claim = Claim("fig7", "IOS leads.", Ahead("fan", "iid", ("ios",), ("faba",)))

    def make(place, seed):
        return constant({"accuracy": 0.5 + 0.1 * seed * (place.rule == "ios")})

    judged = judge(claim, curves("fig7", make, seeds=3))
    assert judged.margins == pytest.approx((0.0, 0.1, 0.2))
    assert judged.verdict == "undecided"
    assert judged.measured.startswith("Final accuracy: IOS 0.500…0.700, FABA 0.500. Holds at no")


@pytest.mark.parametrize(
    ("leading", "expected"),
    [
        ([1, 1, 1, 1, 1], "Holds at every length from 20 to 100 iterations."),
        ([0, 0, 0, 0, 0], "Holds at no length from 20 to 100 iterations."),
        ([0, 0, 1, 1, 1], "Holds from 60 iterations on."),
        ([1, 0, 1, 0, 1], "Holds from 100 iterations on."),
        ([1, 0, 1, 1, 0], "Holds at 3 of 5 lengths, the last 80 iterations."),
        ([1, 0, 0, 0, 0], "Holds at 1 of 5 lengths, the last 20 iterations."),
    ],
)
def test_a_claim_tells_at_which_lengths_it_holds(leading, expected):
    claim = Claim("fig7", "IOS leads.", Ahead("fan", "iid", ("ios",), ("faba",)))
    ends = {"ios": {"accuracy": 0.5 + 0.1 * np.array([1, *leading])}, "faba": {"accuracy": 0.5}}
    judged = judge(claim, seen({("fan", "iid", rule): runs for rule, runs in ends.items()}))
    assert judged.measured.removeprefix("Final accuracy: ").split(". ", 1)[1] == expected
    told = judge(claim, seen({("fan", "iid", r): v for r, v in ends.items()}), too_short=True)
    assert "Holds" not in told.measured


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.figure} {claim.text[:40]}")
def test_a_longer_run_shows_what_shorter_ones_would_have(claim):
    def make(points):
        def run(place, seed):
            rng = np.random.default_rng(zlib.crc32(repr((place, seed)).encode()))
            values = {name: rng.uniform(0.01, 1, 6)[:points] for name in METRICS}
            return constant(values, points)

        return run

    long, short = (curves(claim.figure, make(points), seeds=2) for points in (6, 4))
    for left, right in zip(
        claim.criterion.judge(long.until(60)), claim.criterion.judge(short), strict=True
    ):
        np.testing.assert_equal(left, right)
    assert long.until(60).resolution == short.resolution
    assert long.lengths.tolist() == [20, 40, 60, 80, 100]


def test_where_nothing_is_random_one_seed_stands_for_all():
    by_class = Claim("fig7", "IOS leads.", Ahead("fan", "by_class", ("ios",), ("faba",)))
    made = curves("fig7", lambda place, seed: constant({"accuracy": 0.5}), seeds=3)
    assert len(judge(by_class, made).margins) == 1
    both = Claim("fig7", "", Drops(("fan", "iid"), ("fan", "by_class"), ("ios",)))
    assert len(judge(both, made).margins) == 3


def test_a_missing_run_is_named_and_decides_nothing():
    claim = Claim("fig7", "IOS leads.", Ahead("fan", "iid", ("ios",), ("faba",)))
    made = curves("fig7", lambda place, seed: constant(0.5))
    kept = {place: curve for place, curve in made.by_place.items() if place.rule != "faba"}
    judged = judge(claim, Curves(kept))
    assert judged.verdict == "undecided"
    assert judged.measured == "Not judged: the run of faba on fan (iid) is missing."
    assert judge(claim, Curves({})).verdict == "undecided"


def test_a_claim_says_how_it_was_judged_and_short_runs_decide_nothing():
    claim = Claim("fig7", "IOS leads.", Ahead("fan", "iid", ("ios",), ("faba",)))
    made = curves("fig7", lambda place, seed: constant(0.9 if place.rule == "ios" else 0.5))
    assert judge(claim, made).text == "IOS leads."
    assert judge(claim, made).verdict == "holds"
    told = judge(claim, made, ["at small scale", "on MNIST"])
    assert (told.text, told.verdict) == ("IOS leads; judged at small scale, on MNIST.", "holds")
    short = judge(claim, made, ["after 40 instead of 500 iterations"], too_short=True)
    assert short.verdict == "undecided"
    assert short.margins == judge(claim, made).margins


def test_claims_are_judged_on_the_metrics_that_stand_for_the_papers():
    values = {"accuracy": 0.5, "accuracy_all": 0.9}
    ends = {
        ("fan", "iid", "ios"): values,
        ("fan", "iid", "rfa"): {"accuracy": 0.5, "accuracy_all": 0},
    }
    criterion = Ahead("fan", "iid", ("ios",), ("rfa",))
    assert margin_of(criterion, ends) == 0
    [margin], _ = criterion.judge(
        dataclasses.replace(seen(ends), metrics={"accuracy": "accuracy_all"})
    )
    assert margin == pytest.approx(0.9)


def test_which_claims_involve_a_rule():
    involved = [c for c in CLAIMS if c.figure == "fig5" and c.criterion.involves("clipped_gossip")]
    assert [claim.text[:16] for claim in involved] == [
        "I.i.d., every ru",
        "Mild, every rule",
        "By class, the we",
    ]
