"""The catalogue of faults, and which of them a task of a stratum may hold."""

from __future__ import annotations

from bat_core.hooks.fault import Fault
from bat_core.model.task import Stratum

SEG, CLS = ("segmentation",), ("classification",)

CATALOGUE = (
    Fault(id="P1", stage="S1", symptom="readme differs", repair="keep the card's value and name the conflict"),
    Fault(id="P3", stage="S1", symptom="; readme ", repair="choose the model whose labels cover all targets"),
    Fault(id="U3", stage="S2", symptom="mismatch; mirrors", repair="use the mirror whose hash is right"),
    Fault(id="U6", stage="S2", symptom="mismatch", repair="the first mirror is stale too: use the next one"),
    Fault(id="V1", stage="S3", tracks=SEG, symptom=" not ", repair="set the card's axes, run and look again"),
    Fault(id="V2", stage="S3", tracks=SEG, symptom="lesion 0 ", repair="set the card's window, run and look again"),
    Fault(id="V5", stage="S3", tracks=CLS, symptom=" off", repair="set the card's channel order, run and look again"),
    Fault(id="P2", stage="S3", tracks=CLS, symptom=" not ", repair="set the card's labels, run and look again"),
    Fault(id="I1", stage="S4", symptom="batch stopped", repair="report the case, run the others"),
    Fault(id="I2", stage="S4", symptom="batch stopped", repair="report the second case too, run the others"),
    Fault(id="F1", stage="S5", symptom="F1 ", repair="write that output anew"),
    Fault(id="F2", stage="S5", tracks=CLS, symptom="F2 ", repair="remove the second row"),
    Fault(id="F3", stage="S5", tracks=SEG, symptom="F3 ", repair="write that output with the input's affine"),
    Fault(id="F5", stage="S5", symptom="F5 ", repair="report the case and submit the true counts", recoverable=False),
)

Choices = dict[str, tuple[tuple[str, ...], ...]]

CHOICES: dict[tuple[str, Stratum], Choices] = {
    ("segmentation", Stratum.RECOVERY): {
        "S1": (("P1",),),
        "S2": (("U3",),),
        "S3": (("V1",), ("V2",)),
        "S4": (("I1",),),
        "S5": (("F3",),),
    },
    ("classification", Stratum.RECOVERY): {
        "S1": (("P1",),),
        "S2": (("U3",),),
        "S3": (("V5",), ("P2",)),
        "S4": (("I1",),),
        "S5": (("F2",),),
    },
    ("segmentation", Stratum.FAILURE): {
        "S1": (("P1", "P3"),),
        "S2": (("U3", "U6"),),
        "S3": (("V1", "V2"),),
        "S4": (("I1", "I2"),),
        "S5": (("F5",), ("F3", "F5")),
    },
    ("classification", Stratum.FAILURE): {
        "S1": (("P1", "P3"),),
        "S2": (("U3", "U6"),),
        "S3": (("V5", "P2"),),
        "S4": (("I1", "I2"),),
        "S5": (("F5",), ("F2", "F5")),
    },
}
"""Which faults stand together, by track, stratum and stage; `failure` stacks them or allows no repair."""
