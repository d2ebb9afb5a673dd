"""The page in a real browser, from disk, with the network off."""

import csv
import io
import re
import shutil

import pytest

from tests.report.conftest import LONG

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


class Opened:
    """A page, with all that it asked for and all that it complained about."""

    def __init__(self, browser, path, width=1280):
        self.context = browser.new_context(
            offline=True, viewport={"width": width, "height": 900}, accept_downloads=True
        )
        self.page = self.context.new_page()
        self.asked, self.complaints = [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda line: self.complaints.append(line.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message) or dialog.dismiss())
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]", timeout=60_000)

    def hover(self, locator):
        locator.scroll_into_view_if_needed()
        box = locator.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x + 1, y + 1)
        self.page.mouse.move(x, y)
        return x, y

    def click(self, locator):
        self.page.mouse.click(*self.hover(locator))

    def cells(self, column):
        return self.page.locator(f"#feature-table tbody td:nth-child({column})").all_text_contents()

    def check(self):
        assert self.complaints == []
        assert [url[:80] for url in self.asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.fixture(scope="module")
def quiet(browser, tame):
    """The tame report, opened once: each test leaves it usable for the next."""
    opened = Opened(browser, tame[1])
    yield opened
    opened.context.close()


def test_it_opens_and_draws_without_a_network(quiet):
    drawn = quiet.page.locator(".canvas:has(.main-svg)").count()
    assert drawn == quiet.page.locator(".canvas").count() == 11
    assert quiet.page.locator("#in-short").is_visible()
    assert not quiet.page.locator("img.still").first.is_visible()
    quiet.check()


def test_the_table_sorts_and_says_so(quiet, tame):
    head = quiet.page.locator('#feature-table th[data-key="frequency"]')
    head.locator("button").focus()
    quiet.page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    shown = [int(re.sub(r"\D", "", text)) for text in quiet.cells(4)]
    assert shown == sorted(shown, reverse=True)
    assert shown[0] == 100
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert {text.split()[0] for text in quiet.cells(4)} == {"0"}
    quiet.page.locator('#feature-table th[data-key="feature"] button').click()
    assert quiet.cells(2)[:3] == ["GENE0", "GENE1", "GENE2"]
    assert head.get_attribute("aria-sort") == "none"
    quiet.page.locator('#feature-table th[data-key="rank"] button').click()
    assert quiet.cells(2) == list(tame[0].features["feature"][:25])
    quiet.check()


def test_the_table_is_searched_and_turned(quiet):
    quiet.page.locator("#search").fill("gene1999")
    assert sorted(quiet.cells(2)) == sorted(["GENE1999", *(f"GENE1999{i}" for i in range(10))])
    quiet.page.locator("#search").fill("no such thing")
    assert quiet.cells(2) == []
    assert "no feature" in quiet.page.locator("#shown").text_content()
    quiet.page.locator("#search").fill("")
    quiet.page.locator("#next").click()
    assert quiet.page.locator("#shown").text_content() == "26 to 50 of 20,000"
    assert quiet.cells(1)[0] == "26"
    quiet.page.locator("#only-selected").check()
    assert quiet.page.locator("#shown").text_content() == "1 to 25 of 30"
    quiet.page.locator("#only-selected").uncheck()
    quiet.check()


def test_a_sample_is_named_on_hover(quiet, tame):
    quiet.hover(quiet.page.locator('[data-plot="latent"] .scatterlayer .trace').nth(1).locator(".point").first)
    text = quiet.page.locator('[data-plot="latent"] .hoverlayer .hovertext').first.text_content()
    label = dict(zip(tame[0].predictions["sample"], tame[0].predictions["label"], strict=True))
    name = re.search(r"patient \d{3}", text).group()
    assert label[name] in text
    quiet.check()


def test_misclassified_samples_are_marked(quiet, tame):
    wrong = (tame[0].predictions["label"] != tame[0].predictions["predicted"]).sum()
    assert wrong
    assert quiet.page.locator('[data-plot="latent"] .scatterlayer .trace').last.locator(".point").count() == wrong
    assert "misclassified" in quiet.page.locator('[data-plot="latent"] .legend').text_content()


def test_a_clicked_feature_shows_its_boxes(quiet, tame):
    name = quiet.page.locator("#detail-name")
    table = tame[0].features["feature"]
    bars = quiet.page.locator('[data-plot="ranking"] .bars .point path')
    quiet.click(bars.last)
    assert name.text_content() in set(table[:25]) - {table[0]}
    boxes = quiet.page.locator('[data-plot="box"] .boxlayer .trace path.box')
    assert boxes.count() == 3
    quiet.page.locator("#feature-table tbody tr:nth-child(5) .link").click()
    assert name.text_content() == table[4]
    assert quiet.page.locator("#feature-table tbody tr[aria-current=true]").count() == 1
    quiet.click(quiet.page.locator('[data-plot="heatmap"] .heatmaplayer image'))
    assert name.text_content() in set(tame[0].values.columns) - {table[4]}
    quiet.page.locator("#feature-choice").select_option(index=3)
    assert name.text_content() == tame[0].values.columns[2]
    assert boxes.count() == 3
    quiet.check()


def test_a_feature_that_was_not_chosen_shows_its_means(quiet):
    quiet.page.locator("#search").fill("GENE777")
    quiet.page.locator("#feature-table tbody .link").first.click()
    assert quiet.page.locator("#detail-name").text_content() == "GENE777"
    assert "means of the classes" in quiet.page.locator("#detail-facts").text_content()
    assert quiet.page.locator('[data-plot="box"] .scatterlayer .point').count() == 3
    quiet.page.locator("#search").fill("")
    quiet.check()


def test_print_shows_still_figures(quiet):
    quiet.page.emulate_media(media="print")
    assert not quiet.page.locator('[data-plot="latent"]').is_visible()
    for image in quiet.page.locator("img.still").all():
        assert image.is_visible()
        assert image.evaluate("image => image.naturalWidth") > 100
    quiet.page.emulate_media(media="screen")
    assert quiet.page.locator('[data-plot="latent"]').is_visible()
    quiet.check()


def test_without_scripts_the_words_and_still_figures_remain(browser, tame):
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(tame[1].as_uri())
    assert page.locator(".lead").is_visible()
    assert page.locator("img.still").count() == 11
    assert page.locator("#figure-heatmap img.still").is_visible()
    assert not page.locator("#feature-table").is_visible()
    context.close()


def test_nasty_names_do_no_harm_on_a_phone(browser, nasty):
    study, path = nasty
    opened = Opened(browser, path, width=360)
    page = opened.page
    inside = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(inside)
    assert page.locator("script").count() == 3
    assert page.locator("b, u, i:not(.bar i), img:not(.still), svg a, #feature-table a").count() == 0
    # Long names: short in the table, whole on demand.
    page.locator("#search").fill("xxxxxxxx")
    page.locator("#feature-table tbody .link").first.click()
    assert page.locator("#detail-name").text_content() in (LONG, f"{LONG} again")
    assert page.locator("#detail-name").bounding_box()["height"] < 200
    for name in ('<img src=x onerror="window.harmed=1">', "</script><script>window.harmed=1</script>", "a<br>b"):
        page.locator("#search").fill(name)
        page.locator("#feature-table tbody .link").first.click()
        assert page.locator("#detail-name").text_content().startswith(name)
    # In plots, too, markup is text.
    ticks = page.locator('[data-plot="heatmap"] .ytick').all_text_contents()
    assert "a<br>b" in ticks
    assert '"><b>bold</b>' in ticks
    assert any(tick.startswith("$\\frac") for tick in ticks)
    assert any(tick.startswith("<script>") for tick in ticks)
    opened.hover(page.locator('[data-plot="latent"] .scatterlayer .trace').first.locator(".point").first)
    hover = page.locator('[data-plot="latent"] .hoverlayer .hovertext').first
    assert "<b onclick=" in hover.text_content()
    page.locator("#search").fill("")
    with page.expect_download() as waiting:
        page.locator("#download").click()
    raw = waiting.value.path().read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline="")))
    assert len(rows) == len(study.features)
    names = [row["feature"] for row in rows]
    assert not [name for name in names if name.lstrip()[:1] in tuple("=+-@") and name.strip()]
    assert "'=cmd|' /C calc'!A0" in names
    assert LONG in names
    assert float(rows[0]["frequency"]) == pytest.approx(study.features["frequency"][0], rel=1e-2)
    assert page.evaluate("window.harmed === undefined")
    assert page.evaluate(inside)
    opened.check()
    opened.context.close()
