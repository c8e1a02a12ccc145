"""Fine-tuning any sequence-to-sequence checkpoint, with its own tokenizer and a prefix."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from datasets import Dataset, DatasetDict
from tokenizers import processors
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    MarianConfig,
    MarianMTModel,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PreTrainedTokenizerFast,
    pipeline,
)

from hf_paraphrase.common.errors import InputError
from hf_paraphrase.generation.engine import compute_perplexity, generate_paraphrases
from hf_paraphrase.models.text.encoded_inputs import keep_prefix, read_prefix
from hf_paraphrase.training.arguments import ParaphraseConfig
from hf_paraphrase.training.loop import train
from hf_paraphrase.training.recipe import load_recipe
from hf_paraphrase.training.tasks.edit import EditConfig
from hf_paraphrase.training.tasks.paraphrase import ParaphraseTask
from tests.models.tiny import WORDS, save, tiny_bart, tiny_t5, word_tokenizer
from tests.training.tasks.test_paraphrase import encode_pairs

SOURCES = ["how do i learn faster ?", "the cat sat on the mat", "can you make bread", "a dog"]
PAIRS = DatasetDict(
    {
        split: Dataset.from_dict({"source": SOURCES * 3, "target": [*SOURCES[1:], SOURCES[0]] * 3})
        for split in ("train", "validation")
    }
)
SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
SIZES |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "vocab_size": len(WORDS), "init_std": 1.0}
# As their checkpoints have them: no start of a text, padding or the end first in the decoder.
NO_START = {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0, "max_position_embeddings": 64}


def tiny_marian():
    return MarianMTModel(MarianConfig(**SIZES, **NO_START, forced_eos_token_id=None))


def tiny_pegasus():
    return PegasusForConditionalGeneration(PegasusConfig(**SIZES, **NO_START, forced_eos_token_id=None))


CHECKPOINTS = {"t5": tiny_t5, "bart": tiny_bart, "marian": tiny_marian, "pegasus": tiny_pegasus}


def startless_tokenizer() -> PreTrainedTokenizerFast:
    """As those of T5, Marian and Pegasus: it has no token that starts a text."""
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=word_tokenizer().backend_tokenizer, **special)


def write_recipe(folder, checkpoint, *lines: str):
    """A recipe that holds nothing but its `training.yaml`."""
    folder.mkdir()
    settings = ["dataset: pairs", f"pretrained: {checkpoint}", "disable_tqdm: true", "learning_rate: 0.01", *lines]
    (folder / "training.yaml").write_text("\n".join(settings) + "\n")
    return load_recipe(folder)


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_any_checkpoint_is_fine_tuned_with_its_own_tokenizer(kind, tmp_path):
    torch.manual_seed(0)
    tokenizer = word_tokenizer() if kind == "bart" else startless_tokenizer()
    checkpoint = save(CHECKPOINTS[kind](), tmp_path / "checkpoint", tokenizer)
    lines = ("num_train_epochs: 16", "lr_scheduler_type: constant", 'source_prefix: "make bread: "')
    summary = train(write_recipe(tmp_path / "recipe", checkpoint, *lines), tmp_path / "run", dataset=PAIRS)
    assert summary["model_type"] == kind
    assert summary["best_cost"] < 0.9 * summary["evaluations"][0]["eval_loss"]
    model, tuned = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run"), AutoTokenizer.from_pretrained(checkpoint)
    before = AutoModelForSeq2SeqLM.from_pretrained(checkpoint)
    assert model.config.decoder_start_token_id == before.config.decoder_start_token_id
    assert tuned.get_vocab() == tokenizer.get_vocab()
    # The pipeline and the engine each put the prefix there by themselves.
    asked = {"max_new_tokens": 8, "num_beams": 1}
    records = pipeline("text2text-generation", str(tmp_path / "run"))(SOURCES, **asked)
    written = [record["generated_text"] for record in records]
    assert written == generate_paraphrases(model, tokenizer, SOURCES, **asked)
    bare = copy.deepcopy(model)
    keep_prefix(bare.config, "")
    by_hand = [f"make bread: {source}" for source in SOURCES]
    assert written == generate_paraphrases(bare, tokenizer, by_hand, **asked)
    known, told, untold = (
        compute_perplexity(*case, SOURCES)
        for case in ((model, tokenizer, SOURCES), (bare, tokenizer, by_hand), (bare, tokenizer, SOURCES))
    )
    assert known == told != untold


def test_a_resumed_run_keeps_the_prefix_and_another_recipe_drops_it(tmp_path):
    checkpoint = save(tiny_t5(), tmp_path / "checkpoint")
    recipe = write_recipe(tmp_path / "recipe", checkpoint, "max_steps: 1", 'source_prefix: "a dog: "')
    train(recipe, tmp_path / "run", dataset=PAIRS)
    (tmp_path / "run" / "training_summary.json").unlink()
    train(recipe, tmp_path / "run", dataset=PAIRS, resume=True)
    assert read_prefix(AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run").config) == "a dog: "
    train(write_recipe(tmp_path / "next", tmp_path / "run", "max_steps: 1"), tmp_path / "without", dataset=PAIRS)
    assert read_prefix(AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "without").config) == ""


def test_prefixes_of_other_tasks_stay():
    config = tiny_t5().config
    config.task_specific_params = {
        "summarization": {"prefix": "summarize: "},
        "text2text-generation": {"num_beams": 2},
    }
    config.prefix = "translate: "
    assert read_prefix(config) == "translate: "
    keep_prefix(config, "paraphrase: ")
    assert read_prefix(config) == "paraphrase: " and read_prefix(config, "summarization") == "summarize: "
    assert config.task_specific_params["text2text-generation"] == {"num_beams": 2, "prefix": "paraphrase: "}


def test_sources_have_the_prefix_and_empty_ones_are_left_out():
    tokenizer = word_tokenizer()
    rows = Dataset.from_dict({"source": ["the cat", " "], "target": ["a dog", "a dog"]})
    encoded = encode_pairs(rows, tokenizer, 10, 10, source_prefix="make bread ")
    assert encoded["input_ids"][:] == tokenizer(["make bread the cat"])["input_ids"]
    assert encoded["labels"][:] == tokenizer(["a dog"])["input_ids"]


def test_targets_are_read_as_targets():
    """A tokenizer of Marian's kind has a vocabulary for each side."""

    class TwoSided(PreTrainedTokenizerFast):
        def _switch_to_target_mode(self):
            self.backend_tokenizer.post_processor = processors.TemplateProcessing(
                single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
            )

        def _switch_to_input_mode(self):
            self.backend_tokenizer.post_processor = word_tokenizer().backend_tokenizer.post_processor

    tokenizer = TwoSided(tokenizer_object=word_tokenizer().backend_tokenizer, pad_token="<pad>", eos_token="</s>")
    encoded = encode_pairs(Dataset.from_dict({"source": ["cat"], "target": ["cat"]}), tokenizer, 10, 10)
    cat = WORDS.index("cat")
    assert encoded[0] == {"input_ids": [cat, 2], "labels": [1, cat, 2]}


def test_a_reward_reads_sources_without_the_prefix(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "hf_paraphrase.training.tasks.paraphrase.load_reward",
        lambda name, trust_remote_code: lambda sources, targets, outputs: seen.extend(sources) or [0.0] * len(outputs),
    )
    fields = {"objective": "rbm", "reward": "x", "pretrained": "y", "source_prefix": "make bread "}
    task = ParaphraseTask(ParaphraseConfig(dataset="d", **fields))
    tokenizer, model = word_tokenizer(), tiny_t5()
    data = task.encode(DatasetDict(train=PAIRS["train"].select(range(2))), tokenizer)
    batch = task.make_collator(tokenizer)(list(data.splits["train"]))
    task._policy_gradient(data).greedy_rewards(model, batch)
    assert seen == SOURCES[:2]


def test_a_prefix_is_for_paraphrasing_alone():
    with pytest.raises(InputError, match="`source_prefix` is for `task: paraphrase`, not `edit`"):
        EditConfig(dataset="quora", source_prefix="paraphrase: ")


def test_without_a_checkpoint_to_start_from_the_files_are_needed(tmp_path):
    (tmp_path / "training.yaml").write_text("dataset: quora\n")
    with pytest.raises(FileNotFoundError, match="lacks config.json"):
        load_recipe(tmp_path)
    with pytest.raises(InputError, match="`pretrained`: .*nowhere cannot be loaded"):
        write_recipe(tmp_path / "recipe", tmp_path / "nowhere")


@pytest.mark.parametrize(("name", "kind"), [("t5-small-quora", "t5"), ("bart-base-quora", "bart")])
def test_the_recipes_take_any_checkpoint_of_their_kind(name, kind, tmp_path):
    checkpoint = save(CHECKPOINTS[kind](), tmp_path / "checkpoint")
    recipe = load_recipe(name).override({"pretrained": checkpoint, "max_steps": 2, "disable_tqdm": True})
    train(recipe, tmp_path / "run", dataset=PAIRS)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["model_type"], config["d_model"], config["vocab_size"]) == (kind, 16, len(WORDS))
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "run")
    assert read_prefix(model.config) == {"t5": "paraphrase: ", "bart": ""}[kind]
    assert (model.generation_config.num_beams, model.generation_config.max_new_tokens) == (5, 40)
