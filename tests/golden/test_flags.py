"""docs/from_tapas.md has every flag of the release's programs."""

import json
import re

from tests.golden.comparison import GOLDEN
from tests.small import ROOT, cases


@cases(
    "program",
    "create_intermediate_pretrain_examples_main",
    "create_pretrain_examples_main",
    "run_task_main",
    "table_retriever_experiment",
    "tapas_classifier_experiment",
    "tapas_pretraining_experiment",
)
def test_every_flag_of_the_release_is_on_the_page(program):
    (path,) = GOLDEN.require(f"flags_{program}.json")
    page = (ROOT / "docs" / "from_tapas.md").read_text(encoding="utf-8")
    flags = json.loads(path.read_text(encoding="utf-8"))
    assert len(flags) > 15
    assert set(flags) <= set(re.findall("`([a-z_]+)`", page))
