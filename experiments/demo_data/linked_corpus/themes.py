"""What the tables of a linked corpus are about, and in which words they are asked.

A relation is a column of the table, or a fact that the passages of its first column tell. {who} is
whom a question is about, {value} what holds of it, {name} the entity's name.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Wordings:
    """Ways to say a thing: those of training and dev, and others for the test split.

    Attributes:
        train: the ways of the splits "train" and "dev".
        test: those of the split "test".
    """

    train: tuple[str, ...]
    test: tuple[str, ...]

    def of(self, split: str) -> tuple[str, ...]:
        return self.test if split == "test" else self.train


@dataclasses.dataclass(frozen=True)
class Relation:
    """What holds of an entity.

    Attributes:
        name: the column's header, or the fact's name.
        values: the kind of words that its values are, or the numbers from and below which.
        asks: how it is asked for; () where it is not.
        conditions: how it is said of whom is asked about; () where it is not.
        sentences: how a passage tells it; () for a column.
    """

    name: str
    values: str | tuple[int, int]
    asks: Wordings = Wordings((), ())
    conditions: Wordings = Wordings((), ())
    sentences: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Theme:
    """What a table is about.

    Attributes:
        noun: what an entity is called.
        pronoun: "who" or "which".
        entity: the first column.
        shared: the columns whose values several rows share, by which entities are told apart.
        own: the columns whose values are each row's own.
        facts: what passages tell of an entity.
        shared_sentence: what the passage of the first shared column's value tells of it.
    """

    noun: str
    pronoun: str
    entity: Relation
    shared: tuple[Relation, ...]
    own: tuple[Relation, ...]
    facts: tuple[Relation, ...]
    shared_sentence: str


# Whom a question asks about, by two conditions.
WHO = Wordings(
    (
        "the {noun} {pronoun} {first} and {second}",
        "the {noun} {pronoun} {first} and {pronoun} also {second}",
        "that {noun} {pronoun} {first} and {pronoun} {second}",
    ),
    ("the {noun} {pronoun} not only {first} but also {second}",),
)
_NAME = Wordings(
    ("what is the name of {who}", "how is {who} called"),
    ("by what name is {who} known",),
)

_OF_PEOPLE = (
    Relation(
        "birthplace",
        "place",
        Wordings(
            ("in which town was {who} born", "what is the birthplace of {who}"),
            ("from which town does {who} come",),
        ),
        Wordings(
            ("was born in {value}", "comes from {value}"), ("was born in the town of {value}",)
        ),
        ("{name} was born in {value} .", "{name} comes from the town of {value} ."),
    ),
    Relation(
        "instrument",
        "instrument",
        Wordings(
            ("which instrument does {who} play", "what instrument is played by {who}"),
            ("what instrument does {who} practise",),
        ),
        Wordings(("plays the {value}", "practises the {value}"), ("likes to play the {value}",)),
        ("{name} plays the {value} .", "In the evenings {name} practises the {value} ."),
    ),
    Relation(
        "trade",
        "trade",
        Wordings(
            ("what was the first job of {who}", "as what did {who} first work"),
            ("what job did {who} have before",),
        ),
        Wordings(
            ("once worked as a {value}", "was a {value} before"), ("first had a job as a {value}",)
        ),
        ("{name} first worked as a {value} .", "Before that , {name} had a job as a {value} ."),
    ),
    Relation(
        "college",
        "college",
        Wordings(
            ("at which college did {who} study", "what college did {who} graduate from"),
            ("which college did {who} attend as a student",),
        ),
        Wordings(("studied at {value}", "graduated from {value}"), ("was a student at {value}",)),
        ("{name} studied at {value} .", "{name} is a graduate of {value} ."),
    ),
    Relation(
        "language",
        "language",
        Wordings(
            ("which language does {who} speak", "in what language is {who} fluent"),
            ("what language can {who} speak",),
        ),
        Wordings(("speaks {value}", "is fluent in {value}"), ("can speak {value}",)),
        ("{name} speaks {value} at home .", "{name} is fluent in {value} ."),
    ),
)


def _season(verb: str) -> Relation:
    return Relation(
        "Season",
        (1950, 2015),
        conditions=Wordings(
            (f"{verb} in {{value}}", f"{verb} in the season of {{value}}"),
            (f"{verb} during {{value}}",),
        ),
    )


THEMES = (
    Theme(
        "driver",
        "who",
        Relation("Driver", "person", _NAME),
        (
            Relation(
                "Team",
                "emblem",
                conditions=Wordings(
                    ("drove for {value}", "was on the team of {value}"),
                    ("was driving for {value}",),
                ),
            ),
            _season("raced"),
        ),
        (
            Relation(
                "Points",
                (11, 199),
                Wordings(
                    ("how many points did {who} score", "what was the points total of {who}"),
                    ("how many points were scored by {who}",),
                ),
            ),
            Relation(
                "Laps",
                (200, 999),
                Wordings(
                    ("how many laps did {who} complete", "what was the number of laps of {who}"),
                    ("how many laps were completed by {who}",),
                ),
            ),
        ),
        _OF_PEOPLE,
        "{value} is a racing team based in {place} . It was founded by {person} .",
    ),
    Theme(
        "singer",
        "who",
        Relation("Singer", "person", _NAME),
        (
            Relation(
                "Opera house",
                "emblem",
                conditions=Wordings(
                    ("sang at the {value}", "performed at the {value} opera house"),
                    ("was singing at the {value}",),
                ),
            ),
            _season("performed"),
        ),
        (
            Relation(
                "Concerts",
                (11, 199),
                Wordings(
                    (
                        "how many concerts did {who} give",
                        "what was the number of concerts of {who}",
                    ),
                    ("how many concerts were given by {who}",),
                ),
            ),
            Relation(
                "Audience",
                (2000, 9999),
                Wordings(
                    ("how large was the audience of {who}", "what audience did {who} have"),
                    ("how many people were in the audience of {who}",),
                ),
            ),
        ),
        _OF_PEOPLE,
        "The {value} is an opera house in {place} . Its director is {person} .",
    ),
    Theme(
        "chess player",
        "who",
        Relation("Player", "person", _NAME),
        (
            Relation(
                "Club",
                "emblem",
                conditions=Wordings(
                    ("played for {value}", "was a member of the club {value}"),
                    ("belonged to the club of {value}",),
                ),
            ),
            _season("played"),
        ),
        (
            Relation(
                "Rating",
                (1200, 2800),
                Wordings(
                    ("what rating did {who} have", "what was the rating of {who}"),
                    ("how high was the rating of {who}",),
                ),
            ),
            Relation(
                "Wins",
                (3, 99),
                Wordings(
                    ("how many wins did {who} have", "what was the number of wins of {who}"),
                    ("how many wins are listed for {who}",),
                ),
            ),
        ),
        _OF_PEOPLE,
        "{value} is a chess club in {place} . Its president is {person} .",
    ),
    Theme(
        "novelist",
        "who",
        Relation("Author", "person", _NAME),
        (
            Relation(
                "Publisher",
                "emblem",
                conditions=Wordings(
                    ("wrote for {value}", "was published by {value}"),
                    ("had {value} as publisher",),
                ),
            ),
            Relation(
                "Year",
                (1950, 2015),
                conditions=Wordings(
                    ("published in {value}", "had a novel out in {value}"),
                    ("published a novel in {value}",),
                ),
            ),
        ),
        (
            Relation(
                "Pages",
                (120, 999),
                Wordings(
                    ("how many pages has the novel of {who}", "how many pages did {who} write"),
                    ("how many pages are in the novel of {who}",),
                ),
            ),
            Relation(
                "Copies",
                (1000, 9999),
                Wordings(
                    ("how many copies did {who} sell", "what was the number of copies of {who}"),
                    ("how many copies were sold by {who}",),
                ),
            ),
        ),
        _OF_PEOPLE,
        "{value} is a publisher in {place} . It belongs to {person} .",
    ),
    Theme(
        "ship",
        "which",
        Relation("Ship", "emblem", _NAME),
        (
            Relation(
                "Captain",
                "person",
                conditions=Wordings(
                    ("was commanded by {value}", "had {value} as its captain"),
                    ("sailed under captain {value}",),
                ),
            ),
            Relation(
                "Launched",
                (1820, 1940),
                conditions=Wordings(
                    ("was launched in {value}", "dates from {value}"),
                    ("was launched in the year {value}",),
                ),
            ),
        ),
        (
            Relation(
                "Tonnage",
                (300, 4000),
                Wordings(
                    ("what was the tonnage of {who}", "how many tons had {who}"),
                    ("how large was the tonnage of {who}",),
                ),
            ),
            Relation(
                "Crew",
                (11, 199),
                Wordings(
                    (
                        "how many people were in the crew of {who}",
                        "how large was the crew of {who}",
                    ),
                    ("what was the size of the crew of {who}",),
                ),
            ),
        ),
        (
            Relation(
                "home",
                "place",
                Wordings(
                    ("in which port was {who} built", "what is the home port of {who}"),
                    ("at which port was {who} built",),
                ),
                Wordings(
                    ("was built in {value}", "has {value} as home port"),
                    ("was built at the port of {value}",),
                ),
                ("{name} was built in {value} .", "The home port of {name} is {value} ."),
            ),
            Relation(
                "cargo",
                "cargo",
                Wordings(
                    ("what cargo did {who} carry", "what was carried by {who}"),
                    ("which cargo was carried by {who}",),
                ),
                Wordings(
                    ("carried {value}", "had a cargo of {value}"), ("carried a cargo of {value}",)
                ),
                ("{name} mostly carried {value} .", "The usual cargo of {name} was {value} ."),
            ),
            Relation(
                "figurehead",
                "animal",
                Wordings(
                    ("what is the figurehead of {who}", "which animal is the figurehead of {who}"),
                    ("what animal can be seen as the figurehead of {who}",),
                ),
                Wordings(
                    ("has a {value} as figurehead", "shows a {value} as its figurehead"),
                    ("has the figurehead of a {value}",),
                ),
                ("The figurehead of {name} is a {value} .", "{name} has a {value} as figurehead ."),
            ),
            Relation(
                "wood",
                "wood",
                Wordings(
                    (
                        "of what wood are the masts of {who}",
                        "what wood is the mast of {who} made of",
                    ),
                    ("which wood are the masts of {who} made of",),
                ),
                Wordings(
                    ("has masts of {value}", "has a mast made of {value}"),
                    ("has masts made of {value}",),
                ),
                ("The masts of {name} are made of {value} .", "{name} has masts of {value} ."),
            ),
        ),
        "{value} is a captain from {place} . A friend of the captain is {person} .",
    ),
    Theme(
        "racehorse",
        "which",
        Relation("Horse", "emblem", _NAME),
        (
            Relation(
                "Jockey",
                "person",
                conditions=Wordings(
                    ("was ridden by {value}", "had {value} as its jockey"),
                    ("ran with {value} as jockey",),
                ),
            ),
            _season("ran"),
        ),
        (
            Relation(
                "Prize",
                (1000, 9999),
                Wordings(
                    ("what prize did {who} win", "how much did {who} win"),
                    ("how large was the prize of {who}",),
                ),
            ),
            Relation(
                "Races",
                (11, 99),
                Wordings(
                    ("in how many races did {who} run", "what was the number of races of {who}"),
                    ("how many races had {who}",),
                ),
            ),
        ),
        (
            Relation(
                "home",
                "place",
                Wordings(
                    ("in which town was {who} raised", "where was {who} raised"),
                    ("what town was {who} raised in",),
                ),
                Wordings(
                    ("was raised in {value}", "has its stable in {value}"),
                    ("was raised in the town of {value}",),
                ),
                ("{name} was raised in {value} .", "The stable of {name} is in {value} ."),
            ),
            Relation(
                "food",
                "food",
                Wordings(
                    ("what does {who} like to eat", "what is the favourite food of {who}"),
                    ("which food does {who} like most",),
                ),
                Wordings(
                    ("likes to eat {value}", "is fond of {value}"), ("likes {value} as food",)
                ),
                ("{name} likes to eat {value} .", "The favourite food of {name} is {value} ."),
            ),
            Relation(
                "friend",
                "animal",
                Wordings(
                    ("with which animal does {who} live", "what animal is the companion of {who}"),
                    ("which animal does {who} have as a companion",),
                ),
                Wordings(
                    ("lives with a {value}", "has a {value} as companion"),
                    ("lives together with a {value}",),
                ),
                ("{name} lives with a {value} .", "A {value} is the companion of {name} ."),
            ),
        ),
        "{value} is a jockey from {place} . A friend of the jockey is {person} .",
    ),
)
