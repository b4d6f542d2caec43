"""Quadratic local costs: objectives whose constants are known exactly."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from bezoar._arrays import Floats
from bezoar._checks import whole
from bezoar._errors import BezoarError
from bezoar._seeds import Purpose, generator
from bezoar.training._run import Run, State
from bezoar.training._task import Task, check_runs
from bezoar.training._workers import Workers

#: What is smaller than this share of the largest number counts as rounding.
ROUNDING = 1e-12


class QuadraticTask(Task):
    """Local costs ``f̂_w(x) = ½xᵀA_w x − b_wᵀx + e_w``; models are ``[runs, agents, D]``.

    Gradients are ``A_w x − b_w``. A cost ``½(x−m)ᵀA(x−m)`` has ``b = Am`` and ``e = ½mᵀAm``, see
    :meth:`around`.

    Args:
        curvatures: ``A``, symmetric, ``[runs, agents, D, D]`` or anything that broadcasts to it,
            such as one ``[D, D]`` for everybody; held as it is given.
        pulls: ``b``, ``[runs, agents, D]``.
        runs, workers, dtype, device: as for :class:`Task`.
        constants: ``e``, broadcast to ``[runs, agents]``.
        start: ``[D]`` where everyone starts, by default at zero.
    """

    def __init__(
        self,
        curvatures: ArrayLike,
        pulls: ArrayLike,
        runs: Sequence[Run],
        workers: Workers,
        *,
        constants: ArrayLike = 0.0,
        start: ArrayLike | None = None,
        dtype: str = "float64",
        device: str = "cpu",
    ) -> None:
        super().__init__(runs, workers, dtype, device)
        b = _finite("pulls", pulls)
        if b.ndim != 3:
            raise BezoarError(f"pulls: expected the shape [runs, agents, D], found {b.shape}")
        size = b.shape[-1]
        if b.shape[:2] != (len(runs), self.agents):
            raise BezoarError(
                f"pulls: expected {len(runs)} runs of {self.agents} agents, found {b.shape}"
            )
        A = _finite("curvatures", curvatures)
        _broadcast("curvatures", A, (*b.shape, size))
        if not np.allclose(A, A.swapaxes(-1, -2), rtol=1e-9, atol=1e-12):
            raise BezoarError("curvatures: expected symmetric matrices, found one that is not")
        e = _broadcast("constants", _finite("constants", constants), b.shape[:2])
        x = np.zeros(size) if start is None else _finite("start", start)
        if x.shape != (size,):
            raise BezoarError(f"start: expected {size} numbers, found the shape {x.shape}")
        self._exact = A, b, e, x
        self._curvatures, self._pulls, self._constants, self._start = (
            torch.tensor(part, dtype=self.dtype, device=self.device) for part in (A, b, e, x)
        )

    @classmethod
    def around(
        cls,
        curvatures: ArrayLike,
        minima: ArrayLike,
        runs: Sequence[Run],
        workers: Workers,
        start: ArrayLike | None = None,
    ) -> QuadraticTask:
        """Costs ``½(x−m_w)ᵀA_w(x−m_w)``, zero at their minima ``m [runs, agents, D]``."""
        A, m = _finite("curvatures", curvatures), _finite("minima", minima)
        if m.ndim != 3:
            raise BezoarError(f"minima: expected the shape [runs, agents, D], found {m.shape}")
        _broadcast("curvatures", A, (*m.shape, m.shape[-1]))
        pulls = np.einsum("...ij,...j->...i", A, m)
        constants = 0.5 * (pulls * m).sum(-1)
        return cls(A, pulls, runs, workers, constants=constants, start=start)

    def smoothness(self) -> float:
        """``L`` of Assumption 2: the largest absolute eigenvalue of any agent's curvature."""
        return float(np.abs(np.linalg.eigvalsh(self._exact[0])).max())

    def initial_gap(self, run: int) -> float:
        """``f(x⁰) − f*`` of one run, exactly, with ``f`` the mean cost of the regular agents.

        With the mean curvature ``Ā`` and ``g = ∇f(x⁰)`` it is ``½gᵀĀ⁺g``; infinite where ``f`` is
        not bounded below.
        """
        A, b, _, x = self._exact
        size = b.shape[-1]
        places = list(self.runs[run].network.regular)
        mean = np.broadcast_to(A, (*b.shape, size))[run, places].mean(axis=0)
        slope = mean @ x - b[run, places].mean(axis=0)
        values, basis = np.linalg.eigh(mean)
        along = basis.T @ slope
        # Zero up to rounding, in units of the numbers that were added up.
        steepest, pulls = np.abs(values).max(), np.linalg.norm(b[run, places], axis=-1)
        flat = np.abs(values) <= ROUNDING * steepest
        level = ROUNDING * (steepest * np.linalg.norm(x) + pulls.max())
        if (values[~flat] < 0).any() or (np.abs(along[flat]) > level).any():
            return float("inf")
        return float(0.5 * (along[~flat] ** 2 / values[~flat]).sum())

    def start(self) -> dict[str, Tensor]:
        return {"models": self._start.expand(len(self.runs), self.agents, -1).clone()}

    def gradients(self, state: State, update: int, out: Tensor) -> Tensor:
        return out.copy_(self._gradients(state.models))

    def gradients_at(
        self, common: Tensor, models: Tensor, iteration: int = 1
    ) -> tuple[Tensor, Tensor]:
        everywhere = common.unsqueeze(1).expand_as(models)
        gradients = self._gradients(everywhere)
        # ½xᵀAx − bᵀx = ½(∇f̂(x) − b)ᵀx
        costs = 0.5 * ((gradients - self._pulls) * everywhere).sum(-1, dtype=torch.float64)
        return gradients, costs + self._constants.double()

    def losses(self, run: int, agent: int, models: Tensor, samples: int, iteration: int) -> Tensor:
        """There are no samples: the costs themselves."""
        shape = (len(self.runs), self.agents)
        curvature = self._curvatures.expand(*shape, *self._curvatures.shape[-2:])[run, agent]
        costs = 0.5 * ((models @ curvature) * models).sum(-1) - models @ self._pulls[run, agent]
        return costs.double() + self._constants.expand(shape)[run, agent].double()

    def identity(self) -> str:
        digest = hashlib.sha256()
        for part in self._exact:
            digest.update(f"{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        return f"quadratic costs {digest.hexdigest()}"

    def _gradients(self, models: Tensor) -> Tensor:
        return (self._curvatures @ models.unsqueeze(-1)).squeeze(-1).sub_(self._pulls)


def random_quadratics(
    runs: Sequence[Run],
    workers: Workers,
    size: int = 5,
    *,
    smoothness: float = 1.0,
    convexity: float = 0.2,
    spread: float = 1.0,
    poison: float = 1.0,
    alike: bool = False,
    seed: int = 0,
) -> QuadraticTask:
    """Random strongly convex quadratics.

    An agent's cost is ``½(x−m_w)ᵀA_w(x−m_w)`` with eigenvalues of ``A_w`` between ``convexity``
    and ``smoothness``, both reached, and a minimum ``m_w`` drawn from a normal distribution around
    ``(1, …, 1)``. It is the same in every run in which the agent is regular; in those in which it
    is poisoned, its minimum is mirrored and stretched to ``−poison·m_w``. Everyone starts at zero.

    Args:
        runs, workers: as for :class:`Task`.
        size: the number of parameters, ``D``.
        smoothness: ``L``.
        convexity: the smallest eigenvalue.
        spread: the standard deviation of the minima.
        poison: how far the poisoned minima lie on the other side of zero.
        alike: whether all agents have one curvature, so that ``ξ`` and ``A`` do not depend on
            where they are measured.
        seed: every random choice follows from it.
    """
    if not 0 < convexity <= smoothness < np.inf:
        raise BezoarError(
            f"convexity: expected 0 < convexity ≤ smoothness, found {convexity} and {smoothness}"
        )
    check_runs(runs)
    whole("size", size, 1)
    whole("seed", seed, 0)
    agents = runs[0].network.agents
    generators = [generator(seed, Purpose.COSTS, agent) for agent in range(agents)]
    drawn = [np.linalg.qr(rng.standard_normal((size, size)))[0] for rng in generators]
    eigenvalues = np.linspace(convexity, smoothness, size) if size > 1 else [smoothness]
    bases = [drawn[0 if alike else agent] for agent in range(agents)]
    curvatures = np.stack([basis * eigenvalues @ basis.T for basis in bases])
    minima = np.stack([1 + spread * rng.standard_normal(size) for rng in generators])
    poisoned = np.stack([run.network.poisoned_mask for run in runs])[..., None]
    return QuadraticTask.around(
        (curvatures + curvatures.swapaxes(-1, -2)) / 2,
        np.where(poisoned, -poison * minima, minima),
        runs,
        workers,
    )


def _finite(field: str, found: ArrayLike) -> Floats:
    values = np.asarray(found, dtype=np.float64)
    if not np.isfinite(values).all():
        raise BezoarError(f"{field}: expected finite numbers, found some that are not")
    return values


def _broadcast(field: str, found: Floats, shape: tuple[int, ...]) -> Floats:
    try:
        return np.broadcast_to(found, shape)
    except ValueError:
        raise BezoarError(
            f"{field}: expected a shape that broadcasts to {shape}, found {found.shape}"
        ) from None
