"""Checkpoints that write a file, the canary, as soon as anything of them runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch

from hf_paraphrase.models.residual_lstm.configuration_residual_lstm import ResidualLstmConfig
from hf_paraphrase.models.residual_lstm.modeling_residual_lstm import ResidualLstmForConditionalGeneration
from tests.models.tiny import save, tiny_bart, tiny_matcher, tiny_model

AUTO_CLASSES = ("AutoConfig", "AutoModel", "AutoModelForSeq2SeqLM", "AutoModelForSequenceClassification")
AUTO_CLASSES += ("AutoModelForCausalLM",)
# transformers knows the tokenizers of BART, and then leaves those of the checkpoint alone; ours can have any.
DEFAULTS = {"tokenizer": lambda: tiny_model(ResidualLstmConfig, ResidualLstmForConditionalGeneration)}
DEFAULTS["pickle"] = tiny_bart
DEFAULTS["nested"] = tiny_bart
# Those that are a classifier of an unknown or of a known type; the others are models that are asked for.
CLASSIFIERS = ("unknown", "known")
KINDS = (*CLASSIFIERS, "tokenizer", "pickle", "nested")


class _Pickled:
    """Opens a file when it is read from a pickle."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return open, (os.fspath(self.path), "w")


def make_hostile(folder: Path, canary: Path, kind: str, model=None) -> Path:
    """Make a checkpoint that runs code, unless nobody lets it.

    Args:
        folder: Where to make it.
        canary: The file that its code writes.
        kind: "unknown", of a model type that transformers has not; "known", of one that it has, but not with the
            head that is asked for; "tokenizer", whose tokenizer alone has code; "pickle", with weights of a program;
            "nested", whose code is named by the configuration inside of its configuration.
        model: For the kinds that are not classifiers, the model.
    """
    save(tiny_matcher(2) if kind in CLASSIFIERS else model or DEFAULTS[kind](), folder)
    (folder / "evil.py").write_text(
        f"open({str(canary)!r}, 'w').close()\n"
        "from transformers import BertConfig, BertModel, PreTrainedTokenizerFast\n"
        "class Config(BertConfig):\n    model_type = 'evil'\n"
        "class Model(BertModel):\n    config_class = Config\n"
        "class Tokenizer(PreTrainedTokenizerFast):\n    pass\n"
    )
    if kind in CLASSIFIERS:
        auto_map = {name: "evil.Config" if name == "AutoConfig" else "evil.Model" for name in AUTO_CLASSES}
        pipelines = {"text-classification": {"impl": "evil.Model", "pt": ["AutoModel"], "type": "text"}}
        change_json(
            folder / "config.json",
            model_type="evil" if kind == "unknown" else "bert",
            auto_map=auto_map,
            custom_pipelines=pipelines,
        )
    if kind == "nested":
        # transformers passes `trust_remote_code` to the outer model only. A decoder of a type that it has no language
        # model of makes it ask for the code.
        decoder = {"model_type": "t5", "auto_map": {"AutoModelForCausalLM": f"{folder}--evil.Model"}}
        config = {
            "model_type": "encoder-decoder",
            "architectures": ["EncoderDecoderModel"],
            "is_encoder_decoder": True,
        }
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 20}
        config |= {"is_encoder_decoder": True, "encoder": {"model_type": "bert", **sizes}, "decoder": decoder}
        (folder / "config.json").write_text(json.dumps(config))
    elif kind == "pickle":
        (folder / "model.safetensors").unlink()
        torch.save({"model.shared.weight": _Pickled(canary)}, folder / "pytorch_model.bin")
    else:
        change_json(
            folder / "tokenizer_config.json",
            auto_map={"AutoTokenizer": ["evil.Tokenizer", None]},
            tokenizer_class="Evil",
        )
        (folder / "custom_generate").mkdir()
        (folder / "custom_generate" / "generate.py").write_text((folder / "evil.py").read_text())
    return folder


def change_json(path: Path, **values) -> None:
    """Set fields of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
