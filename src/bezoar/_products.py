"""Matrix products in float32, by the faster of the two libraries that torch has on a CPU."""

import torch
from torch import Tensor


def linear(inputs: Tensor, weight: Tensor) -> Tensor:
    """``inputs @ weight.T`` of two matrices ``[n, k]`` and ``[m, k]``, as in torch's ``linear``.

    In float32 ``torch.mm`` calls MKL, which uses half of the vector units of AMD processors with
    AVX-512. oneDNN, with which torch computes convolutions, uses all of them, and is no slower
    without AVX-512. Either adds up in another order, so last bits differ.
    """
    by_onednn = (
        inputs.dtype == torch.float32
        and inputs.device.type == "cpu"
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
    if not by_onednn:
        return inputs @ weight.T
    product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, None, "none", [], "")
    return product
