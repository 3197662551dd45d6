"""Define criteria that rank splits, for the parameter `split_criterion`.

In the formulas, ``G_j`` and ``H_j`` are sums of gradients and hessians over the rows of
era j in a node, ``L`` and ``R`` mark sums over the left and right side of a split, M is
the number of training eras, l2 is `l2_regularization`, and the gain within an era is

``gain_j = G_Lj^2 / (H_Lj + l2) + G_Rj^2 / (H_Rj + l2) - G_j^2 / (H_j + l2)``,

and the same without j is the pooled gain. Ties go to the larger pooled gain, then to
the lower feature index and bin.
"""

from typing import TYPE_CHECKING

from .._warnings import renamed
from ._blend import Blend
from ._criteria import Directional, Era, Gain, Invariant, TimeRobust, VREx
from ._custom import CustomCriterion, EraSums, ListedSplits, SplitKeys

__all__ = [
    "Blend", "CustomCriterion", "Directional", "Era", "EraSums", "Gain", "Invariant",
    "ListedSplits", "SplitKeys", "TimeRobust", "VREx",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = renamed(__name__, {"HeldOut": "Era or a CustomCriterion"})
