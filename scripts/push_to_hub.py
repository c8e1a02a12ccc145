r"""Share a trained model on the Hub, with its code, recipe, results and card, in one commit:

    python scripts/push_to_hub.py runs/residual-lstm-mscoco --repo-id you/residual-lstm-mscoco

    python scripts/push_to_hub.py runs/residual-lstm-mscoco --repo-id you/residual-lstm-mscoco --private --create-pr

The same as `hf-paraphrase push`.
"""

from __future__ import annotations

import sys

from hf_paraphrase.cli.app import main

if __name__ == "__main__":
    main(["push", *sys.argv[1:]])
