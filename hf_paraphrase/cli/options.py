"""Options that several commands share, and what reads and checks them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..common.errors import InputError
from ..common.fields import Options, option, parse_scalar
from ..metrics import scored_metrics
from ..released import RELEASED
from .terminal import read_texts
from .verbs import Verb

if TYPE_CHECKING:
    from ..generation.paraphraser import Paraphraser

# A path or a Hub repository; sentences have spaces or other punctuation.
MODEL_NAME = re.compile(r"[\w.~:/\\-]*[\w~/\\-]")

# Descriptions of model abilities.
ABILITIES = {
    "embeds_sentences": "embed words and sentences",
    "has_levels": "tell phrases from the template",
    "labels_pairs": "label or score pairs of sentences",
    "reads_pairs": "edit by a retrieved pair",
}

# The decodings that an option is for.
DECODINGS_OF = {
    "num_beam_groups": ("diverse_beam",),
    "diversity_penalty": ("diverse_beam",),
    "fidelity": ("dips",),
    "exclude_source": ("diverse_beam", "dips"),
}

PROMPT_HELP = "YAML file with the prompt of a language model.  [default: the built-in prompt]"
TRUST_HELP = "Run the code in the named checkpoints, and read pickled weights."


def split_names(label: str, value: str) -> list[str]:
    """Read comma-separated names; `none` gives an empty list."""
    return [] if value == "none" else [name.strip() for name in value.split(",")]


def parse_pairs(option: str, pairs: Iterable[str]) -> dict[str, Any]:
    """Read the values of a repeatable option `KEY=VALUE` as a recipe file would; InputError where one has no `=`."""
    parsed = {}
    for pair in pairs:
        key, has_value, value = pair.partition("=")
        if not has_value:
            raise InputError(f"{option} takes KEY=VALUE, got {pair!r}")
        parsed[key] = parse_scalar(value)
    return parsed


def pairs_option(help: str, read: Callable[[str, list[str]], Any] = parse_pairs, **details: Any) -> Any:
    """An option `KEY=VALUE` that may be repeated, whose values make a dict."""
    return option(help, factory=dict, read=read, many=True, **{"metavar": "KEY=VALUE", **details})


def read_keep(label: str, value: str) -> list[str]:
    """Read what paraphrases must keep: kinds, and the user's own words."""
    from ..generation.protected_text import parse_keep

    return parse_keep(value)


class ModelOptions(Verb):
    """A model, and whether to trust its code."""

    model: str = option("Checkpoint folder or Hub repository.", positional=True)
    trust_remote_code: bool = option(TRUST_HELP, False)


class LoadingOptions(Verb):
    """How a model that paraphrases is loaded."""

    trust_remote_code: bool = option(TRUST_HELP, False)
    prompt: str | None = option(PROMPT_HELP, None)
    backend: str | None = option(
        "ctranslate2 (BART, Marian, T5, Pegasus, Llama, Qwen and others, several times as fast on a CPU), or the "
        "address of an OpenAI-compatible server, such as http://localhost:8080/v1, which then names the models.",
        None,
    )
    dtype: str | None = option(
        "Precision of the model: float32, bfloat16, float16, int8 on the CPU, or fast, which is bfloat16 where the "
        "machine multiplies it in hardware. In all but float32 outputs may differ a little.  [default: the "
        "checkpoint's]",
        None,
    )

    def load_paraphraser(self, model: str) -> Paraphraser:
        """The model, ready to paraphrase."""
        from ..generation.paraphraser import Paraphraser

        loading = self.given(LoadingOptions)
        trust_remote_code = loading.pop("trust_remote_code")
        return Paraphraser.from_pretrained(model, trust_remote_code=trust_remote_code, **loading)


class WriterOptions(LoadingOptions):
    """The model of the commands that use one."""

    model: str = option("Checkpoint folder, .gguf file or Hub repository.", RELEASED, positional=True)


class IntervalOptions(Verb):
    """Confidence intervals of scores."""

    n_samples: int = option("Bootstrap samples for the intervals.", 1000, least=2)
    seed: int = option("Seed of the intervals and p-values.", 12345)


class ReadingOptions(Verb):
    """How to read files of texts."""

    errors: Literal["strict", "replace"] = option(
        "Invalid UTF-8: strict reports file and line, replace reads it as \ufffd.", "strict"
    )


class CandidateOptions(Verb):
    """Where candidates come from."""

    decoding: Literal["beam", "diverse_beam", "dips", "sample", "noise"] | None = option(
        "Decoding method.  [default: beam for one paraphrase, diverse_beam for more; noise if the model embeds "
        "sentences]",
        None,
    )
    num_candidates: int | None = option("Candidates per text.", None, least=1)
    seed: int | None = option("Random seed; texts are independent of each other.  [default: 0]", None)
    batch_size: int = option("Batch size; halved when memory runs out.", 16, least=1)
    max_source_length: int | None = option(
        "Tokens of a text to read; the rest is cut.  [default: the model's limit, at most 1024]", None, least=1
    )


def metrics_option(*names: str) -> Any:
    """The option that names metrics, with its default."""
    return option(f"Comma-separated: {', '.join(scored_metrics())}.", factory=lambda: [*names], read=split_names)


class MetricOptions(Verb):
    """Which metrics score texts, and how."""

    metrics: list[str] = metrics_option("bleu")
    lowercase: bool = option("Ignore case (rouge and meteor always do).", True, flag="--lowercase/--cased")
    tokenize: str = option("Tokenizer of sacrebleu; none for tokenised text.", "13a")
    word_vectors: Path | None = option("Word vectors for embedding_greedy: GloVe text or a word2vec .bin.", None)
    meteor_variant: str = option("nltk, or 1.5 (Java).", "nltk")
    meteor_stages: list[str] = option(
        "Matchers of nltk's METEOR, comma-separated.", factory=lambda: ["exact", "stem", "wordnet"], read=split_names
    )
    rouge_tokenize: str = option("Words of ROUGE: ascii, as in rouge-score, or unicode for any script.", "ascii")

    def metric_options(self) -> dict[str, dict[str, Any]]:
        """The options of the function of each metric.

        InputError says now what a metric lacks, since generating outputs may take hours.
        """
        if "embedding_greedy" in self.metrics and self.word_vectors is None:
            raise InputError(
                "embedding_greedy needs word vectors; give --word-vectors, a file such as GloVe's or word2vec's .bin"
            )
        stages = tuple(self.meteor_stages)
        if "meteor" in self.metrics and self.meteor_variant == "nltk":
            from ..metrics.meteor.scoring import check_stages

            check_stages(stages, "--meteor-stages")
        words = {"tokenize": self.tokenize, "lowercase": self.lowercase}
        return {
            **dict.fromkeys(("bleu", "pinc", "ibleu"), words),
            "ter": {"case_sensitive": not self.lowercase},
            "rouge": {"tokenize": self.rouge_tokenize},
            "meteor": {"variant": self.meteor_variant, "stages": stages, "tokenize": self.tokenize},
            "embedding_greedy": {"word_vectors": self.word_vectors, **words},
        }


class ChoiceOptions(Verb):
    """How a model's outputs are chosen among."""

    num_candidates: int | None = option("Candidates per text.", None, least=1)
    select: str = option("Rule of choice: score, jaccard, mbr, embedding or matcher.", "score")
    allow_own_pair: bool = option("Also edit by pairs that share the row's source or reference, as papers do.", False)


class KeepOptions(Verb):
    """How freely to paraphrase, and what stays."""

    strength: float | None = option(
        "How freely to paraphrase, from 0 (close to the text) to 1: prefers candidates that are new enough, and sets "
        "the control token of models that have one.  [default: the checkpoint's]",
        None,
        least=0,
        most=1,
    )
    keep: list[str] | None = option(
        "Comma-separated things that must stay: names, numbers, urls, addresses, placeholders, mentions, terms, code, "
        "quotes, and your own words (in double quotes if ambiguous); or none.  [default: all but code and quotes]",
        None,
        read=read_keep,
    )
    keep_file: Path | None = option("File of further terms to keep, one per line.", None)

    def call_options(self, *parts: type[Options], keep: Iterable[str] | None = None) -> dict[str, Any]:
        """The given arguments of a `Paraphraser`'s call.

        Args:
            parts: The classes whose fields are such arguments.
            keep: What stays by default; None for the call's default.
        """
        from ..generation.protected_text import DEFAULT_KEEP, check_keep

        given = self.given(*parts, KeepOptions)
        if path := given.pop("keep_file", None):
            # Jobs elsewhere may not see the file.
            terms = [f'"{term}"' for term in check_keep(path)]
            given["keep"] = [*given.get("keep", keep or DEFAULT_KEEP), *terms]
        return given


class PassingOptions(KeepOptions):
    """Which candidates pass as paraphrases."""

    min_adequacy: float | None = option("Minimum adequacy.", None, least=0, most=1)
    min_fluency: float | None = option("Minimum fluency.", None, least=0, most=1)
    min_novelty: float | None = option("Minimum novelty (PINC).", None, least=0, most=1)
    diversity: float | None = option("Penalty for similar paraphrases, from 0 to 1.", None, least=0, most=1)


class SearchOptions(Verb):
    """How a search finds outputs."""

    max_new_tokens: int | None = option("Maximum length of an output, in tokens.", None, least=1)
    matcher: str | None = option("Sentence-pair model for `--select matcher`.", None)
    num_beam_groups: int | None = option("Groups of diverse_beam.  [default: one per beam]", None, least=1)
    diversity_penalty: float | None = option(
        "Penalty of diverse_beam for a word that earlier groups chose.", None, least=0
    )
    fidelity: float | None = option("Weight of meaning in dips; the rest goes to variety.", None, least=0, most=1)
    exclude_source: bool | None = option(
        "Keep dips and diverse_beam from returning the text itself.  [default: only dips]",
        None,
        flag="--exclude-source/--allow-source",
    )

    def search_options(self, decoding: str, num_beams: Iterable[int]) -> dict[str, Any]:
        """The decoding options that were given, as `generate_paraphrases` and the pipeline take them.

        InputError says that an option is another decoding's, or that the groups do not divide the beams.
        """
        given = {name: value for name in DECODINGS_OF if (value := getattr(self, name)) is not None}
        for name in given:
            if decoding not in DECODINGS_OF[name]:
                owners = " and ".join(DECODINGS_OF[name])
                raise InputError(f"--{name.replace('_', '-')} is an option of --decoding {owners}")
        for width in num_beams:
            if self.num_beam_groups is not None and width % self.num_beam_groups:
                raise InputError(f"--num-beam-groups {self.num_beam_groups} does not divide --num-beams {width}")
        return given


def check_ability(model: str, ability: str, trust_remote_code: bool = False) -> None:
    """Refuse a model that lacks one of the `ABILITIES`, before any work.

    Models that cannot be read at all are reported when they are loaded.
    """
    from ..checkpoints.pretrained import load_config
    from ..models.layers.portable import can
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

    A first word is a model if it is a folder, `RELEASED`, or reads as a path or Hub repository: with a slash, without
    spaces or the punctuation of sentences. InputError says that it might be either.
    """
    if model is not None or not words:
        return model or RELEASED, list(words)
    first, *others = words
    if os.path.isdir(first) or first == RELEASED:
        return first, others
    if not MODEL_NAME.fullmatch(first):
        return RELEASED, list(words)
    if "/" in first or os.sep in first:
        return first, others
    raise InputError(
        f"{first!r} may be a model or a text: name the model, --model {first} or --model {RELEASED}, and quote texts"
    )


def read_lines(path: Path) -> list[str]:
    """The texts of a file, one a line or in a table's column `text` or `source`; InputError if all are blank."""
    lines = [text.strip() for text in read_texts(str(path)) if text.strip()]
    if not lines:
        raise InputError(f"{path} has no line with text")
    return lines
