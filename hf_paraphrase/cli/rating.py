"""The commands `hf-paraphrase rating …`, by which people judge. What is heavy is imported inside the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..common.fields import option
from ..errors import InputError
from .terminal import echo
from .verbs import Verb, verb

__all__ = ["MakeForms", "ReadForms"]


def _parse_systems(label: str, values: list[str]) -> dict[str, str]:
    """The file of each system's outputs by its name."""
    files = {}
    for value in values:
        name, _, path = value.partition("=")
        if not (name and path) or name in files:
            raise InputError(f"{label} takes NAME=FILE, each name once, got {value!r}")
        files[name] = path
    return files


@verb("rating make")
class MakeForms(Verb):
    """Write forms on which people judge paraphrases.

    \b
    hf-paraphrase rating make --system FSET=runs/fset/evaluation/predictions-test-beam5-neighbors3.jsonl \\
        --system DiPS=runs/transformer/evaluation/predictions-test-dips5.jsonl --output-dir forms

    Send `ratings.html` and `preference.html` to the raters: each is one file that opens in a browser, without network,
    and hands its answers out as CSV. Keep `key.json`, which maps texts to systems, for `rating read`. The forms are
    those of Kazemnejad et al. 2020, section 4.5.
    """

    system: dict[str, str] = option(
        "A system's predictions-*.jsonl, as `evaluate` writes it; repeatable.",
        metavar="NAME=FILE",
        read=_parse_systems,
        many=True,
    )
    output_dir: Path = option("Where the forms and the key go.")
    num_sources: int = option("Sources to draw.", 100, least=1)
    num_outputs: int = option("Outputs of a system for a source, at most.", 3, least=1)
    seed: int = option("Of the draw and the order.", 0)

    def run(self) -> str:
        """Write the forms, and say where they are."""
        from ..rating import AnswerKey, make_rating_forms, read_outputs

        systems = {name: read_outputs(path) for name, path in self.system.items()}
        paths = self.call(make_rating_forms, systems=systems)
        lines = [f"{name}: {path}" for name, path in paths.items()]
        if equal := len(AnswerKey.load(paths["key"]).equal):
            lines.append(f"{equal} pairs of equal outputs are not asked about: they count as ties")
        return "\n".join(lines)


@verb("rating read")
class ReadForms(Verb):
    """Sum up what people answered: ratings, preferences, agreement.

    \b
    hf-paraphrase rating read forms/key.json answers/*.csv --output forms/results.json

    Mean ratings, and how often each system was preferred, with Cohen's kappa: table 3 and figure 5 of Kazemnejad et
    al. 2020.
    """

    key: Path = option("The key.json that was written with the forms.", positional=True)
    answers: list[Path] = option("CSV files of the raters, of either form.", positional=True)
    output: Path | None = option("JSON file of the results.", None)

    def run(self) -> dict[str, Any]:
        """Summarise the answers, and return the content of the JSON file."""
        from ..common.files import write_text
        from ..rating import AnswerKey, read_answers, summarise_answers

        answer_key = AnswerKey.load(self.key)
        results = summarise_answers(read_answers(self.answers, answer_key), answer_key)
        if self.output is not None:
            write_text(self.output, json.dumps(results, indent=2, ensure_ascii=False) + "\n")
        return results

    def show(self, results: dict[str, Any]) -> None:
        """Print the tables."""
        from ..rating import format_rating_results

        echo(format_rating_results(results))
