"""Every rule as a plain loop over agents and inputs, in float64.

Slow and literal on purpose: it follows the definitions word by word and shares no code with the
package, of which it uses only a network's number of agents, edges and poisoned set.
"""

from itertools import product

import numpy as np
from field_reference import BEFORE, FIELD

#: Rules that ask for no number of inputs.
NEEDS_NOTHING = (
    "weighted_mean",
    "mean",
    "median",
    "local",
    "rfa",
    "lfighter",
    "centered_clipping",
    "balance",
    "total_variation",
)

#: Scores that agree to this share are a tie, which goes to the lowest agent.
TIE = 1e-10


def closed_neighbourhoods(network):
    inputs = [{agent} for agent in range(network.agents)]
    for a, b in network.edges:
        inputs[a].add(b)
        inputs[b].add(a)
    return [sorted(agents) for agents in inputs]


def mixing_matrix(network, kind="metropolis"):
    inputs = closed_neighbourhoods(network)
    neighbours = [len(agents) - 1 for agents in inputs]
    matrix = np.zeros((network.agents, network.agents))
    for w, agents in enumerate(inputs):
        for v in agents:
            if v != w:
                widest = max(neighbours) if kind == "equal" else max(neighbours[w], neighbours[v])
                matrix[w, v] = 1 / (widest + 1)
        matrix[w, w] = 1 - matrix[w].sum()
    return matrix


def estimates(network, estimate="exact"):
    counts = [sum(v in network.poisoned for v in vs) for vs in closed_neighbourhoods(network)]
    if estimate == "exact":
        return counts
    return [max(counts) if estimate == "max" else estimate] * network.agents


def is_possible(name, network, estimate="exact"):
    for agents, q in zip(closed_neighbourhoods(network), estimates(network, estimate), strict=True):
        *before, rule = name.split("+")
        if rule in ("trimmed_mean", "caf", "distance_filter") and len(agents) <= 2 * q:
            return False
        if rule == "bulyan" and len(agents) <= 4 * q:
            return False
        if (before or rule not in NEEDS_NOTHING) and len(agents) <= q:
            return False
    return True


def aggregate(name, messages, network, *, absent=(), **options):
    """``[W, D]`` the next models and, for rules by weights, ``[W, W]`` who got which weight.

    ``absent`` agents send nothing; their neighbours' inputs and mixing weights lack them.
    """
    messages = np.asarray(messages, dtype=np.float64)
    mixing = mixing_matrix(network, options.pop("mixing", "metropolis"))
    qs = estimates(network, options.pop("estimate", "exact"))
    models = np.full(messages.shape, np.nan)
    weights = np.zeros((network.agents, network.agents))
    for w, agents in enumerate(closed_neighbourhoods(network)):
        agents = [v for v in agents if v not in absent]
        if not agents:
            continue
        inputs = {v: messages[v] for v in agents}
        shares = {v: mixing[w, v] for v in agents}
        models[w], given = composed(name, w, inputs, shares, qs[w], options)
        if given is None:
            weights[w] = np.nan
        else:
            for v, weight in given.items():
                weights[w, v] = weight
    return models, weights


def composed(name, w, inputs, shares, q, options):
    """A rule, perhaps behind what is done to its inputs before, as in ``nnm+krum``."""
    *before, rule = name.split("+")
    seen, made = inputs, {v: {v: 1.0} for v in inputs}
    for step in before:
        mixes = BEFORE[step](w, seen, q)
        seen = {v: sum(share * seen[u] for u, share in mix.items()) for v, mix in mixes.items()}
        made = {
            v: {u: sum(mix.get(x, 0) * made[x].get(u, 0) for x in made) for u in inputs}
            for v, mix in mixes.items()
        }
    model, given = RULES[rule](w, seen, shares, q, **options)
    if given is not None and before:
        given = {u: sum(given.get(v, 0) * made[v].get(u, 0) for v in made) for u in inputs}
    return model, given


def _first(scores, best):
    """The lowest of the agents whose score is the best one."""
    top = best(scores.values())
    return min(v for v, score in scores.items() if abs(score - top) <= TIE * abs(top))


def _mean(inputs, weights):
    total = sum(weights.values())
    return sum(weight * inputs[v] for v, weight in weights.items()) / total


def _weighted(inputs, weights):
    total = sum(weights.values())
    return _mean(inputs, weights), {v: weight / total for v, weight in weights.items()}


def weighted_mean(w, inputs, mixing, q):
    return sum(mixing[v] * y for v, y in inputs.items()), mixing


def mean(w, inputs, mixing, q):
    return _weighted(inputs, dict.fromkeys(inputs, 1.0))


def local(w, inputs, mixing, q):
    return inputs[w], {w: 1.0}


def trimmed_mean(w, inputs, mixing, q, keep_own=False):
    filtered = [y for v, y in inputs.items() if v != w or not keep_own]
    ordered = np.sort(np.reshape(filtered, (len(filtered), -1)), axis=0)
    kept = list(ordered[q : len(filtered) - q]) + [inputs[w]] * keep_own
    return np.mean(kept, axis=0), None


def median(w, inputs, mixing, q):
    return np.median(np.stack(list(inputs.values())), axis=0), None


def faba(w, inputs, mixing, q, keep_own=False):
    return _drop_farthest(w, inputs, dict.fromkeys(inputs, 1.0), q, keep_own)


def ios(w, inputs, mixing, q, keep_own=False):
    return _drop_farthest(w, inputs, mixing, q, keep_own)


def _drop_farthest(w, inputs, prior, q, keep_own):
    left = dict(prior)
    for _ in range(q):
        centre = _mean(inputs, left)
        distances = {v: np.linalg.norm(inputs[v] - centre) for v in left if v != w or not keep_own}
        del left[_first(distances, max)]
    return _weighted(inputs, left)


def _clip(difference, threshold):
    length = np.linalg.norm(difference)
    return 1.0 if length <= threshold else threshold / length


def _finite(inputs):
    """What has a direction; the rest moves nothing but is counted."""
    return [v for v, y in inputs.items() if np.isfinite(y).all()]


def centered_clipping(w, inputs, mixing, q, threshold=0.03, steps=1):
    centre = inputs[w]
    if not np.isfinite(centre).all():
        return centre, {w: 1.0}
    weights = {v: float(v == w) for v in inputs}
    for _ in range(steps):
        moves = {v: _clip(inputs[v] - centre, threshold) / len(inputs) for v in _finite(inputs)}
        centre = centre + sum(move * (inputs[v] - centre) for v, move in moves.items())
        rest = 1 - sum(moves.values())
        weights = {v: rest * weights[v] + moves.get(v, 0) for v in inputs}
    return centre, weights


def rfa(w, inputs, mixing, q):
    return geometric_median(np.stack(list(inputs.values()))), None


def sum_of_distances(points, place):
    return np.linalg.norm(points - place, axis=1).sum()


def geometric_median(points):
    """By its optimality condition at each input, else by Newton's method.

    Of two inputs, or more on one line, the median need not be unique; then the point that
    Weiszfeld's iteration finds from the mean is taken, as for two inputs the middle.
    """
    if len(points) <= 2:
        return points.mean(axis=0)
    if points.shape[1] > len(points):  # it lies in their span, of which few dimensions matter
        basis, coordinates = np.linalg.qr((points - points[0]).T)
        return points[0] + basis @ geometric_median(coordinates.T)
    for point in points:
        apart = points - point
        lengths = np.linalg.norm(apart, axis=1)
        here = lengths <= 1e-14 * lengths.max()
        pull = (apart[~here] / lengths[~here, None]).sum(axis=0)
        if np.linalg.norm(pull) <= here.sum():
            return point
    place = points.mean(axis=0)
    for _ in range(50):
        closeness = 1 / np.linalg.norm(points - place, axis=1)
        place = closeness @ points / closeness.sum()
    for _ in range(50):
        apart = points - place
        lengths = np.linalg.norm(apart, axis=1)
        units = apart / lengths[:, None]
        curvature = sum(
            (np.eye(len(u)) - np.outer(u, u)) / length
            for u, length in zip(units, lengths, strict=True)
        )
        step = np.linalg.lstsq(curvature, units.sum(axis=0), rcond=None)[0]
        while sum_of_distances(points, place + step) > sum_of_distances(points, place):
            step = step / 2
            if np.linalg.norm(step) <= 1e-15 * lengths.max():
                return place
        place = place + step
        if np.linalg.norm(step) <= 1e-13 * lengths.max():
            break
    return place


def lfighter(w, inputs, mixing, q, head):
    classes, features = head
    layers = {v: y[: classes * features].reshape(classes, features) for v, y in inputs.items()}
    loudness = sum(np.linalg.norm(layer, axis=1) for layer in layers.values())
    loudest = sorted(range(classes), key=lambda c: (-loudness[c], c))[:2]
    feature = {v: np.concatenate([layer[c] for c in loudest]) for v, layer in layers.items()}
    if len({tuple(f) for f in feature.values()}) == 1:
        return _weighted(inputs, dict.fromkeys(inputs, 1.0))
    split = _best_split if len(inputs) <= 12 else _best_of_restarts
    clusters = sorted((sorted(cluster) for cluster in split(feature)), key=min)
    values = [len(c) / len(inputs) * (1 - np.mean(_least_alike(feature, c))) for c in clusters]
    tie = abs(values[0] - values[1]) <= TIE * sum(map(abs, values))
    kept = clusters[0] if tie or values[0] > values[1] else clusters[1]
    return _weighted(inputs, dict.fromkeys(kept, 1.0))


def _least_alike(feature, cluster):
    least = []
    for v in cluster:
        row = [0.0]  # the diagonal
        for u in cluster:
            scale = np.linalg.norm(feature[u]) * np.linalg.norm(feature[v])
            if u != v:
                row.append(feature[u] @ feature[v] / scale if scale else 0.0)
        least.append(min(row))
    return least


def _best_split(feature):
    """The first of all splits in two with the least squared distances to the clusters' means."""
    agents = sorted(feature)
    # Taking one of them off all, which changes no distance, keeps the digits near consensus.
    points = np.stack([feature[v] - feature[agents[0]] for v in agents])
    splits = [(True, *rest) for rest in product((True, False), repeat=len(agents) - 1)]
    inside = np.array(splits[1:])
    cost = np.zeros(len(inside))
    for members in (inside, ~inside):
        means = members @ points / members.sum(axis=1, keepdims=True)
        squared = np.sum((points - means[:, None]) ** 2, axis=2)
        cost += np.sum(members * squared, axis=1)
    first = inside[np.argmin(cost)]
    return [
        [v for v, member in zip(agents, first, strict=True) if member is side]
        for side in (np.True_, np.False_)
    ]


def _best_of_restarts(feature, starts=200):
    """The best split that is found by moving one input at a time, from many random splits."""
    agents = sorted(feature)
    points = np.stack([feature[v] - feature[agents[0]] for v in agents])
    inside = np.random.default_rng(0).random((starts, len(agents))) < 0.5
    inside[:, 0], inside[:, 1] = True, False
    while True:
        falls, rises = np.zeros(inside.shape), np.zeros(inside.shape)
        for members in (inside, ~inside):
            size = members.sum(axis=1, keepdims=True)
            means = members @ points / size
            away = np.sum((points - means[:, None]) ** 2, axis=2)
            falls += np.where(members & (size > 1), away * size / np.maximum(size - 1, 1), 0)
            rises += np.where(~members, away * size / (size + 1), 0)
        gain = falls - rises
        which, rows = gain.argmax(axis=1), np.arange(starts)
        moving = gain[rows, which] > 1e-9 * falls.max()
        if not moving.any():
            break
        inside[rows[moving], which[moving]] ^= True
    cost = np.zeros(starts)
    for members in (inside, ~inside):
        means = members @ points / members.sum(axis=1, keepdims=True)
        cost += np.sum(members * np.sum((points - means[:, None]) ** 2, axis=2), axis=1)
    first = inside[cost.argmin()]
    return [
        [v for v, member in zip(agents, first, strict=True) if member == side] for side in (1, 0)
    ]


RULES = {
    rule.__name__: rule
    for rule in (
        weighted_mean,
        trimmed_mean,
        faba,
        ios,
        centered_clipping,
        rfa,
        lfighter,
        mean,
        median,
        local,
        *FIELD,
    )
}
