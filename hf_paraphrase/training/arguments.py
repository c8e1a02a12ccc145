from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..common.errors import InputError
from ..common.fields import Options, option

# What says of a recipe with one corpus which that is.
CORPUS_FIELDS = ("dataset", "dataset_name", "dataset_kwargs")
# Tasks that learn from pairs of a source and a target.
PAIR_TASKS = ("paraphrase", "edit", "decompose", "answer")


@dataclass(frozen=True, kw_only=True)
class MixedCorpus(Options):
    """An entry of `mixture`: a corpus, and how much of it is learnt."""

    dataset: str = option("As in a recipe with one corpus, as the next two are.", "")
    dataset_name: str | None = option("Configuration.", None)
    dataset_kwargs: dict[str, Any] = option("Relative `data_files` start at the folder.", factory=dict)
    data_dir: str | None = option("Folder; a relative one starts at the `data_dir` of recipe or command.", None)
    share: float | None = option(
        "Share of every epoch and of the validation rows, relative to the others'; without shares, sizes count.",
        None,
        above=0,
    )
    name: str | None = option("What log and card call it; by default the dataset and its configuration.", None)
    licence: str | None = option("For log and card, where its builder does not know it.", None)
    min_cosine: float | None = option("Overrides the recipe's.", None, least=-1, most=1)

    def __post_init__(self):
        super().__post_init__()
        if not self.dataset:
            raise InputError("the field `dataset` is missing; name the corpus")
        if self.dataset_kwargs.get("streaming"):
            raise InputError("`dataset_kwargs`: shares are of all rows; leave `streaming` out")

    @property
    def title(self) -> str:
        """What it is called."""
        return self.name or "/".join(filter(None, (self.dataset, self.dataset_name)))


def read_mixture(entries: Sequence[dict[str, Any]]) -> list[MixedCorpus]:
    """Read and check the field `mixture`.

    Raises:
        InputError: With the number of the entry, from 1, and its field.
    """
    corpora = [MixedCorpus.from_dict(entry, f"`mixture`, entry {number}") for number, entry in enumerate(entries, 1)]
    if len({corpus.share is None for corpus in corpora}) > 1:
        number = next(number for number, corpus in enumerate(corpora, 1) if corpus.share is None)
        raise InputError(f"`mixture`, entry {number}: `share` is missing; give every corpus one, or none")
    titles = [corpus.title for corpus in corpora]
    twice = next((number for number, title in enumerate(titles, 1) if title in titles[: number - 1]), None)
    if twice is not None:
        raise InputError(f"`mixture`, entry {twice}: {titles[twice - 1]} is there already; set `name`")
    return corpora


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Options):
    """How to train: the fields of `training.yaml`, spelt as `transformers.TrainingArguments` spells those it has.

    The `metadata["help"]` of each field says what it does.

    Raises:
        InputError: For a value of the wrong type or outside its range, with the field's name.
    """

    # Whether the loss depends on the part of the training that is done, as rates that fall over all of it do.
    loss_follows_duration: ClassVar[bool] = False

    task: str = option(
        "What is learnt: `paraphrase`, `edit` (by a retrieved pair), `decompose` (by levels), `adapt` (their "
        "phrases), `answer` (a language model's prompt), `match`, `autoencode`, `denoise` (before paraphrasing) or "
        "`language_model`.",
        "paraphrase",
    )
    dataset: str | None = option(
        "Corpus, as `hf_paraphrase.load_dataset` takes it; null where there is a `mixture`.", None
    )
    dataset_name: str | None = option("Configuration of the corpus, where it has several.", None)
    dataset_kwargs: dict[str, Any] = option("Further arguments of the corpus builder.", factory=dict)
    data_dir: str | None = option(
        "Folder with the corpus's published files; null downloads them, where their address is open.", None
    )
    mixture: list[dict[str, Any]] = option(
        "Several corpora in place of one: a list of entries with `dataset`, `dataset_name`, `dataset_kwargs`, "
        "`data_dir`, `share` (of every epoch, in proportion to the others), `name` and `licence` (for log and card) "
        "and `min_cosine`. Relative folders and files start at `data_dir`.",
        factory=list,
    )
    pairs_per_group: int | None = option(
        "Pairs drawn from each group (column `group`) anew every epoch; null takes all.", None, least=1
    )
    filter_encoder: str | None = option(
        "Sentence encoder, a folder or Hub repository, that filters pairs by cosine. The cosines are kept in the "
        "cache of datasets.",
        None,
    )
    min_cosine: float | None = option("For `filter_encoder`: minimum cosine of a pair.", None, least=-1, most=1)
    pretrained: str | None = option("Checkpoint to start from, with its tokenizer; null starts from scratch.", None)
    ignore_mismatched_sizes: bool = option("Reinitialise weights of `pretrained` whose sizes differ.", False)
    tokenizer: str | None = option("Pretrained tokenizer; null: that of `pretrained`, or one trained here.", None)
    tokenizer_model: Literal["word", "bpe", "unigram"] = option(
        "Model of a tokenizer trained here: whole words, or sub-words, as in `train_tokenizer`.", "word"
    )
    lowercase: bool = option("Lower-case the input of a tokenizer trained here.", True)
    max_source_length: int = option(
        "Maximum tokens of a source, end token included; longer ones are cut.", 64, least=1
    )
    max_target_length: int = option(
        "Maximum tokens of a target, end token included; longer ones are cut.", 64, least=1
    )
    max_train_samples: int | None = option("Train on only the first N pairs.", None, least=1)
    shuffle_buffer_size: int = option(
        "For `streaming: true` in `dataset_kwargs`: rows in memory, which are shuffled and batched by length; a "
        "tokenizer trained here learns from the first of them.",
        20_000,
        least=1,
    )
    max_eval_samples: int | None = option("Validate on only the first N pairs.", None, least=1)

    num_train_epochs: float = option("Passes over the training pairs.", 10, above=0)
    max_steps: int = option("Optimizer steps; if positive, it replaces `num_train_epochs`.", -1)
    max_train_time: float | None = option("Minutes after which training stops early and saves.", None, above=0)
    train_batch_size: int | None = option("Maximum pairs in a batch, over all processes.", 64, least=1)
    max_tokens_per_batch: int | None = option(
        "Maximum tokens in a batch: both sides, padding, all processes.", None, least=1
    )
    max_padding: float | None = option("Maximum share of padding in a batch.", None, least=0, below=1)
    gradient_accumulation_steps: int = option("Batches per optimizer step.", 1, least=1)

    optim: Literal["sgd", "adagrad", "adamw"] = option("Optimizer.", "adamw")
    learning_rate: float = option("Peak learning rate.", 1e-3, above=0)
    weight_decay: float = option("Weight decay of matrices, l2 for sgd and adagrad; none on vectors.", 0.0, least=0)
    adam_beta1: float = option("AdamW's decay of the first moment.", 0.9, least=0, below=1)
    adam_beta2: float = option("AdamW's decay of the second moment.", 0.999, least=0, below=1)
    max_grad_norm: float | None = option("Maximum gradient norm; null turns clipping off.", 1.0, above=0)
    loss_normalization: Literal["tokens", "rows"] = option(
        "Divide the gradient of a step's summed loss by target tokens, or by rows as in Sutskever et al. 2014 and Li "
        "et al. 2015; `learning_rate` and `max_grad_norm` refer to that scale.",
        "tokens",
    )
    label_smoothing_factor: float = option(
        "Share of a target's probability that is spread over all words.", 0.0, least=0, below=1
    )
    sampled_softmax: int | None = option(
        "Words sampled per batch that stand for the whole vocabulary in the training loss (Jean et al. 2015); pays "
        "off from 30,000 words. A new model's output bias starts at the words' log frequencies. Null scores all "
        "words, as validation always does.",
        None,
        least=1,
    )
    lr_scheduler_type: Literal[
        "step_halving",
        "constant",
        "constant_with_warmup",
        "linear",
        "cosine",
        "cosine_with_restarts",
        "polynomial",
        "inverse_sqrt",
    ] = option("Learning rate schedule: `step_halving`, or one of transformers.", "linear")
    warmup_steps: int = option("Steps over which the learning rate rises from zero.", 0, least=0)
    halving_start_epoch: float = option("`step_halving`: epochs until the learning rate is first halved.", 3, least=0)
    halving_interval_epochs: float = option("`step_halving`: epochs from one halving to the next.", 3, above=0)
    mixed_precision: Literal["no", "fp16", "bf16"] | None = option("Null follows `accelerate launch`.", None)
    seed: int = option("Seed of the weights, the batches and dropout.", 42, least=0)

    eval_strategy: Literal["epoch", "steps"] = option("Validate after each epoch or each `eval_steps`.", "epoch")
    eval_steps: int | None = option("Steps between validations, for `eval_strategy: steps`.", None, least=1)
    early_stopping_patience: int | None = option("Stop after N validations without a new best.", None, least=1)
    save_steps: int | None = option("Steps between checkpoints, besides the one after each validation.", None, least=1)
    logging_steps: int = option("Steps between entries of the log.", 50, least=1)
    report_to: list[str] = option("Trackers to log to, such as tensorboard or trackio.", factory=list)
    disable_tqdm: bool = option("Show no progress bar.", False)

    def __post_init__(self):
        super().__post_init__()
        self._check_corpora()
        if self.train_batch_size is None and self.max_tokens_per_batch is None:
            raise InputError("`train_batch_size` and `max_tokens_per_batch` are both null: nothing bounds a batch")
        if self.eval_strategy == "steps" and self.eval_steps is None:
            raise InputError("`eval_strategy: steps` needs `eval_steps`")
        if self.sampled_softmax is not None and self.task in ("match", "language_model"):
            raise InputError(f"`sampled_softmax` is for tasks that write words, not `task: {self.task}`")
        if self.sampled_softmax is not None and self.label_smoothing_factor:
            raise InputError("`label_smoothing_factor` needs the scores of all words: leave `sampled_softmax` out")
        if self.warmup_steps and self.lr_scheduler_type in ("step_halving", "constant"):
            raise InputError(f"`lr_scheduler_type: {self.lr_scheduler_type}` has no warm-up; set `warmup_steps` to 0")

    @property
    def corpora(self) -> list[MixedCorpus]:
        """The entries of `mixture`."""
        return read_mixture(self.mixture)

    @property
    def drawn_by(self) -> tuple[str, ...]:
        """The columns by which every epoch draws its rows; none where it has all rows."""
        if self.mixture:
            return ("group", "corpus")
        return () if self.pairs_per_group is None else ("group",)

    def _check_corpora(self):
        if self.mixture:
            for name in CORPUS_FIELDS:
                if getattr(self, name):
                    raise InputError(
                        f"`{name}` is for one corpus: say it in the entries of `mixture`, or leave that out"
                    )
        elif self.dataset is None:
            raise InputError("the field `dataset` is missing; name the corpus to train on, or several in `mixture`")
        for name in ("mixture", "pairs_per_group", "filter_encoder"):
            if getattr(self, name) and self.task not in PAIR_TASKS:
                raise InputError(
                    f"`{name}` is for tasks that learn from pairs ({', '.join(PAIR_TASKS)}), not {self.task}"
                )
        cosines = [self.min_cosine, *(corpus.min_cosine for corpus in self.corpora)]
        if self.filter_encoder is None and cosines.count(None) < len(cosines):
            raise InputError("`min_cosine` needs `filter_encoder`, the sentence encoder whose cosine it bounds")
        if self.filter_encoder is not None and cosines.count(None) == len(cosines):
            raise InputError("`filter_encoder` needs `min_cosine`: pairs of a lower cosine are left out")
        if self.filter_encoder is not None and self.dataset_kwargs.get("streaming"):
            raise InputError("`filter_encoder` keeps its cosines in the cache, a stream keeps nothing: leave one out")


@dataclass(frozen=True, kw_only=True)
class ParaphraseConfig(TrainingConfig):
    """`TrainingConfig` with the objective: the targets' likelihood, or a reward of the outputs."""

    objective: Literal["cross_entropy", "rbm"] = option(
        "`cross_entropy` of the target, or `rbm`: the reward of what the model writes.", "cross_entropy"
    )
    reward: str | None = option(
        "For `rbm`: `rouge`, or the folder or Hub repository of a classifier of sentence pairs.", None
    )
    cross_entropy_weight: float = option("For `rbm`: share of cross-entropy in the loss.", 0.0, least=0, below=1)
    source_prefix: str = option(
        'Prefix of every source, such as "paraphrase: " for T5. The checkpoint keeps it, and generation adds it.',
        "",
    )
    control_tokens: Literal["novelty"] | None = option(
        "`novelty`: a token before each source names the level of its pair's PINC, by which `strength` steers the "
        "model (Bandel et al. 2022). Null: no tokens.",
        None,
    )
    control_edges: list[float] = option(
        "For `control_tokens`: the PINC, from 0 to 1, at which each level but the first begins, in ascending order.",
        factory=lambda: [0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9],
    )
    plain_share: float = option(
        "For `control_tokens`: share of the training examples, drawn anew each epoch, without a token, so that the "
        "model also works without one.",
        0.12,
        least=0,
        below=1,
    )

    def __post_init__(self):
        super().__post_init__()
        edges = self.control_edges
        if not edges or sorted({*edges}) != edges or not 0 < edges[0] <= edges[-1] < 1:
            raise InputError(f"`control_edges` must be numbers between 0 and 1 in ascending order, not {edges}")
        if self.control_tokens and self.task == "adapt":
            raise InputError("`control_tokens` is for tasks that learn from pairs, not `task: adapt`")
        if self.source_prefix and self.task != "paraphrase":
            raise InputError(f"`source_prefix` is for `task: paraphrase`, not `{self.task}`")
        if self.objective == "cross_entropy":
            for name in ("reward", "cross_entropy_weight"):
                if getattr(self, name):
                    raise InputError(f"`{name}` is for `objective: rbm`, not `cross_entropy`")
            return
        if self.reward is None:
            raise InputError("`objective: rbm` needs `reward`: `rouge`, or a classifier of sentence pairs")
        if self.pretrained is None:
            raise InputError("`objective: rbm` fine-tunes a model that writes already: name it in `pretrained`")


@dataclass(frozen=True, kw_only=True)
class AnswerConfig(TrainingConfig):
    """`TrainingConfig` with the prompt of a language model."""

    prompt: str | None = option("YAML file of the prompt to answer; null: the package's, without examples.", None)
    max_prompt_length: int = option("Maximum tokens of a prompt with its text; longer rows are dropped.", 256, least=1)
    packing: bool = option(
        "Put several examples of a batch into a row, up to `max_prompt_length` + `max_target_length` tokens, in place "
        "of padding; none attends to another, and the loss is the same. Batches of like lengths have 1 to 5% of "
        "padding anyway: measured on a CPU, packed steps took 1.2 to 1.6 times as long.",
        False,
    )
    lora: dict[str, Any] | None = option(
        "Train low-rank adapters of `pretrained` in place of its weights (Hu et al. 2022): arguments of peft's "
        "`LoraConfig`, such as {r: 16, lora_alpha: 32, target_modules: all-linear}. The run ends with the merged "
        "model. Null trains all weights.",
        None,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.lora is not None and self.pretrained is None:
            raise InputError("`lora` trains adapters of `pretrained`: name a checkpoint")
        if self.label_smoothing_factor or self.sampled_softmax is not None:
            raise InputError("`label_smoothing_factor` and `sampled_softmax` are not for `task: answer`")
