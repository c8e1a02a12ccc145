"""The demo as people meet it: in a real browser, on a desk and on a phone, by day and by night."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hf_paraphrase.released import RELEASED
from tests.contrast import contrast

pytestmark = pytest.mark.browser

WIDTHS = {"desktop": (1200, 900), "phone": (390, 844)}
ALONE = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
TEXT = "the cat <img src=x onerror=alert()> ${typeof one} sat"
# The colours of every text of the answers, and that of the page.
COLOURS = """() => [document.body, ...document.querySelectorAll(".answer :is(p, dt, dd, summary, th, td)")]
    .map((one, place) => getComputedStyle(one)[place ? "color" : "backgroundColor"])"""


@pytest.fixture(scope="module")
def browser() -> Iterator:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra `test`")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=ALONE)
        yield browser
        browser.close()


def launch(model: str):
    pytest.importorskip("gradio", reason="needs the extra `demo`")
    from hf_paraphrase.serving.demo import launch_demo

    return launch_demo(model, prevent_thread_lock=True, quiet=True)


class Visit:
    """A page of the demo, and what it asked for elsewhere."""

    def __init__(self, browser, app, width: str, scheme: str):
        size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
        self.page = browser.new_page(viewport=size, color_scheme=scheme)
        self.name, self.elsewhere = f"{width}-{scheme}", []
        self.page.on("request", lambda asked: self._note(asked.url, app.local_url))
        self.page.goto(app.local_url)

    def _note(self, asked: str, home: str) -> None:
        if not asked.startswith((home, "data:", "blob:")):
            self.elsewhere.append(asked)

    def ask(self, button: str, **texts: str) -> None:
        for label, text in texts.items():
            self.page.get_by_role("textbox", name=label.replace("_", " ")).fill(text)
        self.page.get_by_role("button", name=button, exact=True).click()

    def keep_picture(self, name: str) -> None:
        """Keep what is seen where a person wants to look at it."""
        if folder := os.environ.get("SCREENSHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}-{self.name}.png", full_page=True)

    def check(self, width: str, scheme: str) -> None:
        """Nothing sticks out, all can be read, the page is as dark as was asked, and nobody else was asked."""
        assert self.page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width][0]
        rgb = [tuple(map(float, re.findall(r"[\d.]+", colour)[:3])) for colour in self.page.evaluate(COLOURS)]
        background, texts = rgb[0], rgb[1:]
        assert (sum(background) < 200) == (scheme == "dark"), background
        assert texts and min(contrast(text, background) for text in texts) >= 4.5
        assert self.elsewhere == []


@pytest.fixture(scope="module")
def editing_app(editor: str) -> Iterator:
    pytest.importorskip("gradio", reason="needs the extra `demo`")
    from hf_paraphrase.serving import demo

    with pytest.MonkeyPatch.context() as patch:  # what random weights write would not pass
        patch.setattr(demo, "LEAST", dict.fromkeys(demo.LEAST, 0.0))
        patch.setattr(demo, "DEFAULT_KEEP", ())
        app = launch(editor)
    yield app
    app.close()


@pytest.fixture(scope="module")
def matching_app(matcher: str) -> Iterator:
    app = launch(matcher)
    yield app
    app.close()


@pytest.mark.parametrize(("width", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_paraphrases_and_edits(browser, editing_app, width: str, scheme: str) -> None:
    visit = Visit(browser, editing_app, width, scheme)
    visit.ask("Paraphrase", Text=TEXT)
    visit.page.wait_for_selector(".answer details[open] td", timeout=60_000)
    assert visit.page.locator(".answer img").count() == 0
    assert visit.page.locator(".answer details:has(.heat-map)").count() == 3
    assert set(visit.page.locator(".before").all_text_contents()) == {TEXT}
    visit.keep_picture("edit")
    visit.check(width, scheme)
    visit.page.close()


@pytest.fixture(scope="module")
def released_app() -> Iterator:
    app = launch(RELEASED)
    yield app
    app.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_clicked_word_shows_others(browser, released_app, width: str, scheme: str) -> None:
    visit = Visit(browser, released_app, width, scheme)
    visit.page.get_by_text("Most people who tried the new recipe").click()
    visit.ask("Paraphrase")
    word = visit.page.locator(".answer .word").first
    word.wait_for(timeout=60_000)
    assert not word.locator(".others").is_visible()
    word.click()
    assert word.locator(".others").is_visible()
    visit.keep_picture("paraphrases")
    visit.check(width, scheme)
    visit.page.close()


def test_a_blank_text_is_told_in_a_box(browser, editing_app) -> None:
    visit = Visit(browser, editing_app, "phone", "light")
    visit.ask("Paraphrase", Text=" ")
    visit.page.get_by_text("Enter a text first.").wait_for(timeout=60_000)
    assert visit.page.locator(".answer p").count() == 0
    visit.page.close()


@pytest.mark.parametrize(("width", "scheme"), [("phone", "light"), ("desktop", "dark")])
def test_a_match_and_its_heat_map(browser, matching_app, width: str, scheme: str) -> None:
    visit = Visit(browser, matching_app, width, scheme)
    visit.ask("Match", First_sentence="a b ${typeof one}", Second_sentence="c d e")
    visit.page.wait_for_selector(".heat-map td", timeout=60_000)
    words = visit.page.locator(".heat-map th.column").all_inner_texts()
    assert words[-1] == "</s>" and len(words) == 4
    visit.page.get_by_label("Unit").click()
    visit.page.get_by_role("option", name="2", exact=True).click()
    visit.ask("Match")
    visit.page.get_by_role("heading", name="Unit 2").wait_for(timeout=60_000)
    visit.keep_picture("match")
    visit.check(width, scheme)
    visit.page.close()
