"""The model that comes with the package makes a repository that transformers alone can load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hf_paraphrase.released import RELEASED
from hf_paraphrase.released.packing import pack
from tests.models.tiny import save, tiny_bart

RELEASE = """
from pathlib import Path
from hf_paraphrase import released
released.RELEASED_FOLDER = Path({folder!r})
"""
ALONE = """
import sys
sys.modules["hf_paraphrase"] = None  # as where it is not installed
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained("you/small"), AutoTokenizer.from_pretrained("you/small")
inputs = tokenizer("how do i learn faster ?", return_tensors="pt")
print(model.generate(inputs["input_ids"], max_new_tokens=4).shape)
"""


def test_it_is_pushed_by_its_name(client, server, tmp_path: Path) -> None:
    checkpoint, card = Path(save(tiny_bart(), tmp_path / "checkpoint")), tmp_path / "card.md"
    card.write_text("---\nlicense: cc-by-sa-4.0\n---\nA small one.\n", encoding="utf-8")
    pack(checkpoint, tmp_path / "packed", card)
    client.python(RELEASE.format(folder=str(tmp_path / "packed")))
    answer = client("push", RELEASED, "--repo-id", "you/small")
    assert answer.status == 0, answer
    files = server.repository("you/small").files()
    assert files.keys() >= {"model.safetensors", "config.json", "generation_config.json", "tokenizer.json"}
    assert files["README.md"].content == card.read_bytes()
    assert len(files["tokenizer.json"].content) == (checkpoint / "tokenizer.json").stat().st_size
    environment = {"HF_ENDPOINT": server.endpoint, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
    environment |= {"HF_HUB_DISABLE_XET": "1", "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-P", "-c", ALONE],
        env={**os.environ, **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "torch.Size([1, " in done.stdout, done.stderr
