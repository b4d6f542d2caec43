"""Rules beyond the paper's as plain loops over the inputs of one agent, in float64.

Each takes the agent, its inputs, their mixing weights and the estimate of poisoned inputs, and
returns the next model and the weight of each input.
"""

from itertools import combinations

import numpy as np

#: Scores that agree to this share are a tie, which goes to the lowest agent.
TIE = 1e-10


def mean_of(inputs, agents):
    share = 1 / len(agents)
    return sum(share * inputs[v] for v in agents), dict.fromkeys(agents, share)


def in_order(scores):
    """Agents by score, the smallest first; of ties the lowest."""
    left, found = dict(scores), []
    while left:
        least = min(left.values())
        first = min(v for v, score in left.items() if score <= least * (1 + TIE))
        found.append(first)
        del left[first]
    return found


def is_finite(y):
    return bool(np.isfinite(y).all())


def distances(own, inputs):
    """To the own message; what is not finite is infinitely far."""
    return {v: np.linalg.norm(y - own) if is_finite(y) else np.inf for v, y in inputs.items()}


def squared(a, b):
    return float(np.sum((a - b) ** 2)) if is_finite(a) and is_finite(b) else np.inf


def poisoned_weight(w, mixing, q):
    return sum(sorted((mixing[v] for v in mixing if v != w), reverse=True)[:q])


def moved(w, inputs, moves):
    """From the own message towards others, each by its share."""
    own = inputs[w]
    model = own + sum(move * (inputs[v] - own) for v, move in moves.items() if is_finite(inputs[v]))
    weights = {v: moves.get(v, 0.0) * is_finite(inputs[v]) for v in inputs}
    weights[w] = 1 - sum(weight for v, weight in weights.items() if v != w)
    return model, weights


def clip(distance, threshold):
    return 1.0 if distance <= threshold else threshold / distance


def clipped_gossip(w, inputs, mixing, q, threshold=0.03):
    if not is_finite(inputs[w]):
        return inputs[w], {w: 1.0}
    apart = distances(inputs[w], inputs)
    if threshold == "adaptive":
        b, near, total = poisoned_weight(w, mixing, q), 0.0, 0.0
        for v in in_order(apart):
            near += mixing[v]
            if near > 1 - b + 1e-12:
                break
            total += mixing[v] * apart[v] ** 2 if is_finite(inputs[v]) else 0
        threshold = np.sqrt(total / b) if b else np.inf
    return moved(w, inputs, {v: mixing[v] * clip(d, threshold) for v, d in apart.items()})


def clipped_sum(w, inputs, mixing, q, rate=1.0):
    if not is_finite(inputs[w]):
        return inputs[w], {w: 1.0}
    apart = distances(inputs[w], inputs)
    b = poisoned_weight(w, mixing, q)
    threshold = 0.0 if b else np.inf
    for d in apart.values():
        beyond = sum(mixing[v] for v, other in apart.items() if other > d * (1 + TIE))
        if b and beyond >= 2 * b - 1e-12:
            threshold = max(threshold, d)
    return moved(w, inputs, {v: rate * mixing[v] * clip(d, threshold) for v, d in apart.items()})


def trimmed_sum(w, inputs, mixing, q, rate=1.0):
    if not is_finite(inputs[w]):
        return inputs[w], {w: 1.0}
    to_trim, moves = poisoned_weight(w, mixing, q), {}
    for v in reversed(in_order(distances(inputs[w], inputs))):
        taken = mixing[v] if to_trim >= mixing[v] - 1e-12 else to_trim
        to_trim = max(0.0, to_trim - taken)
        moves[v] = rate * (mixing[v] - taken)
    return moved(w, inputs, moves)


def nearest(w, inputs, mixing, q):
    if not is_finite(inputs[w]):
        return inputs[w], {w: 1.0}
    return mean_of(inputs, in_order(distances(inputs[w], inputs))[: len(inputs) - q])


def krum(w, inputs, mixing, q, keep=1):
    counted = max(1, len(inputs) - q - 2)
    scores = {}
    for v, y in inputs.items():
        apart = sorted(np.sum((y - other) ** 2) for u, other in inputs.items() if u != v)
        scores[v] = sum(apart[:counted])
    most = len(inputs) - q
    return mean_of(inputs, in_order(scores)[: most if keep == "most" else min(keep, most)])


def balance(w, inputs, mixing, q, reach=0.3, decay=1.0, own=0.5):
    if not is_finite(inputs[w]):
        return inputs[w], {w: 1.0}
    limit = reach * np.linalg.norm(inputs[w])  # before training begins
    apart = distances(inputs[w], inputs)
    near = [v for v in inputs if v != w and apart[v] <= limit]
    if not near:
        return inputs[w], {w: 1.0}
    mean, weights = mean_of(inputs, near)
    shares = {v: (1 - own) * weight for v, weight in weights.items()}
    return own * inputs[w] + (1 - own) * mean, {w: own, **shares}


def nnm(w, inputs, q):
    """Each input becomes the mean of those nearest to it."""
    mixes = {}
    for v, y in inputs.items():
        apart = {u: 0.0 if u == v else np.sqrt(squared(y, x)) for u, x in inputs.items()}
        near = sorted(in_order(apart)[: len(inputs) - q])  # so that equal means have equal bits
        mixes[v] = dict.fromkeys(near, 1 / len(near))
    return mixes


def arc(w, inputs, q):
    """The longest differences to the own message become as long as the next one."""
    apart, n = distances(inputs[w], inputs), len(inputs)
    order = in_order(apart)
    clipped = int(2 * q * (n - q) / n)
    length, mixes = apart[order[n - clipped - 1]], {}
    for v in inputs:
        share = length / apart[v] if v in order[n - clipped :] and apart[v] > 0 else 1.0
        mixes[v] = {v: share, w: 1 - share} if v != w else {v: 1.0}
    return mixes


BEFORE = {"nnm": nnm, "arc": arc}


def _least(inputs, q, spread):
    """The mean of the set that is least spread, of ties the one with the lowest agents."""
    agents, size = sorted(inputs), len(inputs) - q
    good = [v for v in agents if is_finite(inputs[v])]
    about = {v: inputs[v] - inputs[good[0]] if v in good else 0 * inputs[good[0]] for v in agents}
    points = np.stack([about[v] for v in agents])
    apart = np.array([[squared(a, b) for b in points] for a in points])
    places = range(len(agents))
    sets = combinations(places, size)
    if len(agents) > 12:
        far = [[np.inf if agents[u] not in good else apart[v, u] for u in places] for v in places]
        for v in places:
            far[v] = [np.inf] * len(agents) if agents[v] not in good else far[v]
            far[v][v] = 0.0
        sets = [sorted(sorted(places, key=lambda u, v=v: far[v][u])[:size]) for v in places]
    best, least = None, None
    for members in sets:
        bad = sum(agents[v] not in good for v in members)
        found = (bad, 0.0 if bad else spread(points, apart, list(members)))
        fewer_bad = least is None or found[0] < least[0]
        if fewer_bad or (found[0] == least[0] and found[1] < least[1] * (1 - TIE)):
            best, least = members, found
    return mean_of(inputs, [agents[v] for v in best])


def least_diameter(w, inputs, mixing, q):
    return _least(inputs, q, lambda points, apart, some: apart[np.ix_(some, some)].max())


def least_variance(w, inputs, mixing, q):
    def variance(points, apart, some):
        return apart[np.ix_(some, some)].sum() / (2 * len(some) ** 2)  # about the mean

    return _least(inputs, q, variance)


def least_eigenvalue(w, inputs, mixing, q):
    def largest(points, apart, some):
        centred = points[some] - points[some].mean(axis=0)
        return float(np.linalg.eigvalsh(centred @ centred.T)[-1])

    return _least(inputs, q, largest)


def _widest(points, weights):
    """The variance of weighted points in their widest direction, and squares along it."""
    centre = weights @ points / weights.sum()
    centred = points - centre
    _, sizes, directions = np.linalg.svd(np.sqrt(weights)[:, None] * centred, full_matrices=False)
    return sizes[0] ** 2 / weights.sum(), (centred @ directions[0]) ** 2


def divide_and_conquer(w, inputs, mixing, q, factor=1.0):
    good = [v for v in inputs if is_finite(inputs[v])]
    away = dict.fromkeys(inputs, np.inf)
    if good:
        points = np.stack([inputs[v] for v in good])
        away |= dict(zip(good, _widest(points, np.ones(len(good)))[1], strict=True))
    return mean_of(inputs, in_order(away)[: len(inputs) - int(factor * q)])


def caf(w, inputs, mixing, q):
    good = [v for v in inputs if is_finite(inputs[v])]
    points, left = np.stack([inputs[v] for v in good]), np.ones(len(good))
    best, least = left, np.inf
    while left.sum() > len(inputs) - 2 * q + 1e-12:
        variance, away = _widest(points, left)
        if variance < least:
            best, least = left, variance
        farthest = away[left > 0].max()
        if farthest <= 1e-26 * np.abs(points).max() ** 2:
            break
        left = left * np.clip(1 - away / farthest, 0, None)
        left[left < 1e-12] = 0
    share = best / best.sum()
    return share @ points, dict(zip(good, share, strict=True))


def _around_median(inputs, kept):
    """By coordinates the mean of the values closest to the median; on ties of both ways."""
    values = np.sort(np.stack(inputs), axis=0)
    low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
    with np.errstate(invalid="ignore"):  # of what is infinite, which is set next
        away = np.maximum(np.maximum(low - values, values - high), 0)
    away[np.isinf(values)] = np.inf
    size = np.abs(values).max(axis=0)
    slack = 4 * np.finfo(float).eps * np.where(np.isfinite(size), size, 0)
    means = []
    # Which of values that are equally close, but for rounding, go first: those below, or above.
    for side, beyond in ((1, values > low), (-1, values < high)):
        judged = away + slack * beyond
        closest = np.lexsort((side * values, judged), axis=0)[:kept]
        means.append(np.take_along_axis(values, closest, axis=0).mean(axis=0))
    return np.mean(means, axis=0), None


def meamed(w, inputs, mixing, q):
    return _around_median(list(inputs.values()), len(inputs) - q)


def bulyan(w, inputs, mixing, q):
    left, picked = dict(inputs), []
    while len(picked) < len(inputs) - 2 * q:
        scores = {}
        for v, y in left.items():
            apart = sorted(squared(y, other) for u, other in left.items() if u != v)
            scores[v] = sum(apart[: max(1, len(left) - q - 2)]) if is_finite(y) else np.inf
        best = in_order(scores)[0]
        picked.append(left.pop(best))
    return _around_median(picked, len(picked) - 2 * q)


def distance_filter(w, inputs, mixing, q):
    values = np.stack([np.where(np.isnan(y), np.inf, y) for y in inputs.values()])
    point = np.mean(np.sort(values, axis=0)[q : len(inputs) - q], axis=0)
    away = {v: squared(y, point) for v, y in inputs.items()}
    last = in_order(away)[len(inputs) - q :]
    kept = [v for v in inputs if v not in last or away[v] <= away[w] * (1 + TIE)]
    return mean_of(inputs, kept)


def total_variation(w, inputs, mixing, q, strength=1e-3):
    own, pulls = inputs[w], 0.0 * inputs[w]
    for y in inputs.values():
        equal = np.isclose(y, own, rtol=1e-14, atol=0)  # but for rounding
        pulls += np.where(equal, 0, np.sign(y - own))
    return own + strength * pulls, None


FIELD = (
    clipped_gossip,
    krum,
    nearest,
    clipped_sum,
    trimmed_sum,
    least_diameter,
    least_variance,
    least_eigenvalue,
    divide_and_conquer,
    caf,
    balance,
    meamed,
    bulyan,
    distance_filter,
    total_variation,
)
