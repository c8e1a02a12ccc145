r"""Show what a coupled LSTM sees in two sentences, and which pairs of words excite each of its units most:

    python scripts/explain_match.py heatmap runs/coupled-lstm-snli --unit 17 --output unit-17.png \
        --text "A person in a red shirt and black pants hunched over." --text-pair "A person wears a green shirt."

    python scripts/explain_match.py pairs runs/coupled-lstm-snli --dataset snli --data-dir data/snli --output pairs.md

The same as `hf-paraphrase explain-match`.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["explain-match", *sys.argv[1:]])
