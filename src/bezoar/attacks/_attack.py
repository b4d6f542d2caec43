"""What an attack is: what it knows, and what it returns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bezoar._arrays import Bools, Ints
from bezoar._errors import BezoarError
from bezoar._options import AtLeastOne, Part
from bezoar.networks import Network

#: How much the poisoned agents are assumed to know: their own data, models and messages, the
#: messages of their neighbours too, or everything that any agent holds or sends.
Knowledge = Literal["own", "neighbours", "everything"]

#: What decides about labels that are chosen anew in every iteration. A model gives each class of a
#: sample a score; a gradient gives it what a step along it would add to that score. Models are the
#: agent's own, or the regular agents' average ``x̄``. Gradients are the agent's own with its true
#: labels, at its own model, or the regular agents' ``∇f(x̄)``.
Judge = Literal["own_model", "average_model", "own_gradient", "regular_gradient"]


@dataclass(frozen=True)
class OwnData:
    """What one agent holds.

    Attributes:
        train: ``[N, …]`` the whole training set.
        train_labels: ``[N]`` its labels.
        places: ``[n]`` which samples the agent holds.
        classes: the number of classes.
    """

    train: NDArray[np.generic]
    train_labels: Ints
    places: Ints
    classes: int

    @cached_property
    def samples(self) -> NDArray[np.generic]:
        """``[n, …]`` the agent's samples."""
        return self.train[self.places]

    @cached_property
    def labels(self) -> Ints:
        """``[n]`` their true labels."""
        return self.train_labels[self.places]


@dataclass(frozen=True)
class SeenMessages:
    """What the poisoned agents may know when they send, in some runs on one network.

    They send one message to all their neighbours, or one to each. Methods return ``[runs, sends,
    D]``, a row for each message, unless they say otherwise.

    Attributes:
        iteration: which iteration it is, counted from 1.
        network: who is linked to whom, and who is poisoned.
        knows: what the attack says that it knows.
        senders: ``[sends]`` who sends each message.
        receivers: ``[sends]`` who receives it; ``None`` if all neighbours receive the same.
        messages: ``[runs, W, D]`` what every agent sends if it follows the protocol.
        models: ``[runs, W, D]`` every agent's model before the local update.
        seeds: ``[runs]`` what random choices follow from.
    """

    iteration: int
    network: Network
    knows: Knowledge
    senders: Tensor
    receivers: Tensor | None
    messages: Tensor
    models: Tensor
    seeds: Sequence[int] = ()

    def own_messages(self) -> Tensor:
        """What the sender of each message would send if it followed the protocol."""
        return self.messages[:, self.senders]

    def own_models(self) -> Tensor:
        """The model of each message's sender before the local update."""
        return self.models[:, self.senders]

    def receivers_messages(self) -> Tensor:
        """What the receiver of each message itself sends; known with ``"neighbours"``."""
        self._need("neighbours")
        if self.receivers is None:
            raise BezoarError("attack: a message to all neighbours has no one receiver")
        return self.messages[:, self.receivers]

    def all_messages(self) -> Tensor:
        """``[runs, W, D]`` what everyone sends; known with ``"everything"``."""
        self._need("everything")
        return self.messages

    def _need(self, needed: Knowledge) -> None:
        levels = get_args(Knowledge)
        if levels.index(self.knows) < levels.index(needed):
            told = f"it says that it knows {self.knows!r} and asks for {needed!r}"
            raise BezoarError(f"attack: {told}; set 'knows' to what it needs")


@dataclass(frozen=True)
class Attack(Part):
    """What poisoned agents do to their labels or to their messages.

    An attack is a frozen dataclass whose fields are its options. It overrides :meth:`on_labels`,
    :meth:`on_scores` or :meth:`on_messages`.

    Args:
        from_iteration: the first iteration in which poisoned agents attack, counted from 1. Before
            it they have the true labels and send the protocol's messages.
        until: the last iteration in which they attack; by default the last of the training.

    Attributes:
        knows: what the poisoned agents are assumed to know.
        dynamic: whether labels are chosen anew in every iteration, by :meth:`on_scores`.
        lies: whether it changes messages, by :meth:`on_messages`.
        triggers: whether an attack on labels changes samples, too: those with a changed label get
            a :meth:`patch`.
    """

    from_iteration: AtLeastOne = field(default=1, kw_only=True)
    until: AtLeastOne | None = field(default=None, kw_only=True)

    knows: ClassVar[Knowledge] = "own"
    dynamic: ClassVar[bool] = False
    lies: ClassVar[bool] = False
    triggers: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.dynamic = cls.on_scores is not Attack.on_scores
        cls.lies = cls.on_messages is not Attack.on_messages
        cls.triggers = cls.patch is not Attack.patch

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.until is not None and self.until < self.from_iteration:
            raise BezoarError(
                f"until: expected at least {self.from_iteration}, as from_iteration is, found "
                f"{self.until}"
            )

    @property
    def knowledge(self) -> Knowledge:
        """What the poisoned agents are assumed to know with these options."""
        return self.knows

    @property
    def judge_of_labels(self) -> Judge:
        """Whose scores :meth:`on_scores` is given."""
        return "own_model"

    @property
    def always(self) -> bool:
        """Whether poisoned agents attack in every iteration."""
        return self.from_iteration == 1 and self.until is None

    def active(self, iteration: int) -> bool:
        """Whether poisoned agents attack in an iteration, counted from 1."""
        return self.from_iteration <= iteration and (self.until is None or iteration <= self.until)

    def check(self, classes: int) -> None:
        """Refuse a number of classes that the attack cannot work with."""

    def check_samples(self, samples: NDArray[np.generic]) -> None:
        """Refuse samples ``[n, …]`` that the attack cannot work with."""

    def check_network(self, network: Network) -> None:
        """Refuse a network that the attack cannot work with."""

    def sends_the_same(self) -> bool:
        """Whether a poisoned agent sends the same to all its neighbours."""
        return bool(getattr(self, "broadcast", False))

    def on_labels(self, own: OwnData, rng: np.random.Generator) -> tuple[Ints, Bools]:
        """The labels of one poisoned agent.

        Args:
            own: what the agent holds.
            rng: for random choices; it depends on the run's seed and the agent.

        Returns:
            ``[n]`` the labels, and ``[n]`` for which of them :meth:`on_scores` decides instead, in
            every iteration anew.
        """
        return own.labels, np.zeros(len(own.labels), dtype=np.bool_)

    def patch(self, shape: tuple[int, ...]) -> Bools:
        """``[…]`` which pixels of a sample of some shape are made as bright as can be."""
        raise BezoarError(f"attack {self.name}: it leaves samples alone")

    def on_scores(self, scores: Tensor) -> Tensor:
        """``[..., 1, n]`` labels from the scores ``[..., classes, n]`` that the judge gives."""
        raise BezoarError(f"attack {self.name}: its labels are not chosen anew")

    def on_messages(self, seen: SeenMessages) -> Tensor:
        """``[runs, sends, D]`` what is sent instead of the protocol's messages.

        An attack whose attribute or option ``broadcast`` is true sends the same to all neighbours.
        """
        raise BezoarError(f"attack {self.name}: it leaves messages alone")
