r"""Show how a model edited a sentence: the retrieved pair, and which of its tokens each output token attended to.

python scripts/explain_edit.py runs/fset-quora "How can I learn faster?" --output edit.html
python scripts/explain_edit.py runs/fset-quora "How can I learn faster?" --retrieved "How can I run faster?" \
    "What makes me run faster?" --output edit.html
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hf_paraphrase.analysis.edits import explain_edit, format_html
from hf_paraphrase.errors import InputError
from hf_paraphrase.files import write_text
from hf_paraphrase.generation.engine import load_paraphraser
from hf_paraphrase.models.retrieved_pairs import load_retriever


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="checkpoint folder or Hub repository of a model that edits by retrieved pairs")
    parser.add_argument("text", help="sentence to paraphrase")
    parser.add_argument("--retrieved", nargs=2, metavar=("P", "Q"), help="pair to edit by, in place of the nearest")
    parser.add_argument("--neighbor", type=int, default=1, help="which of the nearest pairs, from 1 (default: 1)")
    parser.add_argument("--output", type=Path, required=True, help="HTML file to write")
    args = parser.parse_args()
    try:
        model, tokenizer = load_paraphraser(args.model)
        if args.retrieved is None:
            nearest = load_retriever(model).retrieve([args.text], args.neighbor)[0][-1]
            args.retrieved = (nearest.source, nearest.target)
        explanation = explain_edit(model.eval(), tokenizer, args.text, tuple(args.retrieved))
        write_text(args.output, format_html(explanation))
    except (InputError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(explanation.paraphrase)
    return 0


if __name__ == "__main__":
    sys.exit(main())
