"""Tables with passages, for tests of what is made of them."""

from hypothesis import strategies as st

from mate_tf.tables.linked_table import LinkedTable, Passage
from mate_tf.tables.table import Table

OSLO = Passage("/wiki/Oslo", "Oslo is the capital of Norway . It has many parks .")
BERGEN = Passage("/wiki/Bergen", "Bergen is a city in Norway . Rain falls in Bergen on most days .")
NORWAY = Passage("/wiki/Norway", "Norway is a country in Europe . It has many fjords .")
CITY = Passage("/wiki/City", "A city with many parks is a green city .")
CITIES = LinkedTable(
    Table(
        ("City", "Country", "People"),
        (("Oslo", "Norway", "709037"), ("Bergen", "Norway", "291940")),
        "cities",
    ),
    (((OSLO,), (NORWAY,), ()), ((BERGEN,), (NORWAY,), ())),
    (CITY,),
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
WORDS = st.lists(st.sampled_from("oslo is a big town . no 12 € The ) ?".split()), max_size=30)
PASSAGES = st.builds(Passage, TEXTS, TEXTS | WORDS.map(" ".join))


@st.composite
def linked_tables(draw) -> LinkedTable:
    """Tables of up to 3 x 3 cells, each with up to three passages of a small number."""
    num_rows, num_columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    passages = draw(st.lists(PASSAGES, min_size=1, max_size=4))
    cell = st.lists(st.sampled_from(passages), max_size=3, unique=True).map(tuple)

    def rows(cells):
        row = st.tuples(*[cells] * num_columns)
        return draw(st.tuples(*[row] * num_rows))

    header = draw(st.tuples(*[TEXTS] * num_columns))
    return LinkedTable(Table(header, rows(TEXTS), "drawn"), rows(cell), draw(cell))
