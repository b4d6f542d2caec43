"""Counts how often a computation asks its device for a number, as far as the CPU shows it."""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

#: Operations whose result the host must know before it can go on.
ASKING = {
    "_local_scalar_dense",
    "_unique",
    "_unique2",
    "equal",
    "is_nonzero",
    "item",
    "masked_select",
    "nonzero",
    "repeat_interleave",
    "unique_consecutive",
    "unique_dim",
}

#: Methods that fetch whole tensors.
FETCHING = {"cpu", "numpy", "tolist", "__array__"}

#: Operations that take positions: masks among them are turned into positions, on the host.
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}


class _Operations(TorchDispatchMode):
    def __init__(self, asked):
        super().__init__()
        self.asked = asked

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        name = function.overloadpacket.__name__
        if name in ASKING:
            self.asked.append(name)
        elif name in INDEXING:
            places = [each for each in arguments[1] if each is not None]
            if any(each.dtype in (torch.bool, torch.uint8) for each in places):
                self.asked.append(f"{name} with a mask")
        return function(*arguments, **(options or {}))


class _Methods(TorchFunctionMode):
    def __init__(self, asked):
        super().__init__()
        self.asked = asked

    def __torch_function__(self, function, types, arguments=(), options=None):
        if getattr(function, "__name__", "") in FETCHING:
            self.asked.append(function.__name__)
        return function(*arguments, **(options or {}))


def host_questions(work):
    """The names of what ``work`` asked, in order; only the calling thread is watched."""
    asked = []
    with _Methods(asked), _Operations(asked):
        work()
    return asked
