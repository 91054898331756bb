"""Where data is that some tests need and skip without: folders of the environment, or ../shared."""

import os
import pathlib

_SHARED = pathlib.Path(__file__).resolve().parents[2] / "shared"


def _folder(variable: str, default: str) -> pathlib.Path:
    return pathlib.Path(os.environ.get(variable, _SHARED / default))


GOLDEN = _folder("MATE_TF_GOLDEN_DIR", "golden")
GOLDEN_REAL = _folder("MATE_TF_GOLDEN_REAL_DIR", "golden_real")
WTQ = _folder("MATE_TF_WTQ_DIR", "data/wtq")
HYBRIDQA_SAMPLE = _folder("MATE_TF_HYBRIDQA_DIR", "data/hybridqa_sample")
FIELD = _folder("MATE_TF_FIELD_DIR", "field")
