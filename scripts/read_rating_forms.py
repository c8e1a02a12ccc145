r"""Sum up what people answered in the forms of scripts/make_rating_forms.py:

    python scripts/read_rating_forms.py forms/key.json answers/*.csv --output forms/results.json

It prints the mean ratings of each system and how often each was preferred to each other one, with Cohen's kappa: table
3 and figure 5 of Kazemnejad et al. 2020.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from hf_paraphrase.errors import InputError
from hf_paraphrase.files import write_text
from hf_paraphrase.rating import AnswerKey, format_rating_results, read_answers, summarise_answers


def main(
    key: Annotated[Path, typer.Argument(help="The key.json that was written with the forms.")],
    answers: Annotated[list[Path], typer.Argument(help="CSV files of the raters, of either form.")],
    output: Annotated[Path | None, typer.Option(help="JSON file of the results.")] = None,
) -> None:
    """Print the tables, and write them."""
    try:
        answer_key = AnswerKey.load(key)
        results = summarise_answers(read_answers(answers, answer_key), answer_key)
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    print(format_rating_results(results))
    if output is not None:
        write_text(output, json.dumps(results, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    typer.run(main)
