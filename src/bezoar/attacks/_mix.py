"""Two attacks at once: the labels of one and the messages of another."""

import inspect
from dataclasses import field, make_dataclass
from functools import cache
from typing import Any, get_args

from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._options import Share
from bezoar.attacks._attack import Attack, Knowledge, SeenMessages
from bezoar.attacks._labels import LabelAttack

_ARGUMENTS = """Args:
    share: how much of the lie is in a message, ``t``: poisoned agents send
        ``(1 − t) y_p + t m``, with ``y_p`` the protocol's message, after training with wrong
        labels, and ``m`` the lie."""


@cache
def mix(labels: Any, messages: Any) -> type[Attack]:
    """An attack with the labels of one attack and the messages of another.

    It has the options of both, and one window of iterations for both. Its name is that of the
    first, a plus and that of the second, as in ``label_flip+dissensus``.

    Args:
        labels: the class of the attack on labels.
        messages: the class of the attack on messages.

    Raises:
        BezoarError: if the first is no attack on labels, or the second none on messages alone.
    """
    name = f"{labels.name}+{messages.name}"
    if not issubclass(labels, LabelAttack) or labels.lies:
        raise BezoarError(
            f"attack {name}: expected an attack on labels before the plus, found {labels.name}"
        )
    if issubclass(messages, LabelAttack) or not messages.lies:
        raise BezoarError(
            f"attack {name}: expected an attack on messages after the plus, found {messages.name}"
        )

    def knowledge(self: Any) -> Knowledge:
        known = labels.knowledge.fget(self), messages.knows
        return max(known, key=get_args(Knowledge).index)

    def on_messages(self: Any, seen: SeenMessages) -> Tensor:
        lie: Tensor = messages.on_messages(self, seen)
        if self.share == 1:  # whatever the own message is, be it so large that the sum is rounded
            return lie
        honest = seen.own_messages()
        sent: Tensor = honest + self.share * (lie - honest)
        return sent

    methods = {
        "__module__": messages.__module__,
        "__doc__": _documentation(labels, messages),
        "name": name,
        "knowledge": property(knowledge),
        "on_messages": on_messages,
    }
    share = ("share", Share, field(default=1.0, kw_only=True))
    return make_dataclass(name, [share], bases=(labels, messages), namespace=methods, frozen=True)


def _documentation(labels: type, messages: type) -> str:
    """What becomes of labels, then of messages, then the option that a mix adds."""
    texts = [inspect.cleandoc(attack.__doc__ or "") for attack in (labels, messages)]
    return "\n\n".join([*(text.split("\n\nArgs:\n")[0] for text in texts), _ARGUMENTS])
