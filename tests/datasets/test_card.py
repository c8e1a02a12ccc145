from __future__ import annotations

import datasets
import pytest
from huggingface_hub import DatasetCard

import hf_paraphrase
from hf_paraphrase.common.errors import InputError
from hf_paraphrase.datasets import card as card_module
from hf_paraphrase.datasets import dataset_card, list_datasets, push_to_hub
from hf_paraphrase.datasets.loading import find_builder
from tests.datasets.corpora import quora, write


@pytest.mark.parametrize("name", list_datasets())
def test_every_corpus_has_a_whole_card(name):
    card = hf_paraphrase.dataset_card(name)
    for topic in ("About", "Source", "Layout", "Columns", "Splits", "Licence", "Citation", "Use"):
        assert card.text.count(f"\n## {topic}\n\n") == 1, f"{name} lacks {topic}"
    assert ("\n## Configurations\n" in card.text) == (len(find_builder(name).builder_configs) > 1)
    assert f'hf_paraphrase.load_dataset("{name}"' in card.text
    assert card.data.license and card.data.task_categories and card.data.pretty_name == name
    # What is written can be read back.
    assert DatasetCard(str(card)).data.to_dict() == card.data.to_dict()


def test_card_has_docstring_and_text(tmp_path, monkeypatch):
    monkeypatch.setattr(find_builder("msrp"), "__doc__", "First.\n\n    More of it.")
    monkeypatch.setattr(card_module, "CARDS", tmp_path)
    (tmp_path / "msrp.md").write_text("## Source\n\nHere.\n\nAnd there.\n\n## Licence\n\nFree.\n")
    text = dataset_card("msrp").text
    about, source = "## About\n\nFirst.\n\nMore of it.", "## Source\n\nHere.\n\nAnd there."
    assert f"{about}\n\n{source}\n\n## Licence\n\nFree.\n\n## Use" in text
    assert "| `validation_size` | `400` | Pairs to validate on. |" in text


def test_the_card_says_what_happens_without_a_folder():
    assert "Without `data_dir` it is downloaded from <http://images.cocodataset.org/ann" in dataset_card("mscoco").text
    assert "the Hub: `load_dataset('stanfordnlp/snli', " in dataset_card("snli").text
    assert "It cannot be downloaded: Yahoo! Webscope gives" in dataset_card("yahoo_answers").text
    assert "downloaded" not in dataset_card("pairs").text + dataset_card("synthetic_questions").text


def test_a_user_s_own_files_have_no_known_language_and_the_repository_s_name():
    assert dataset_card("quora").data.language == "en"
    card = dataset_card("pairs", "fragen")
    assert (card.data.language, card.data.pretty_name) == (None, "fragen")
    assert "\n# fragen\n" in str(card)


def test_unknown_corpus():
    with pytest.raises(InputError, match="did you mean quora"):
        dataset_card("qora")


class FakeHub:
    """Stands for the Hub, and notes what is asked of it in order."""

    def __init__(self, has_card: bool):
        self.has_card = has_card
        self.calls: list[str] = []

    def __call__(self, token: str | None) -> FakeHub:
        assert token == "secret"
        return self

    def create_repo(self, repo_id: str, repo_type: str, private: bool | None, exist_ok: bool) -> str:
        assert (repo_id, repo_type, private, exist_ok) == ("me/quora", "dataset", True, True)
        self.calls.append("repository")
        return "https://hub/me/quora"

    def file_exists(self, repo_id: str, filename: str, repo_type: str) -> bool:
        return self.has_card


@pytest.mark.parametrize("has_card", [False, True])
def test_push_keeps_a_card_that_is_there(has_card, tmp_path, monkeypatch):
    hub = FakeHub(has_card)
    pushed = {}

    def push_rows(rows, repo_id, config_name, token):
        hub.calls.append("rows")
        pushed.update({split: (part.num_rows, part.column_names) for split, part in rows.items()}, config=config_name)

    monkeypatch.setattr(card_module, "HfApi", hub)
    monkeypatch.setattr(DatasetCard, "push_to_hub", lambda *args, **kwargs: hub.calls.append("card"))
    monkeypatch.setattr(datasets.DatasetDict, "push_to_hub", push_rows)
    folder = write(tmp_path, quora())
    url = push_to_hub("quora", "me/quora", "clean", private=True, token="secret", data_dir=folder, test_size=10)
    assert url == "https://hub/me/quora"
    assert hub.calls == ["repository", *([] if has_card else ["card"]), "rows"]
    assert pushed.pop("config") == "clean"
    # The Hub wants the same columns in every split.
    assert {tuple(names) for _, names in pushed.values()} == {("source", "target", "references")}
    assert pushed["test"][0] == 1
