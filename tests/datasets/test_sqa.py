import pytest

from mate_tf.datasets.supervision import SupervisionError, check_supervision
from mate_tf.datasets.wtq import read_sqa
from tests.datasets.releases import write_files

HEADER = "id\tannotator\tposition\tquestion\ttable_file\tanswer_coordinates\tanswer_text\n"
EXTENDED = HEADER.rstrip("\n") + "\taggregation\tfloat_answer\tclass_index\n"
TABLE = '"Song","Year"\nBlue,1999\n"say ""no""","1,000"\n"two\nlines",\n'


def line(question="q", name="nt-1", annotator=0, position=0, cells="['(0, 0)']", texts="['Blue']"):
    return f"{name}\t{annotator}\t{position}\t{question}\ttable_csv/0.csv\t{cells}\t{texts}\n"


@pytest.fixture
def release(tmp_path):
    return write_files(tmp_path, {"table_csv/0.csv": TABLE})


def write(release, *lines, name="random-split-1-train.tsv", header=HEADER):
    return write_files(release, {name: header + "".join(lines)})


def test_each_question_has_the_answer_before_it_within_its_sequence(release):
    write(
        release,
        line("all?", cells="['(1, 1)', '(0, 1)']", texts="['1,000', '1999']"),
        line("the first?", position=1),
        line("nothing?", position=2, cells="[]", texts="[]"),
        line("and then?", position=3),
        line("other?", annotator=1),
    )
    tables, questions = zip(*read_sqa(release, "train"), strict=True)
    assert {table.table_id for table in tables} == {"table_csv/0.csv"}
    assert all(table is tables[0] for table in tables)
    ids = [question.question_id for question in questions]
    assert ids == [*(f"nt-1-0_{position}" for position in range(4)), "nt-1-1_0"]
    of_both, of_one = ((0, 1), (1, 1)), ((0, 0),)
    answers = [question.answer_coordinates for question in questions]
    assert answers == [of_both, of_one, (), of_one, of_one]
    assert [q.previous_coordinates for q in questions] == [(), of_both, of_one, (), ()]
    assert questions[0].answers == ("1,000", "1999")
    before = [(), ("1,000", "1999"), ("Blue",), (), ()]
    assert [question.previous_answers for question in questions] == before


def test_quotes_and_line_breaks_are_undone_and_extended_columns_read(release):
    write(
        release,
        line('"is ""it""\nso?"', texts="[u'it', 's']"),
        line("then?", position=1, texts='"[\'a\', ""it\'s""]"'),
    )
    (table, first), (_, second) = read_sqa(release, "train")
    assert first.text == 'is "it"\nso?'
    assert first.answers == ("it", "s")
    assert second.answers == ("a", "it's")
    assert table.header == ("Song", "Year")
    assert table.rows == (("Blue", "1999"), ('say "no"', "1,000"), ("two\nlines", ""))
    for more, values in (("count\t2.5\t1", ("COUNT", 2.5, 1)), ("\t\t", ("NONE", None, None))):
        write(release, line().replace("\n", f"\t{more}\n"), header=EXTENDED)
        ((_, read),) = read_sqa(release, "train")
        assert (read.aggregation, read.answer_number, read.class_index) == values


def test_splits_are_found_by_the_names_of_their_files_and_need_all_columns(release):
    files = {"dev": "random-split-1-dev", "test": "test", "train_and_dev": "train"}
    for split, file in {**files, "random-split-3-dev": "random-split-3-dev"}.items():
        write(release, line(split), name=f"{file}.tsv")
        ((_, question),) = read_sqa(release, split)
        assert question.text == split
    for header, message in (("id\tquestion\n", r"\['annotator', .*"), ("", r".* got \[\].*")):
        write(release, header=header)
        with pytest.raises(ValueError, match=rf"expected the columns {message} line 1\)"):
            list(read_sqa(release, "train"))
    with pytest.raises(ValueError, match=r"expected a list of texts .*train\.tsv', line 2\)"):
        list(read_sqa(write(release, line(texts="[" * 10_000)), "train"))


def test_original_sorts_sequences_and_takes_quotes_as_they_come(release):
    first, *others = line(name="nt-9", cells="['(1, 0)']"), line(name="nt-10")
    lines = [line(name="nt-9", position=1), *others, first]
    (release / "table_csv" / "0.csv").write_text('Song,Year\n"Blue"s,1\n\nRed,2\n')
    pairs = list(read_sqa(write(release, *lines), "train", original=True))
    assert [question.question_id for _, question in pairs] == ["nt-10-0_0", "nt-9-0_0", "nt-9-0_1"]
    assert pairs[2][1].previous_coordinates == ((1, 0),)
    assert pairs[0][0].rows == (("Blues", "1"), ("Red", "2"))
    with pytest.raises(ValueError, match=r"0\.csv', line 2\).*train\.tsv', line 2\)"):
        list(read_sqa(write(release, line()), "train"))


@pytest.mark.parametrize("original", [False, True])
@pytest.mark.parametrize("outside", [(-1, 0), (-1, -1), (3, 0), (0, 2)])
def test_an_answer_outside_the_table_is_left_out_of_training_alone(release, outside, original):
    write(
        release,
        line(cells=f"['(1, 1)', '{outside}']"),
        line(position=1, cells="['(0, 1)']"),
        line(position=2, cells=f"['{outside}']"),
        line(position=3),
    )
    pairs = list(read_sqa(release, "train", original))
    questions = [question for _, question in pairs]
    assert [question.answer_coordinates for question in questions] == [(), ((0, 1),), (), ((0, 0),)]
    assert [q.previous_coordinates for q in questions] == [(), ((1, 1),), ((0, 1),), ()]
    refused = []
    for table, question in pairs:
        try:
            check_supervision(table, question, original=original)
        except SupervisionError as error:
            refused.append((question.question_id, error.reason))
    assert refused == [("nt-1-0_0", "no answer given"), ("nt-1-0_2", "no answer given")]


@pytest.mark.parametrize("original", [False, True])
def test_positions_need_not_be_in_order_and_may_be_left_out(release, original):
    cells = {4: "['(2, 0)']", 1: "['(0, 1)']", 3: "['(1, 0)']"}
    write(release, *(line(position=position, cells=cells[position]) for position in cells))
    questions = [question for _, question in read_sqa(release, "train", original)]
    assert [question.question_id for question in questions] == [f"nt-1-0_{n}" for n in (1, 3, 4)]
    assert [question.previous_coordinates for question in questions] == [(), ((0, 1),), ((1, 0),)]
