"""Theorems 1 and 2 held against real runs: what was measured beside what is promised."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bezoar import data, theory
from bezoar._arrays import Floats, Ints
from bezoar._errors import BezoarError
from bezoar.experiments import Report
from bezoar.training import Engine, Horizon, Run, Task, Workers

#: Exchanges kept before their contraction is computed.
KEPT = 32

#: Squared distances below this are rounding.
ROUNDING = 1e-24


@dataclass(frozen=True)
class TheoremCheck:
    """A run compared with its theorem.

    Attributes:
        run: the run, with the step size ``1/√K``.
        error: the left side, ``(1/K) Σ_{k<K} ‖∇f(x̄^k)‖²``.
        consensus: the largest consensus error ``max_{w regular} ‖x_w^k − x̄^k‖²``, ``k ≤ K``.
        rho: the measured ``ρ``: with it Definition 1 held in every exchange of the run. NaN for
            the weighted mean, whose theorem does not need it.
        smoothness: ``L``.
        heterogeneity: ``ξ``, the largest over the points where the theorem's proof uses it, see
            :func:`verify`.
        disturbance: ``A``, the same; NaN where nobody is poisoned.
        initial_gap: ``f(x⁰) − f*``, or a slightly larger number.
        promise: the theorem's conditions, terms and bounds with these numbers.
    """

    run: Run
    error: float
    consensus: float
    rho: float
    smoothness: float
    heterogeneity: float
    disturbance: float
    initial_gap: float
    promise: theory.Guarantee

    @property
    def applies(self) -> bool:
        """Whether the theorem's conditions are met."""
        return self.promise.holds

    @property
    def bound(self) -> float:
        """The right side, as the proof gives it; see :func:`bezoar.theory.robust_bound`."""
        return self.promise.proved

    @property
    def slack(self) -> float:
        """The right side over the left side: at least 1 where the theorem applies and holds."""
        return self.bound / self.error if self.error > 0 else inf

    @property
    def consensus_slack(self) -> float:
        """The same for the consensus error."""
        return self.promise.consensus / self.consensus if self.consensus > 0 else inf

    @property
    def holds(self) -> bool | None:
        """Whether both inequalities held; ``None`` where the theorem does not apply.

        In a complete network the bound on the consensus error can be zero: what rounding does to
        models of ordinary size is forgiven.
        """
        if not self.applies:
            return None
        return self.error <= self.bound and self.consensus <= self.promise.consensus + ROUNDING

    def __str__(self) -> str:
        name = f"{self.run.aggregator} on {self.run.network.name}, {self.promise.theorem}"
        if not self.applies:
            failing = "; ".join(str(c) for c in self.promise.conditions if not c.holds)
            return f"{name} does not apply: {failing}"
        return (
            f"{name} {'holds' if self.holds else 'is violated'}: error {self.error:.3g} ≤ "
            f"{self.bound:.3g} (slack {self.slack:.3g}×), consensus {self.consensus:.3g} ≤ "
            f"{self.promise.consensus:.3g} (slack {self.consensus_slack:.3g}×)"
        )


def verify(
    make_task: Callable[[Sequence[Run], Workers], Task],
    runs: Sequence[Run],
    iterations: int,
    *,
    workers: int | None = None,
    progress: Report | None = None,
) -> list[TheoremCheck]:
    """Train runs with the theorems' step size ``γ = 1/√K`` and compare them with the theorems.

    The weighted mean is held against Theorem 2, rules with a virtual mixing matrix
    (:data:`bezoar.theory.MATRIX_OF`) against Theorem 1. At which points of a run the constants are
    measured, and why that is enough, is in docs/theory.md.

    Args:
        make_task: makes what the agents learn, from runs and workers. It must know ``L`` and the
            initial gap.
        runs: what to train; their schedules are replaced. No weight decay, no momentum, and only
            attacks on labels that do not follow the model.
        iterations: ``K``.
        workers: how many threads; by default one a core.
        progress: as for :meth:`Engine.train`.

    Returns:
        One check for each run, in their order.
    """
    for run in runs:
        _check(run)
    timed = [replace(run, schedule=Horizon()) for run in runs]
    with Workers(workers) as pool, pool.alone():
        task = make_task(timed, pool)
        engine = Engine(task, iterations=iterations, metrics=("gradient_norm", "consensus_error"))
        lipschitz, known = task.smoothness(), map(task.initial_gap, range(len(runs)))
        gaps = [gap for gap in known if gap is not None]
        if lipschitz is None or len(gaps) < len(runs):
            raise BezoarError("task: expected one that knows L and f(x⁰) − f*, found another")
        suprema = _Suprema(engine, lipschitz)
        histories = engine.train(progress, suprema.observe)
        suprema.finish()
    checks = []
    for place, (run, history, gap) in enumerate(zip(timed, histories, gaps, strict=True)):
        found = {
            "smoothness": lipschitz,
            "heterogeneity": float(suprema.heterogeneity[place]),
            "disturbance": float(suprema.disturbance[place]) if run.network.poisoned else np.nan,
            "initial_gap": gap,
        }
        rho = float(suprema.rho[place]) if _kind(run) else np.nan
        checks.append(
            TheoremCheck(
                run=run,
                error=float(history["gradient_norm"][:-1].mean()),
                consensus=float(history["consensus_error"].max()),
                rho=rho,
                promise=_promise(run, rho, iterations, found),
                **found,
            )
        )
    return checks


def reduced_mnist(per_class: int = 20, side: int = 7) -> data.Dataset:
    """Real MNIST, small enough that the theorems' conditions on ``K`` are met in seconds.

    The first images of each class, mean-pooled to ``side × side`` features from 0 to ½: with 7 × 7
    features the smoothness constant ``L`` is about 1 instead of 261.

    Args:
        per_class: training images a class; as many for testing.
        side: 1, 2, 4, 7, 14 or 28.
    """
    if side not in (1, 2, 4, 7, 14, 28):
        raise BezoarError(f"side: expected a divisor of 28, found {side!r}")
    whole = data.mnist()

    def reduced(images: NDArray[np.generic], labels: Ints) -> tuple[Floats, Ints]:
        first = [np.flatnonzero(labels == kind)[:per_class] for kind in range(whole.classes)]
        chosen = np.sort(np.concatenate(first))
        blocks = images[chosen].reshape(len(chosen), side, 28 // side, side, 28 // side)
        return blocks.mean(axis=(2, 4)).reshape(len(chosen), -1) * (0.5 / 255), labels[chosen]

    train, train_labels = reduced(whole.train, whole.train_labels)
    test, test_labels = reduced(whole.test, whole.test_labels)
    return data.Dataset("reduced_mnist", train, train_labels, test, test_labels, whole.classes)


def _check(run: Run) -> None:
    rule = run.aggregator.name
    if rule != "weighted_mean" and rule not in theory.MATRIX_OF:
        allowed = ", ".join(["weighted_mean", *theory.MATRIX_OF])
        raise BezoarError(f"aggregator: no theorem is known for {rule!r}; allowed: {allowed}")
    if run.weight_decay:
        raise BezoarError(f"weight_decay: expected 0 here, found {run.weight_decay}")
    if run.optimizer.remembers:
        raise BezoarError(f"optimizer: expected a plain step here, found {run.optimizer.name!r}")
    if run.network.changes:
        raise BezoarError("network: the theorems are about one network, found several over time")
    if run.attack.lies:
        raise BezoarError(
            f"attack: the theorems are about wrong labels, found {run.attack.name!r}, which sends "
            "wrong messages"
        )
    if run.attack.dynamic:
        raise BezoarError(
            f"attack: labels that follow the model give no Lipschitz gradients (Assumption 2), "
            f"found {run.attack.name!r}"
        )
    if not run.attack.always:
        raise BezoarError(
            "attack: the theorems are about labels that stay, found an attack from iteration "
            f"{run.attack.from_iteration} until {run.attack.until or 'the end'}"
        )


def _kind(run: Run) -> str | None:
    """The rule's virtual mixing matrix; ``None`` for the weighted mean."""
    return theory.MATRIX_OF.get(run.aggregator.name)


def _promise(run: Run, rho: float, iterations: int, found: dict[str, float]) -> theory.Guarantee:
    network, mixing = run.network.at(1), run.aggregator.wiring()[0]
    common = {name: found[name] for name in ("smoothness", "heterogeneity", "initial_gap")}
    kind = _kind(run)
    if kind is None:
        return theory.weighted_mean_bound(
            mixing_gap=theory.mixing_gap(network, mixing),
            agents=network.agents,
            regular=len(network.regular),
            disturbance=found["disturbance"] if network.poisoned else 0.0,
            iterations=iterations,
            **common,
        )
    connected = theory.connectivity(network, kind, mixing)
    return theory.robust_bound(
        lam=connected.lam, beta=connected.beta, rho=rho, iterations=iterations, **common
    )


class _Suprema:
    """The suprema of ρ, ξ and A over a training, ``[runs]`` each."""

    def __init__(self, engine: Engine, smoothness: float) -> None:
        self._smoothness = smoothness
        self._task, self._runs = engine.task, engine.runs
        runs, device = engine.runs, engine.task.device
        masks = np.stack([~run.network.poisoned_mask for run in runs])
        self._regular = torch.tensor(masks, device=device)
        self._mean = self._regular.double() / self._regular.sum(1, keepdim=True)
        self._centroid = torch.tensor(np.stack([_centroid(run) for run in runs]), device=device)
        robust = torch.tensor([_kind(run) is not None for run in runs], device=device)
        self._own = robust[:, None] & self._regular
        self.rho = np.zeros(len(runs))
        self.heterogeneity = torch.zeros(len(runs), dtype=torch.float64, device=device)
        self.disturbance = torch.zeros_like(self.heterogeneity)
        self._sent: list[Floats] = []
        self._made: list[Floats] = []
        self._measure(engine.start().models)

    def observe(self, iteration: int, sent: Tensor, made: Tensor) -> None:
        """Take an exchange into account, and the models after it."""
        self._measure(made)
        self._sent.append(sent.flatten(2).cpu().numpy().copy())
        self._made.append(made.flatten(2).cpu().numpy().copy())
        if len(self._sent) == KEPT:
            self.finish()

    def finish(self) -> None:
        """Compute the contraction of the exchanges that are kept."""
        if not self._sent:
            return
        sent, made = np.stack(self._sent), np.stack(self._made)
        for place, run in enumerate(self._runs):
            if kind := _kind(run):
                exchanges, mixing = (sent[:, place], made[:, place]), run.aggregator.wiring()[0]
                network = run.network.at(1)
                found = theory.measured_contraction(*exchanges, network, kind, mixing=mixing)
                self.rho[place] = max(self.rho[place], found.rho)
        self._sent, self._made = [], []

    def _measure(self, models: Tensor) -> None:
        flat = models.flatten(2)
        centroid = self._centroid.to(models.dtype).unsqueeze(1) @ flat
        apart = self._apart(centroid.view(len(models), *models.shape[2:]), models)
        self._raise("heterogeneity", apart.masked_fill(~self._regular, 0).amax(1))
        self._raise("disturbance", apart.masked_fill(self._regular, 0).amax(1))
        # Both gradients move by at most L times the distance: where even that leaves an agent
        # below the supremum, its own model need not be looked at.
        reach = apart + 2 * self._smoothness * (flat - centroid).double().norm(dim=-1)
        in_question = self._own & (reach > self.heterogeneity.unsqueeze(1))
        for agent in torch.nonzero(in_question.any(0)).flatten().tolist():
            own = self._apart(models[:, agent], models)[:, agent]
            self._raise("heterogeneity", own.masked_fill(~self._own[:, agent], 0))

    def _apart(self, common: Tensor, models: Tensor) -> Tensor:
        """``[runs, agents]`` how far each agent's gradient is from that of ``f``."""
        gradients = self._task.gradients_at(common, models)[0].flatten(2).double()
        whole = self._mean.unsqueeze(1) @ gradients
        apart: Tensor = (gradients - whole).norm(dim=-1)
        return apart

    def _raise(self, name: str, values: Tensor) -> None:
        setattr(self, name, torch.maximum(getattr(self, name), values))


def _centroid(run: Run) -> Floats:
    """``[W]`` the weights of the point where the proof compares gradients."""
    kind = _kind(run)
    if kind is None:
        return np.full(run.network.agents, 1 / run.network.agents)
    weights = np.zeros(run.network.agents)
    mixing = run.aggregator.wiring()[0]
    weights[list(run.network.regular)] = theory.perron_vector(run.network.at(1), kind, mixing)
    return weights
