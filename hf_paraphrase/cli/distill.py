"""The command that distils a large model into a small fast one. Heavy imports are inside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..common.fields import option
from ..errors import InputError
from .augment import AugmentationOptions
from .terminal import echo
from .train import parse_overrides
from .verbs import verb

__all__ = ["Distill"]


@verb("distill")
class Distill(AugmentationOptions):
    """Distil a language model into a small fast one.

    \b
    hf-paraphrase distill sentences/ --column text --teacher HuggingFaceTB/SmolLM2-135M-Instruct \\
        --recipe transformer-open --output-dir runs/student --data-dir data/open
    hf-paraphrase distill texts.csv --column text --teacher llama3.2 --backend http://localhost:11434/v1 \\
        --recipe residual-lstm-synthetic --no-baseline --output-dir runs/student

    The teacher paraphrases every text, as `augment` does; what passes becomes a corpus with a card, on which the
    recipe's model is trained. The table puts the teacher, the student and the same recipe without distillation side
    by side. After any interruption the same command resumes. Fields of the recipe are overridden by --field value.
    """

    context_settings = {"allow_extra_args": True, "ignore_unknown_options": True}

    model: str = option("Checkpoint folder, .gguf file or Hub repository that writes.", flag="--teacher")
    output: str = option("Folder for the candidates, the corpus, the student and the table.", flag="--output-dir")
    recipe: str = option("The student's: one of `hf-paraphrase recipes`, or a folder.")
    held_out: float = option("Share of the texts for validation, and as much for test.", 0.05, above=0, below=0.5)
    encoder: str | None = option(
        "Sentence encoder whose cosine is the adequacy of the table.  [default: the round trip by the model of the "
        "package]",
        None,
    )
    most_tested: int = option("Maximum number of texts in the table.", 1000, least=1)
    likeliest: int | None = option(
        "Learn of each text only so many paraphrases, the likeliest by the teacher.  [default: all that pass]",
        None,
        least=1,
    )
    teacher_licence: str | None = option("Its licence, and what it says of outputs.  [default: its card's]", None)
    baseline: bool = option("Also train the recipe without distillation.", True, flag="--baseline/--no-baseline")
    data_dir: Path | None = option("Folder with the files of the recipe's own corpus.", None)
    overrides: dict[str, Any] = option("Fields of the recipe.", factory=dict, rest=True, read=parse_overrides)

    def run(self) -> list[dict[str, Any]] | None:
        """Run or resume, and return the table; None where jobs were submitted."""
        self.check_installed()
        if "://" in self.output:
            raise InputError("--output-dir is a folder of this machine")
        from ..distillation import Distillation, run_distillation
        from ..training.recipe import load_recipe

        recipe = load_recipe(self.recipe).override(self.overrides)
        asked = self.call(Distillation, texts=self.make_augmentation(), recipe=recipe)
        where = {name: getattr(self, name) for name in ("workers", "executor", "logging_dir")}
        where["executor_options"] = self.executor_option
        return self.call(run_distillation, asked=asked, output_dir=self.output, **where)

    def show(self, result: Sequence[dict[str, Any]] | None) -> None:
        """Print the table."""
        if result is None:
            echo("jobs are submitted; the same command, when they are done, goes on")
            return
        from ..distillation import TABLE_FILE

        echo((Path(self.output) / TABLE_FILE).read_text(encoding="utf-8"))
