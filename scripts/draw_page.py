"""Draws the README's picture of the page: docs/page.png.

    python -m scripts.draw_page

Serves the page (mate-tf page), asks its example question in a headless Chromium and takes a
picture of what is seen then. Takes the extras page and test (Playwright), and Chromium or Chrome.
"""

import contextlib
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

from experiments import program
from mate_tf.command_line import arguments
from mate_tf.page.app import build_app, launch

PICTURE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "page.png"
WIDTH, HEIGHT = 1200, 900
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


def draw(address: str, picture: pathlib.Path) -> None:
    """Asks the page's example question and takes a picture of the window."""
    with headless_browser() as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(address)
        page.get_by_role("button", name="Ask", exact=True).click()
        page.wait_for_selector("#result .answer")
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)  # what moves and fades has come to rest
        page.screenshot(path=picture)


def main(_) -> None:
    options = model_options()
    app = build_app(
        arguments.load_model(options, num_alternatives=3), arguments.find_model(options.model)
    )
    try:
        draw(launch(app, "127.0.0.1", None), PICTURE)
    finally:
        app.close(verbose=False)


if __name__ == "__main__":
    model_options = program.define_flags(arguments.add_model)
    program.run(main)
