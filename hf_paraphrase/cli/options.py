"""Options that several commands share, and what reads and checks them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..errors import InputError
from ..fields import option, parse_scalar
from ..installation import require
from ..metrics.scored import scored_metrics
from ..released import RELEASED
from .text_tables import read_texts
from .verbs import Verb

__all__ = [
    "DEFAULT_MODEL",
    "ChoiceOptions",
    "DiversityPenalty",
    "Dtype",
    "Errors",
    "ExcludeSource",
    "Fidelity",
    "IntervalOptions",
    "Matcher",
    "MaxSourceLength",
    "MetricOptions",
    "Model",
    "ModelOptions",
    "NamedModel",
    "NumBeamGroups",
    "ReadingOptions",
    "Strength",
    "TrustRemoteCode",
    "WriterOptions",
    "check_ability",
    "check_matplotlib",
    "metrics_option",
    "parse_decoding",
    "parse_pairs",
    "read_keep",
    "read_lines",
    "split_model",
    "split_names",
    "strength_option",
]

# What the abilities of a model mean.
ABILITIES = {
    "embeds_sentences": "embed words and sentences",
    "has_levels": "tell phrases from the template",
    "labels_pairs": "label or score pairs of sentences",
    "reads_pairs": "edit by a retrieved pair",
}

# The model of the commands that use one, where none is named.
DEFAULT_MODEL = RELEASED

# As functions have them that typer reads.
Matcher = Annotated[str | None, typer.Option(help="Model of sentence pairs that `--select matcher` asks.")]
NumBeamGroups = Annotated[int | None, typer.Option(min=1, help="Groups of diverse_beam; by default each beam is one.")]
DiversityPenalty = Annotated[
    float | None, typer.Option(min=0, help="What a word costs diverse_beam for each group before that took it.")
]
Fidelity = Annotated[
    float | None, typer.Option(min=0, max=1, help="Weight that dips gives to the meaning; the rest is for variety.")
]
ExcludeSource = Annotated[
    bool | None,
    typer.Option(
        "--exclude-source/--allow-source",
        help="Whether dips (by default not) and diverse_beam (by default so) may return the text itself.",
    ),
]
Errors = Annotated[
    str, typer.Option(help="Of what is no UTF-8: strict, which tells file and line, or replace, which reads it as �.")
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code", help="Let code beside the checkpoints that are named run, and read weights in a pickle."
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        help="Precision of the model: float32, bfloat16, float16, or fast, which is bfloat16 where the machine "
        "multiplies it in hardware. In half precision outputs may differ a little.  [default: the checkpoint's]"
    ),
]
MaxSourceLength = Annotated[
    int | None,
    typer.Option(min=1, help="Most tokens that are read of a text.  [default: the model's limit, and 1024 at most]"),
]
STRENGTH_HELP = (
    "How far paraphrases are to differ from the text, from 0 to 1: by the model's control token, or for a model "
    "without any by raising --min-novelty and --diversity to half of it.  [default: the checkpoint's]"
)
Strength = Annotated[float | None, typer.Option(min=0, max=1, help=STRENGTH_HELP)]
Model = Annotated[str, typer.Argument(help="Checkpoint folder or Hub repository.")]
NamedModel = Annotated[
    str | None,
    typer.Option("--model", help=f"Checkpoint folder or Hub repository.  [default: {RELEASED}]"),
]


def split_names(label: str, value: str) -> list[str]:
    """Read names with commas between them; `none` is none."""
    return [] if value == "none" else [name.strip() for name in value.split(",")]


def parse_pairs(option: str, pairs: Iterable[str]) -> dict[str, Any]:
    """Read the values of a repeatable option `KEY=VALUE` as a recipe file would.

    Args:
        option: The option's name, for errors.
        pairs: Its values.

    Raises:
        InputError: One of them has no `=`.
    """
    parsed = {}
    for pair in pairs:
        key, has_value, value = pair.partition("=")
        if not has_value:
            raise InputError(f"{option} takes KEY=VALUE, got {pair!r}")
        parsed[key] = parse_scalar(value)
    return parsed


def read_keep(label: str, value: str) -> list[str]:
    """Read what paraphrases keep: kinds, and words of one's own."""
    from ..generation.keep import parse_keep

    return parse_keep(value)


@dataclass(kw_only=True)
class ModelOptions(Verb):
    """A model, and whether its code may run."""

    model: str = option("Checkpoint folder or Hub repository.", positional=True)
    trust_remote_code: bool = option(
        "Let code beside the checkpoints that are named run, and read weights in a pickle.", False
    )


@dataclass(kw_only=True)
class WriterOptions(ModelOptions):
    """The model of the commands that use one."""

    model: str = option("Checkpoint folder or Hub repository.", DEFAULT_MODEL, positional=True)


@dataclass(kw_only=True)
class IntervalOptions(Verb):
    """How sure scores are."""

    n_samples: int = option("Resampled corpora for the intervals.", 1000, least=2)
    seed: int = option("Seed of the intervals, and of p-values where there are any.", 12345)


@dataclass(kw_only=True)
class ReadingOptions(Verb):
    """How files of texts are read."""

    errors: Literal["strict", "replace"] = option(
        "Invalid UTF-8: strict reports file and line, replace reads it as \ufffd.", "strict"
    )


def strength_option() -> Any:
    """The option that says how far paraphrases are to differ from the text."""
    return option(STRENGTH_HELP, None, least=0, most=1)


def metrics_option(*names: str) -> Any:
    """The option that names metrics, with its default."""
    return option(
        f"Of: {', '.join(scored_metrics())}; commas between them.", factory=lambda: [*names], read=split_names
    )


@dataclass(kw_only=True)
class MetricOptions(Verb):
    """Which metrics score texts, and how."""

    metrics: list[str] = metrics_option("bleu")
    lowercase: bool = option(
        "Ignore case, as rouge and meteor always do, or heed it.", True, flag="--lowercase/--cased"
    )
    tokenize: str = option("A tokenizer of sacrebleu; none for tokenised text.", "13a")
    word_vectors: Path | None = option(
        "Word vectors for embedding_greedy: text such as GloVe's, or word2vec's .bin.", None
    )
    meteor_variant: str = option("nltk, or 1.5 (Java).", "nltk")
    meteor_stages: list[str] = option(
        "What nltk's METEOR matches.", factory=lambda: ["exact", "stem", "wordnet"], read=split_names
    )
    rouge_tokenize: str = option("ROUGE's words: ascii, as rouge-score, or unicode for any script.", "ascii")

    def metric_options(self) -> dict[str, dict[str, Any]]:
        """The options of the function of each metric.

        Raises:
            InputError: A metric lacks what it needs; said now, since outputs may take hours to write.
        """
        if "embedding_greedy" in self.metrics and self.word_vectors is None:
            raise InputError(
                "embedding_greedy needs word vectors; give --word-vectors, a file such as GloVe's or word2vec's .bin"
            )
        stages = tuple(self.meteor_stages)
        if "meteor" in self.metrics and self.meteor_variant == "nltk":
            from ..metrics.meteor.nltk_variant import check_stages

            check_stages(stages, "--meteor-stages")
        words = {"tokenize": self.tokenize, "lowercase": self.lowercase}
        return {
            **dict.fromkeys(("bleu", "pinc", "ibleu"), words),
            "ter": {"case_sensitive": not self.lowercase},
            "rouge": {"tokenize": self.rouge_tokenize},
            "meteor": {"variant": self.meteor_variant, "stages": stages, "tokenize": self.tokenize},
            "embedding_greedy": {"word_vectors": self.word_vectors, **words},
        }


@dataclass(kw_only=True)
class ChoiceOptions(Verb):
    """How a model's outputs are chosen among."""

    num_candidates: int | None = option("Outputs to choose from.", None, least=1)
    select: str = option("How: score, jaccard, mbr, embedding or matcher.", "score")
    allow_own_pair: bool = option("Edit by pairs that share a row's source or reference too, as papers do.", False)


def check_ability(model: str, ability: str, trust_remote_code: bool = False) -> None:
    """Refuse a model that cannot do what a command is about, before anything else is done.

    A model that cannot be read at all is left to what loads it, which says why.

    Args:
        model: Checkpoint folder or Hub repository.
        ability: Out of `ABILITIES`.
        trust_remote_code: Let the model's own code run.

    Raises:
        InputError: Its architecture lacks the ability.
    """
    from ..models.layers.portable import can
    from ..pretrained import load_config
    from ..registration import ARCHITECTURES

    try:
        config = load_config(model, trust_remote_code)
    except InputError:
        raise
    except (OSError, ValueError):
        return
    if not can(config, ability):
        able = ", ".join(row.model_type for row in ARCHITECTURES if ability in row.config_class.abilities)
        raise InputError(f"{model} is a {config.model_type}, which cannot {ABILITIES[ability]}; {able} can")


def split_model(model: str | None, words: Sequence[str]) -> tuple[str, list[str]]:
    """The model and the texts of a command line, where the model may be an option or the first word.

    A first word is a model if it is a folder, `RELEASED`, or has a slash and no space, as a Hub repository has.

    Args:
        model: The option; None where it is not given, and all words are texts otherwise.
        words: What stands outside of options.

    Raises:
        InputError: The first word has neither slash nor space, and so might be either.
    """
    if model is not None or not words:
        return model or RELEASED, list(words)
    first, *others = words
    if os.path.isdir(first) or first == RELEASED:
        return first, others
    if any(character.isspace() for character in first) or not first:
        return RELEASED, list(words)
    if "/" in first or os.sep in first:
        return first, others
    raise InputError(
        f"{first!r} may be a model or a text: name the model, --model {first} or --model {RELEASED}, and quote texts"
    )


def check_matplotlib(picture: str) -> None:
    """Refuse to draw where nothing can.

    Args:
        picture: The option or command that asks for a picture.

    Raises:
        InputError: matplotlib is not installed.
    """
    require("matplotlib", "plots", picture)


def read_lines(path: Path) -> list[str]:
    """The texts of a file, a text a line or in the column `text` or `source` of a table, without blank ones.

    Raises:
        InputError: There is none, or one cannot be read.
        OSError: The file cannot be read.
    """
    lines = [text.strip() for text in read_texts(str(path)) if text.strip()]
    if not lines:
        raise InputError(f"{path} has no line with text")
    return lines


def parse_decoding(
    decoding: str,
    num_beams: Iterable[int],
    *,
    num_beam_groups: int | None,
    diversity_penalty: float | None,
    fidelity: float | None,
    exclude_source: bool | None = None,
) -> dict[str, Any]:
    """What `generate_paraphrases` and the pipeline take for a decoding, from the options of the command line.

    Raises:
        InputError: There is no such decoding, an option is another's, or the groups do not divide the beams.
    """
    from ..models.search.decodings import DECODINGS

    if decoding not in DECODINGS:
        raise InputError(f"--decoding must be one of {', '.join(DECODINGS)}, not {decoding}")
    grouped = {"num_beam_groups": num_beam_groups, "diversity_penalty": diversity_penalty}
    for owner, options in (("diverse_beam", grouped), ("dips", {"fidelity": fidelity})):
        given = [name for name, value in options.items() if value is not None]
        if given and decoding != owner:
            raise InputError(f"--{given[0].replace('_', '-')} is an option of --decoding {owner}")
    if exclude_source is not None and decoding == "beam":
        raise InputError("--exclude-source is an option of --decoding diverse_beam and dips")
    for width in num_beams:
        if num_beam_groups is not None and width % num_beam_groups:
            raise InputError(f"--num-beam-groups {num_beam_groups} does not divide --num-beams {width}")
    options = {**grouped, "fidelity": fidelity, "exclude_source": exclude_source}
    options["decoding"] = None if decoding == "beam" else decoding
    return {name: value for name, value in options.items() if value is not None}
