"""PointR's first stage alone, to compare architectures by the cells they point to, on a CPU.

    python -m experiments.create_linked_corpus --output_dir=out/linked_corpus
    python -m experiments.pointr --config=pointr_minilm --stage=create \
        --input_dir=out/linked_corpus --output_dir=out/pointr --vocab_file=minilm/vocab.txt
    python -m experiments.compare_attention --config=point_minilm --data_dir=out/pointr/point_data \
        --init_checkpoint=minilm --output_dir=out/compare_pointing --architectures=tapas,mate_exact

with `minilm` the folder of pointr_minilm, whose pointer this is, with a third of its steps.

Hardware: 2 CPU cores with AMX, of which each run had one.
Time: not measured by itself; pointr_minilm's pointer takes 20 minutes for three times the steps.
Score: not run to its end here.
"""

import dataclasses

from experiments.configs.pointr_minilm import CONFIG as _POINTR

CONFIG = dataclasses.replace(_POINTR.point, num_steps=300, eval_interval=300)
