import pytest

from mate_tf.datasets.tasks import read_sst2


def write(directory, text: str):
    (directory / "train.tsv").write_text(text, encoding="utf-8")
    return directory


def test_reads_sentences_and_classes(tmp_path):
    first, second = read_sst2(write(tmp_path, "a fine film\t1\n\nno , it 's not\t0\r\n"), "train")
    assert (first.text, first.class_index, first.question_id) == ("a fine film", 1, "train-1")
    assert (second.text, second.class_index, second.question_id) == ("no , it 's not", 0, "train-3")


def test_passes_over_the_names_of_columns(tmp_path):
    (only,) = read_sst2(write(tmp_path, "sentence\tlabel\na film\t0\n"), "train")
    assert only.text == "a film"


@pytest.mark.parametrize("line", ["a film", "a film\t2", "\t1", "a film\t"])
def test_a_line_without_sentence_or_class_is_named(tmp_path, line):
    with pytest.raises(ValueError, match=r"expected a sentence, a tab and 0 or 1.*line 2\)"):
        list(read_sst2(write(tmp_path, f"fine\t1\n{line}\n"), "train"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"dev\.tsv"):
        list(read_sst2(tmp_path, "dev"))
