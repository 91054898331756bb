"""Draws the documentation's pictures of the page: docs/page.png and docs/page_phone.png.

    python -m scripts.draw_page

Serves the page (mate-tf page) with the default model, and takes pictures in a headless Chromium: of
its example on a wide window, and of an answer that is not sure on a dark phone. Takes the extras
page and test (Playwright), Chromium or Chrome, and the font Inter (scripts/install_chromium.sh).
"""

import contextlib
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

from experiments import program
from mate_tf.command_line import arguments
from mate_tf.page.app import serving

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextlib.contextmanager
def headless_browser() -> Iterator[Any]:
    """A Playwright browser without a window, closed at the end.

    Raises:
        FileNotFoundError: if there is no Chromium or Chrome.
        ModuleNotFoundError: without playwright.
    """
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if program is None:
        raise FileNotFoundError(f"expected one of {', '.join(_BROWSERS)} on PATH, found none")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


def draw(address: str, folder: pathlib.Path) -> None:
    """Takes the pictures of the page at an address."""
    with headless_browser() as browser:
        for name, width, height, scheme, question in (
            ("page.png", 1200, 830, "light", ""),
            ("page_phone.png", 400, 860, "dark", "which mission brought back the most samples?"),
        ):
            window = {"width": width, "height": height}
            page = browser.new_page(viewport=window, color_scheme=scheme)
            page.set_default_timeout(240_000)
            page.goto(address)
            page.wait_for_selector("#result .answer")
            if question:
                page.get_by_label("Question").fill(question)
                page.keyboard.press("Enter")
                page.wait_for_selector("#result .not-sure")
            page.locator("#look").click()
            page.wait_for_selector("#result .views")
            if question:
                page.evaluate("document.activeElement.blur()")
            page.mouse.move(0, 0)
            page.wait_for_timeout(1000)  # what moves and fades has come to rest
            page.screenshot(path=folder / name)
            page.close()


def main(_) -> None:
    options = model_options()
    predictor = arguments.load_model(options, num_alternatives=3)
    with serving(predictor, arguments.find_model(options.model), "127.0.0.1") as address:
        draw(address, DOCS)


if __name__ == "__main__":
    model_options = program.define_flags(arguments.add_model)
    program.run(main)
