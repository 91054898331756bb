"""Every option of a config is set by something, or stands here with the reason for it."""

import dataclasses

from mate_tf.pointr.answering import PointingInputs
from scripts.unset_options import unset_options

PUBLISHED = "TAPAS, section 3: of the bert_config.json of published weights"
EXCEPTIONS = {
    "EncoderConfig.layer_norm_epsilon": PUBLISHED,
    "EncoderConfig.softmax_temperature": PUBLISHED,
    "EncoderConfig.type_vocab_sizes": PUBLISHED,
    "GrammarSoftConfig.grammar_bias": "grammar-guided attention, section 3.2: alpha",
    "PointingInputs.num_sentences": "MATE, section 4.1: k",
    "TableETCConfig.local_radius": "ETC (Ainslie et al., 2020), section 3: the local radius",
    "TableETCConfig.max_relative_distance": "ETC (Ainslie et al., 2020), section 3: the clipping",
    "TableQAConfig.use_normalized_answer_loss": "TAPAS, section 3; the golden wtq_normalized",
    "TrainingConfig.schedule": "BERT (Devlin et al., 2019), appendix A.2: one of a table",
    "TrainingConfig.weight_decay_rate": "BERT (Devlin et al., 2019), appendix A.2",
}


def test_something_sets_every_option():
    assert unset_options() == sorted(EXCEPTIONS)


def test_an_option_that_nothing_sets_is_found():
    @dataclasses.dataclass(frozen=True)
    class WithMore(PointingInputs):
        unheard_of: int = 3

    assert "WithMore.unheard_of" in unset_options()
