"""Words without meaning: no policy has read anything about them."""

from __future__ import annotations

WORDS = (
    "amber", "arlo", "birch", "bramble", "cedar", "clover", "coral", "cove", "dahlia", "delta", "ember", "fable",
    "fern", "flint", "frost", "garnet", "grove", "harbor", "hazel", "heron", "indigo", "iris", "ivory", "jasper",
    "juniper", "kelp", "lark", "linden", "lotus", "maple", "marsh", "mesa", "nectar", "oak", "onyx", "opal", "pearl",
    "pine", "quartz", "raven", "reed", "sage", "slate", "sorrel", "thistle", "tulip", "umber", "willow",
)  # fmt: skip
ORGANS = ("velum", "corrin", "tarn", "brevis", "lumen", "sedge")
LESIONS = ("nodule", "glint", "murk", "knot", "speck", "burr")
CLASSES = ("drell", "fenn", "morrow", "tansy", "quill", "sable", "thorn", "wisp")
SITES = ("Harrow", "Inch", "Lowmoor", "Penrith", "Skerry", "Tolland", "Umberleigh", "Vennel", "Wexcombe", "Yarrow")


def all_words() -> tuple[str, ...]:
    """Return every opaque word of this domain."""
    return WORDS + ORGANS + LESIONS + CLASSES
