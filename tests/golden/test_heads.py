"""Heads against the original: logits, losses, gradients; test_pretraining.py has pre-training's."""

from tests.golden import heads
from tests.golden.comparison import (
    GOLDEN,
    PUBLIC,
    NotSupportedError,
    compare_arrays,
    each_of,
    read_arrays,
)

TOLERANCE = 1e-5
# Of the gradients recorded here the original's own are 1.4e-5 off a float64 run, so that processors
# with other vector units, and oneDNN, round to one or the other side: as much again is allowed.
ILL_CONDITIONED = dict.fromkeys(("wtq_first_order", "wtq_second_order"), 2.8e-5)
OF_TOKENS = ("sequence_output", "token_logits", "masked_token_logits", "out_logits", "out_probs")
# The release computes the scores of a cell selection too, which its reader makes no use of.
OF_CELL_SELECTION = "column_logits masked_token_logits out_logits out_probs token_logits".split()


@each_of("heads", lambda _, entry: heads.span_prediction(entry) is not None, GOLDEN, PUBLIC)
def test_logits_losses_and_gradients_equal_the_originals(golden, name):
    entry = golden.load_index("heads")[name]
    (path,) = golden.require(f"heads/{name}.npz")
    expected = read_arrays(path)
    batch = heads.load_batch(golden, entry)
    tapas, encoder_config = heads.supported_config(golden, entry, batch["input_ids"].shape[1])
    is_reader = heads.span_prediction(entry) != "none"
    for key in ("classification_label_weight", "num_aggregation_labels"):
        if is_reader and tapas.get(key):
            raise NotSupportedError(f"{key}={tapas[key]} of a reader")
    actual = heads.cell_selection_arrays(golden, encoder_config, batch, tapas)
    if is_reader:
        actual = {key: actual[key] for key in OF_CELL_SELECTION if key in actual}
        actual |= heads.span_arrays(golden, encoder_config, batch, tapas)
    elif tapas.get("num_classification_labels"):
        # Both models have the encoder; the original's loss is the sum of theirs.
        of_classes = heads.classification_arrays(golden, encoder_config, batch, tapas)
        for key, value in of_classes.items():
            actual[key] = actual[key] + value if key in actual else value

    counts = heads.counted_examples(batch, actual, tapas)
    real = batch["input_mask"].numpy() > 0  # padding is no contract
    counts |= dict.fromkeys(OF_TOKENS, real)
    counts |= heads.possible_choices(name, actual, expected, counts)
    tolerance = ILL_CONDITIONED.get(name, TOLERANCE)
    tolerances = heads.tolerances_of_gradients(expected, tolerance)
    options = {"counts": counts, "tolerances": tolerances}
    compare_arrays("heads", name, actual, expected, TOLERANCE, **options)
