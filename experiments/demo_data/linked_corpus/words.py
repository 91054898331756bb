"""The names and things that a linked corpus is about, apart for each of its splits."""

import itertools
import random
from collections.abc import Mapping

_FIRST = """
Ada Boris Clara Dario Edith Felix Greta Hugo Irene Jonas Karin Luca Marta Nils Olga Paul Rosa Simon
Tilda Victor Wanda Yusuf Zita Anton Berta Cyril Doris Emil Flora Gustav
""".split()
_PLACE_BEGINS = """
Alder Bram Carr Dun Ash Thorn Wood Elm Hazel Lin Marl Nor Oak Pen Quarry Red Stan Tarn Under Wex
Black Clay Fern Glen Heather Iron Kings Lang Mill Raven
""".split()
_PLACE_ENDS = "ford ton bury mouth wick ham stead field bridge well".split()
_FAMILY_ENDS = "man er son ley worth by shaw croft".split()
_ADJECTIVES = """
Silver Golden Crimson Northern Southern Eastern Western Royal Silent Rapid Bright Bold Blue Green
White Scarlet Amber Stormy Lucky Noble Proud Hidden Ancient Frozen Burning
""".split()
_EMBLEMS = """
Falcon Harbor Comet Anchor Lantern Tiger Arrow Meadow Castle Dragon Forest Thunder River Crown
Phoenix Bear Wolf Eagle Summit Orchard
""".split()

_LISTS = {
    "instrument": """
        violin cello harp flute piano trumpet guitar clarinet oboe banjo accordion mandolin
        saxophone trombone organ drums lute bassoon tuba ukulele harmonica fiddle zither bagpipes
        xylophone recorder sitar horn viola lyre tambourine cornet marimba dulcimer bugle piccolo
        glockenspiel theremin kazoo didgeridoo
    """,
    "trade": """
        baker carpenter teacher lawyer farmer tailor plumber librarian gardener nurse mechanic
        butcher barber clerk miner sailor chemist waiter surveyor translator printer locksmith
        shepherd fisherman potter weaver brewer mason jeweller postman blacksmith hunter porter
        glazier roofer tanner cobbler undertaker dentist midwife
    """,
    "language": """
        French German Spanish Italian Polish Russian Arabic Turkish Dutch Greek Swedish Danish
        Finnish Hungarian Czech Hindi Japanese Korean Portuguese Persian Welsh Irish Latin Hebrew
        Thai Norwegian Bengali Romanian Ukrainian Icelandic Swahili Vietnamese Catalan Basque
        Estonian Latvian Lithuanian Serbian Croatian Tamil
    """,
    "cargo": """
        coffee tea cotton timber coal wine sugar rice salt wool silk tobacco copper marble wheat
        oranges spices leather ivory iron paper cheese cocoa rubber grain honey glass furs oil
        pepper cinnamon vanilla bricks slate amber tar rope pearls porcelain tin
    """,
    "animal": """
        lion swan horse dolphin unicorn stag owl goat cat rooster bull snake whale peacock turtle
        fox rabbit hawk donkey dog sheep camel goose bee crab raven otter beaver monkey squirrel
        ostrich lizard badger hedgehog pelican salmon lobster panther leopard hippo
    """,
    "wood": """
        oak pine teak cedar elm ash birch walnut maple cherry spruce larch beech mahogany cypress
        poplar willow chestnut hickory alder bamboo ebony fir juniper linden olive rosewood sycamore
        yew aspen acacia balsa eucalyptus hawthorn holly laurel magnolia redwood sandalwood rowan
    """,
    "food": """
        apples carrots barley clover lupins oats turnips pears bread hay cabbage melons corn raisins
        parsley plums beans dates celery bananas peas dandelions nettles figs mint lettuce pumpkin
        radishes berries cookies spinach leeks onions peaches cherries plantain kale fennel rhubarb
        quinces
    """,
}

# Of ten that are alike, so many are of each split; no split has another's.
_SHARES = {"train": 5, "dev": 2, "test": 3}


def _everything() -> dict[str, list[str]]:
    places = [begin + end for begin, end in itertools.product(_PLACE_BEGINS, _PLACE_ENDS)]
    families = [begin + end for begin, end in itertools.product(_PLACE_BEGINS, _FAMILY_ENDS)]
    return {
        "place": places,
        "family": families,
        "college": [f"{begin}{end} College" for begin in _PLACE_BEGINS for end in ("mere", "gate")],
        "emblem": [f"{first} {last}" for first, last in itertools.product(_ADJECTIVES, _EMBLEMS)],
    } | {name: words.split() for name, words in _LISTS.items()}


def words_of(split: str) -> Mapping[str, list[str]]:
    """Names and things by kind: "place", "person", "emblem", "instrument" and others.

    Args:
        split: "train", "dev" or "test".

    Raises:
        ValueError: for another split.
    """
    if split not in _SHARES:
        raise ValueError(f"expected a split of {list(_SHARES)}, got {split!r}")
    bounds = dict(zip(_SHARES, itertools.accumulate(_SHARES.values()), strict=True))
    words = {}
    for kind, everything in _everything().items():
        shuffled = everything.copy()
        random.Random(kind).shuffle(shuffled)
        end = bounds[split] * len(shuffled) // 10
        begin = (bounds[split] - _SHARES[split]) * len(shuffled) // 10
        words[kind] = shuffled[begin:end]
    families = words.pop("family")
    words["person"] = [f"{first} {family}" for first in _FIRST for family in families]
    return words
