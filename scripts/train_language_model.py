r"""Train a hierarchical language model, stage by stage, on one process or many:

    accelerate launch scripts/train_language_model.py --recipe hub_configs/sarah-lm-gutenberg-small \
        --data-dir data/gutenberg --output-dir runs/sarah-lm
    python scripts/train_language_model.py --recipe hub_configs/sarah-lm-jacobs-small \
        --data-dir data/gutenberg --pretrained runs/sarah-lm --output-dir runs/sarah-jacobs
    python scripts/train_language_model.py --recipe hub_configs/sarah-lm-paraphrase-small \
        --data-dir data/gutenberg --pretrained runs/sarah-lm --output-dir runs/sarah-paraphrase

First the next sentence is learnt; then, if wanted, the style of one author; or, to paraphrase, the sentence itself,
by the sentence decoder alone. The same as `hf-paraphrase train`: the recipe's `task: language_model` says what is
learnt. `--help` lists every field of a recipe that can be overridden.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["train", *sys.argv[1:]])
