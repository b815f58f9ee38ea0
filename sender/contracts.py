"""The contracts: how a call of each channel is written, and how its answer is read.

Pure data. A row's channel names its contract; nothing but what stands here may differ between
channels, and no rule of one contract is ever applied to another's answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sender import botapi, coded
from sender.answer import Answer, Evidence
from sender.calls import FORM, JSON, Encoding
from sender.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Contract:
    """One way of speaking with another end.

    `classify` is given the answer, the method and the number of items in the call. `names_calls`:
    an answer has a name for its call also when all is well, which is kept as evidence.
    """

    encoding: Encoding
    classify: Callable[[Answer, str, int], Verdict]
    told: Callable[[Answer], Evidence]
    names_calls: bool


BOT_API = Contract(
    encoding=FORM,
    classify=lambda answer, method, items: botapi.classify(answer, method, items=items),
    told=botapi.told,
    names_calls=False,
)

CODED = Contract(
    encoding=JSON,
    classify=lambda answer, _method, _items: coded.classify(answer),
    told=coded.told,
    names_calls=True,
)

CONTRACTS: Mapping[str, Contract] = {"coded": CODED}
"""What the configuration may name as the contract of a channel."""
