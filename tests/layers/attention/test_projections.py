import pytest

from mate_tf.config import ARCHITECTURES, AttentionConfig
from mate_tf.layers.attention.dense import Dense
from mate_tf.layers.attention.kinds import ByLength, MultiViewAttention, SelfAttention
from mate_tf.layers.attention.linformer import Linformer
from mate_tf.layers.attention.table_etc import TableETC

IMPLEMENTATIONS = {
    **dict.fromkeys(ARCHITECTURES, Dense),
    **dict.fromkeys(("mate", "mate_tableformer"), ByLength),
    "linformer": Linformer,
    "table_etc": TableETC,
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_architecture_has_its_implementation_and_comes_back(name):
    options = {"sequence_length": 6} if name == "linformer" else {}
    layer = SelfAttention(2, 4, AttentionConfig(name, **options), name="a")
    assert type(layer.implementation) is IMPLEMENTATIONS[name]
    again = SelfAttention.from_config(layer.get_config())
    assert (again.name, again.attention) == ("a", layer.attention)


@pytest.mark.parametrize("name", ["tapas", "sat", "table_etc"])
def test_multi_view_attention_takes_sorted_heads_alone(name):
    message = rf"expected architecture in \('mate', 'mate_tableformer'\) .*, got '{name}'"
    with pytest.raises(ValueError, match=message):
        MultiViewAttention(2, 4, architecture=name)
