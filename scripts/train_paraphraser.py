r"""Train a paraphrase model, on one process or many:

    accelerate launch scripts/train_paraphraser.py --recipe hub_configs/residual-lstm-mscoco \
        --data-dir data/mscoco --output-dir runs/residual-lstm-mscoco

    accelerate launch --cpu --num_processes 2 scripts/train_paraphraser.py \
        --recipe hub_configs/residual-lstm-synthetic --output-dir runs/two-processes --learning_rate 0.002

The same as `hf-paraphrase train`; `--help` lists every field of a recipe that can be overridden.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
