from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from ..errors import InputError
from .fields import check_known, check_type

if TYPE_CHECKING:
    from .mixture import MixedCorpus

__all__ = ["CORPUS_FIELDS", "ParaphraseConfig", "TrainingConfig"]

# What says of a recipe with one corpus which that is.
CORPUS_FIELDS = ("dataset", "dataset_name", "dataset_kwargs")
# Tasks that learn from pairs of a source and a target.
PAIR_TASKS = ("paraphrase", "edit", "decompose")


def _option(help: str, default: Any = MISSING, factory: Any = MISSING) -> Any:
    return field(default=default, default_factory=factory, metadata={"help": help})


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How to train: the fields of `training.yaml`, spelt as `transformers.TrainingArguments` spells those it has.

    The `metadata["help"]` of each field says what it does.

    Raises:
        InputError: For a value of the wrong type or outside its range, with the field's name.
    """

    task: str = _option(
        "What is learnt: `paraphrase`, `edit` (by a retrieved pair), `decompose` (by levels), `adapt` (their "
        "phrases), `match`, `autoencode` or `language_model`.",
        "paraphrase",
    )
    dataset: str | None = _option(
        "Corpus, one of `hf_paraphrase.list_datasets()`, or what `load_dataset` takes beside them; null where there "
        "is a `mixture`.",
        None,
    )
    dataset_name: str | None = _option("Configuration of the corpus, where it has several.", None)
    dataset_kwargs: dict[str, Any] = _option("Further arguments of the corpus builder.", factory=dict)
    data_dir: str | None = _option(
        "Folder with the corpus's published files; null downloads them, where their address is open.", None
    )
    mixture: list[dict[str, Any]] = _option(
        "Several corpora in place of one: a list of entries with `dataset`, `dataset_name`, `dataset_kwargs`, "
        "`data_dir`, `share` (of every epoch, in proportion to the others), `name` and `licence` (for log and card) "
        "and `min_cosine`. Relative folders and files start at `data_dir`.",
        factory=list,
    )
    pairs_per_group: int | None = _option(
        "Pairs of each group that every epoch draws anew, where the corpus has a column `group`; null takes all.", None
    )
    filter_encoder: str | None = _option(
        "Sentence encoder by whose cosine pairs are left out; a folder or Hub repository. The cosines are kept in the "
        "cache of datasets.",
        None,
    )
    min_cosine: float | None = _option("For `filter_encoder`: pairs of a lower cosine are left out.", None)
    pretrained: str | None = _option("Checkpoint whose weights and tokenizer to start from; null to start anew.", None)
    ignore_mismatched_sizes: bool = _option(
        "Weights of `pretrained` that do not fit this model's sizes start anew.", False
    )
    tokenizer: str | None = _option(
        "Pretrained tokenizer; if null, that of `pretrained`, or one trained on the train split.", None
    )
    tokenizer_model: Literal["word", "bpe", "unigram"] = _option(
        "Kind of a tokenizer trained here: whole words, or sub-words, as `train_tokenizer` makes them.", "word"
    )
    lowercase: bool = _option("Lower-case what a tokenizer trained here reads.", True)
    max_source_length: int = _option("Most tokens of a source, its end token included; longer ones are cut.", 64)
    max_target_length: int = _option("Most tokens of a target, its end token included; longer ones are cut.", 64)
    max_train_samples: int | None = _option("Train on the first so many pairs only.", None)
    shuffle_buffer_size: int = _option(
        "Of a corpus with `streaming: true` in `dataset_kwargs`: rows read at a time, which are shuffled and put into "
        "batches of like lengths; a tokenizer trained here learns from the first of them.",
        20_000,
    )
    max_eval_samples: int | None = _option("Validate on the first so many pairs only.", None)

    num_train_epochs: float = _option("Passes over the training pairs.", 10)
    max_steps: int = _option("Optimizer steps; if positive, it replaces `num_train_epochs`.", -1)
    max_train_time: float | None = _option("Minutes after which training ends early, in good order.", None)
    train_batch_size: int | None = _option("Most pairs in a batch, over all processes.", 64)
    max_tokens_per_batch: int | None = _option("Most tokens in a batch: both sides, padding, all processes.", None)
    max_padding: float | None = _option(
        "Largest share of a batch's tokens that is padding, such as 0.05: a batch ends before there is more.", None
    )
    gradient_accumulation_steps: int = _option("Batches that make one optimizer step.", 1)

    optim: Literal["sgd", "adagrad", "adamw"] = _option("Optimizer.", "adamw")
    learning_rate: float = _option("Highest learning rate.", 1e-3)
    weight_decay: float = _option("Weight decay of matrices, l2 for sgd and adagrad; vectors have none.", 0.0)
    adam_beta1: float = _option("AdamW's decay of the first moment.", 0.9)
    adam_beta2: float = _option("AdamW's decay of the second moment.", 0.999)
    max_grad_norm: float | None = _option("Longer gradients are scaled down to this norm; null leaves them.", 1.0)
    loss_normalization: Literal["tokens", "rows"] = _option(
        "What the gradient of a step's summed loss is divided by: target tokens, or rows, as the recipes of Sutskever "
        "et al. 2014 and Li et al. 2015 do; `learning_rate` and `max_grad_norm` mean that scale.",
        "tokens",
    )
    label_smoothing_factor: float = _option("Part of the target's probability spread over all words.", 0.0)
    sampled_softmax: int | None = _option(
        "Words drawn for each batch that stand for the whole vocabulary in the training loss (Jean et al. 2015): pays "
        "from 30,000 words on. A new model's output bias starts at the words' log frequencies. Null scores all words, "
        "as validation always does.",
        None,
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
    ] = _option("How the learning rate changes: `step_halving`, or a schedule of transformers.", "linear")
    warmup_steps: int = _option("Steps in which the learning rate rises from zero.", 0)
    halving_start_epoch: float = _option("`step_halving`: epochs until the learning rate is first halved.", 3)
    halving_interval_epochs: float = _option("`step_halving`: epochs from one halving to the next.", 3)
    mixed_precision: Literal["no", "fp16", "bf16"] | None = _option("Null: what `accelerate launch` says.", None)
    torch_compile: bool = _option(
        "Compile the model by `torch.compile`, which takes minutes at first. On a CPU it did not pay: a step of "
        "transformer-quora-small takes 1.23 times as long by it, one of residual-lstm-quora-small 1.02 times.",
        False,
    )
    torch_compile_backend: Literal["inductor", "cudagraphs", "aot_eager", "eager"] = _option(
        "What `torch_compile` makes kernels with; the last two only trace, to see whether a model can be compiled.",
        "inductor",
    )
    seed: int = _option("Seed of the weights, the batches and dropout.", 42)

    eval_strategy: Literal["epoch", "steps"] = _option("Validate after each epoch or each `eval_steps`.", "epoch")
    eval_steps: int | None = _option("Steps from one validation to the next, for `eval_strategy: steps`.", None)
    early_stopping_patience: int | None = _option("End after so many validations without a new best.", None)
    save_steps: int | None = _option("Steps between checkpoints, beside the one after each validation.", None)
    logging_steps: int = _option("Steps between entries of the log.", 50)
    report_to: list[str] = _option("Trackers that get the log, such as tensorboard or trackio.", factory=list)
    disable_tqdm: bool = _option("Show no progress bar.", False)

    def __post_init__(self):
        for name, expected in get_type_hints(type(self)).items():
            check_type(name, getattr(self, name), expected)
        self._check_ranges()
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
        from .mixture import read_mixture  # loads datasets, which no help text needs

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
            raise InputError("`min_cosine` needs `filter_encoder`, which says what it is the cosine of")
        if self.filter_encoder is not None and cosines.count(None) == len(cosines):
            raise InputError("`filter_encoder` needs `min_cosine`: pairs of a lower cosine are left out")
        if self.filter_encoder is not None and self.dataset_kwargs.get("streaming"):
            raise InputError("`filter_encoder` keeps its cosines in the cache, a stream keeps nothing: leave one out")

    def _check_ranges(self):
        at_least_one = (
            "pairs_per_group",
            "max_source_length",
            "max_target_length",
            "max_train_samples",
            "shuffle_buffer_size",
            "max_eval_samples",
            "train_batch_size",
            "max_tokens_per_batch",
            "gradient_accumulation_steps",
            "eval_steps",
            "early_stopping_patience",
            "save_steps",
            "logging_steps",
            "sampled_softmax",
        )
        for name in at_least_one:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"`{name}` must be at least 1, not {value}")
        positive = ("num_train_epochs", "max_train_time", "learning_rate", "max_grad_norm", "halving_interval_epochs")
        for name in positive:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"`{name}` must be greater than 0, not {value}")
        for name in ("weight_decay", "warmup_steps", "halving_start_epoch", "seed"):
            if not getattr(self, name) >= 0:
                raise InputError(f"`{name}` must not be negative, as {getattr(self, name)} is")
        for name in ("adam_beta1", "adam_beta2", "label_smoothing_factor", "max_padding"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise InputError(f"`{name}` must be in [0, 1), not {getattr(self, name)}")
        if self.min_cosine is not None and not -1 <= self.min_cosine <= 1:
            raise InputError(f"`min_cosine` must be from -1 to 1, not {self.min_cosine}")

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str) -> TrainingConfig:
        """Take over the fields of a recipe.

        Args:
            values: Field names and values.
            source: The file they come from, for messages.

        Raises:
            InputError: For a field that is unknown, missing or of a wrong value.
        """
        check_known(values, (option.name for option in fields(cls)), source)
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class ParaphraseConfig(TrainingConfig):
    """As `TrainingConfig`, with what is optimised: the targets' likelihood, or a reward of the outputs."""

    objective: Literal["cross_entropy", "rbm"] = _option(
        "`cross_entropy` of the target, or `rbm`: the reward of what the model writes.", "cross_entropy"
    )
    reward: str | None = _option(
        "For `rbm`: `rouge`, or the folder or Hub repository of a classifier of sentence pairs.", None
    )
    cross_entropy_weight: float = _option("For `rbm`: the part of the loss that stays cross-entropy, below 1.", 0.0)
    source_prefix: str = _option(
        'What stands before every source, such as "paraphrase: " for T5; the checkpoint keeps it, and whatever writes '
        "with the model puts it there.",
        "",
    )

    def __post_init__(self):
        super().__post_init__()
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
        if not 0 <= self.cross_entropy_weight < 1:
            raise InputError(f"`cross_entropy_weight` must be in [0, 1), not {self.cross_entropy_weight}")
