"""PointR's first stage alone, to compare architectures by the cells that they point to.

    python -m experiments.create_linked_corpus --output_dir=out/linked_corpus
    python -m experiments.pointr --config=pointr_minilm --stage=create \
        --input_dir=out/linked_corpus --output_dir=out/pointr --vocab_file=minilm/vocab.txt
    python -m experiments.paper.compare_attention --config=point_minilm \
        --data_dir=out/pointr/point_data --init_checkpoint=minilm \
        --output_dir=out/compare_pointing --architectures=tapas,mate_exact

It is the pointer of pointr_minilm with a third of the steps.

Hardware: 1 core of an EPYC server with bfloat16 in hardware.
Time: 8 to 11 minutes a run; Linformer and TableETC 21 to 23.
Score: Hits@1 on 300 questions: 91.3 % with mate_exact, 80.0 % with tapas; others in
docs/results.md.
"""

import dataclasses

from experiments.configs.small.pointr_minilm import CONFIG as _POINTR

CONFIG = dataclasses.replace(_POINTR.point, num_steps=300, eval_interval=300)
