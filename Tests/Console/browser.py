"""A real Chromium, driven headless: it uses pages as a person does, and checks that they can be used without a mouse or with assistive tools.

The drivers of the console and of Examples/WebJournal share it.
"""

import argparse
import base64
import importlib.util
import io
import pathlib
import shutil
import sys
import time

import PIL.Image
import zxingcpp
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Interop"))

from steps import check, equal  # noqa: E402

WIDTHS, SCHEMES = (360, 1280), ("light", "dark")
# Text that would do harm as HTML.
HOSTILE = "\"><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"

# The rules of axe-core. The package is not imported, because it would need a browser of its own.
AXE = (pathlib.Path(importlib.util.find_spec("axe_playwright_python").origin).parent / "axe.min.js").read_text()
AXE_RUN = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations']}).then(
  result => done(result.violations.flatMap(rule => rule.nodes.map(node => `axe ${rule.id} (${rule.impact}): ${rule.help}: ${node.html.slice(0, 160)}`))),
  error => done(['axe has failed: ' + error]));
"""
# The number of axe-core's rules; with fewer the file is not axe-core's.
AXE_LEAST = 90

# Finds obstacles for people who use a page; each line is one problem.
RULES = r"""
const finds = [];
const name = element => element.tagName.toLowerCase() + (element.id ? '#' + element.id : '') + (element.className && element.className.baseVal === undefined ? '.' + element.className : '') + ' ' + element.textContent.trim().slice(0, 40);
const visible = element => { const box = element.getBoundingClientRect(); const style = getComputedStyle(element); return box.width > 0 && box.height > 0 && style.visibility !== 'hidden'; };
const label = element => (element.getAttribute('aria-label') || [...(element.labels || [])].map(item => item.textContent).join(' ') || (element.matches('a,button,summary') ? element.textContent : '') || element.getAttribute('alt') || '').trim();
// Names of what is used.
for (const element of document.querySelectorAll('a[href],button,input:not([type=hidden]),select,textarea,summary')) if (!label(element)) finds.push('no name: ' + name(element));
for (const element of document.querySelectorAll('img:not([alt]),svg:not([aria-label]):not([aria-hidden])')) finds.push('no text in place of a picture: ' + name(element));
const markup = document.body.textContent.match(/<\/?(div|p|a|dl|dt|dd|form|span|td|tr|button|input|select|h2|ul|li)\b[^>]*>/);
if (markup) finds.push('markup is shown as text: ' + markup[0]);
// Structure.
if (document.documentElement.lang !== 'en') finds.push('no language');
if (!document.title) finds.push('no title');
if (document.querySelectorAll('main').length !== 1) finds.push('not one main');
if (document.querySelectorAll('h1').length !== 1) finds.push('not one h1');
let level = 0;
for (const heading of document.querySelectorAll('h1,h2,h3,h4')) { const next = Number(heading.tagName[1]); if (next > level + 1) finds.push('a level of headings is left out: ' + name(heading)); level = next; }
const ids = [...document.querySelectorAll('[id]')].map(element => element.id);
for (const id of new Set(ids.filter((id, index) => ids.indexOf(id) !== index))) finds.push('an id twice: ' + id);
for (const cell of document.querySelectorAll('th:not([scope])')) finds.push('a heading of a table without scope: ' + name(cell));
for (const element of document.querySelectorAll('[tabindex]')) if (Number(element.getAttribute('tabindex')) > 0) finds.push('an order of its own: ' + name(element));
for (const element of document.querySelectorAll('script:not([type=module][src]),[style],[onclick],[onerror],[onload]')) finds.push('a script or a style in the page: ' + name(element));
// What can be done with a row is seen without scrolling, and so are all columns of a table that has not very many.
for (const region of document.querySelectorAll('.scroll')) {
  const outer = region.getBoundingClientRect();
  for (const button of region.querySelectorAll('td button')) { const box = button.getBoundingClientRect(); if (visible(button) && (box.left < outer.left || box.right > outer.right + 1)) finds.push('a button of a row is out of sight: ' + name(button)); }
  if (region.querySelectorAll('th').length <= 8 && region.scrollWidth > region.clientWidth + 1) finds.push('columns are out of sight: ' + region.getAttribute('aria-label') + ', ' + region.scrollWidth + ' of ' + region.clientWidth);
}
// Keys reach what can be used from the top to the bottom, and show where they are.
let row = 0, line = null;
const before = document.activeElement;
for (const element of document.querySelectorAll('main a[href],main button,main input:not([type=hidden]),main select,main textarea,main summary,main [tabindex="0"]')) {
  if (!visible(element) || element.disabled || element.closest('details:not([open]) > :not(summary)')) continue;
  const box = element.getBoundingClientRect();
  // Cells of a row stand side by side.
  const own = element.closest('tr');
  if (box.bottom + scrollY < row && (!own || own !== line)) finds.push('the order of focus goes back up: ' + name(element));
  if (box.top + scrollY > row) [row, line] = [box.top + scrollY, own];
  element.focus({preventScroll: true});
  const style = getComputedStyle(element);
  if (style.outlineStyle === 'none' || style.outlineWidth === '0px') finds.push('no focus to be seen: ' + name(element));
}
if (before && before !== document.body) before.focus({preventScroll: true}); else document.activeElement?.blur();
// Nothing is cut off to the side.
if (document.documentElement.scrollWidth > document.documentElement.clientWidth) {
  const wide = [...document.querySelectorAll('body *')].filter(element => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !element.closest('.scroll,pre,.hidden,.skip'));
  finds.push('the page is wider than the window: ' + wide.slice(0, 3).map(name).join(' | '));
}
// What is touched is large enough.
for (const element of document.querySelectorAll('button,select,input:not([type=hidden]):not([type=checkbox])')) if (visible(element) && element.getBoundingClientRect().height < 24) finds.push('too small to touch: ' + name(element));
// Contrast of text, by WCAG 2.2: 4.5, and 3 for large text.
const numbers = color => { const found = color.match(/[\d.]+/g).map(Number); return found.length === 3 ? [...found, 1] : found; };
const luminance = ([r, g, b]) => { const [x, y, z] = [r, g, b].map(value => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; }); return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
const ground = element => { for (let at = element; at; at = at.parentElement) { const color = numbers(getComputedStyle(at).backgroundColor); if (color[3] === 1) return color; } return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18, 1] : [255, 255, 255, 1]; };
const seen = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !visible(element) || element.closest('.hidden,.skip:not(:focus),option')) continue;
  const style = getComputedStyle(element), [first, second] = [luminance(numbers(style.color)), luminance(ground(element))].sort((a, b) => b - a);
  const ratio = (first + 0.05) / (second + 0.05), size = parseFloat(style.fontSize);
  const least = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700 ? 3 : 4.5;
  if (ratio < least && !seen.has(style.color + name(element))) { seen.add(style.color + name(element)); finds.push('contrast ' + ratio.toFixed(2) + ': ' + name(element)); }
}
return finds;
"""


def parser(description, **programs):
    """The options of a driver: the programs that it runs, each with a description."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, what in programs.items():
        made.add_argument(f"--{name}", required=True, type=lambda path: pathlib.Path(path).resolve(), help=what)
    made.add_argument("--folder", required=True, type=lambda path: pathlib.Path(path).resolve(), help="a folder, which is emptied first")
    made.add_argument("--screenshots", type=pathlib.Path, help="where the pictures go; the flows are left out")
    return made


def begin(options):
    """Empties the folder of a driver, which needs Chromium."""
    if not shutil.which("chromedriver"):
        sys.exit("chromedriver is missing: apt-get install chromium chromium-driver")
    shutil.rmtree(options.folder, ignore_errors=True)


def views():
    """Each width and colour scheme, with the words for both."""
    for width in WIDTHS:
        for scheme in SCHEMES:
            yield width, scheme, f"at {width} pixels, {scheme}"


def check_nothing(finds):
    """Checks that no obstacle was found on the examined pages."""
    check(not finds, "\n    ".join(finds[:40]))


class Browser:
    """A window of Chromium."""

    def __init__(self, url, width=1280, scheme="light", scripts=True):
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-device-scale-factor=1", "--hide-scrollbars", "--ignore-certificate-errors"):
            options.add_argument(argument)
        if not scripts:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.url = url
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.look(width, scheme)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def look(self, width, scheme):
        """Sets another width and colour scheme."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, path, under="/console"):
        self.driver.get(self.url + under + path)

    def sign_in(self, account, password=None, under="/console"):
        self.open("/sign-in", under)
        self.type("email", account["email"])
        self.type("password", password or account["password"])
        self.driver.execute_script("window.isOld = true")
        self.find("input[name=password]").send_keys(Keys.ENTER)
        self.wait_for_page()

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def type(self, name, text):
        field = self.find(f"[name='{name}']")
        field.clear()
        field.send_keys(text)

    def choose(self, name, value):
        Select(self.find(f"main [name='{name}']")).select_by_value(value)

    def press(self, text):
        """Presses the button or follows the link with a text."""
        if self.steadily(lambda: self.click(text)):
            self.wait_for_page()

    def click(self, text):
        """Returns whether a page follows."""
        for element in self.all("main button, main a, main summary, header button, nav a"):
            if " ".join(element.text.split()).startswith(text):
                leads = element.tag_name != "summary"
                self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'}); window.isOld = true", element)
                element.click()
                return leads
        raise AssertionError(f"nothing says '{text}' on {self.driver.current_url}: {self.text[:600]}")

    @staticmethod
    def steadily(body):
        """Does something with elements of the page; again, if the page has replaced them meanwhile, or is still loading."""
        for _ in range(20):
            try:
                return body()
            except (NoSuchElementException, StaleElementReferenceException):
                time.sleep(0.05)
            except WebDriverException as error:
                # Chromium's error if the page is left during the call.
                if "does not belong to the document" not in str(error):
                    raise
                time.sleep(0.05)
        return body()

    def wait_for_page(self):
        """Waits until another page has replaced the one that was marked as old."""
        self.wait(lambda: self.driver.execute_script("return !window.isOld && document.readyState === 'complete'"), "the page stays")

    def follow(self, element):
        """Clicks an element that leads to another page, and waits for the page, also without scripts."""
        old = self.find("html")
        element.click()
        self.wait(lambda: self.find("html") != old, "the page stays")

    def wait(self, condition, what):
        """Waits until a condition holds."""
        end = time.monotonic() + 10
        while not self.steadily(condition):
            if time.monotonic() > end:
                raise AssertionError(f"{what}: {self.text[:600]}")
            time.sleep(0.02)

    def wait_for_pictures(self, is_seen=False):
        """Waits until all pictures are loaded, or only the visible ones: others may be loaded when they become visible."""
        ask = """
            const waited = image => !arguments[0] || image.loading != "lazy" || image.getBoundingClientRect().top < window.innerHeight
            return [...document.images].every(image => !waited(image) || image.complete && image.naturalWidth > 0)
        """
        self.wait(lambda: self.driver.execute_script(ask, is_seen), "a picture is missing")

    @property
    def text(self):
        return self.steadily(lambda: self.find("body").text)

    @property
    def title(self):
        return self.steadily(lambda: self.find("h1").text)

    def finds(self):
        """The obstacles on the page, by axe-core's rules and by ours."""
        self.driver.execute_script(AXE)
        rules = self.driver.execute_script("return axe.getRules().length")
        if rules < AXE_LEAST:
            raise AssertionError(f"axe-core has {rules} rules, and {AXE_LEAST} were expected")
        return self.driver.execute_async_script(AXE_RUN) + self.driver.execute_script(RULES)

    def complaints(self):
        """The browser's complaints, such as content that the page's policy refuses. The statuses 404 and 403 are not complaints."""
        messages = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        return [message for message in messages if "status of 4" not in message]

    def examine(self, name, path, under, width, scheme, folder=None, press=None):
        """Opens a page at a width and in a colour scheme, or the one behind a button of it, and makes a picture if there is a folder for that.

        Returns what keeps people from using it, each with the name of the page.
        """
        self.look(width, scheme)
        self.open(path, under)
        if press:
            self.press(press)
        finds = [f"{name}: {find}" for find in self.finds() + self.complaints()]
        if folder:
            self.picture(folder / f"{name}-{width}-{scheme}.webp")
        return finds

    def scan(self, selector):
        """The texts of the QR codes in a picture of the page, as a camera reads them."""
        with PIL.Image.open(io.BytesIO(self.find(selector).screenshot_as_png)) as picture:
            return [code.text for code in zxingcpp.read_barcodes(picture)]

    def skip_to_content(self):
        """Reaches the content of the page with the keyboard, as people without a mouse do."""
        self.find("body").send_keys(Keys.TAB)
        equal(self.driver.switch_to.active_element.text, "Skip to the content")
        self.driver.switch_to.active_element.send_keys(Keys.ENTER)
        equal(self.driver.switch_to.active_element.get_attribute("id"), "content")

    def tab(self):
        """Moves the focus to the next usable element, where it must be visible; returns none behind the last one."""
        self.driver.switch_to.active_element.send_keys(Keys.TAB)
        now = self.driver.switch_to.active_element
        if now.tag_name == "body":
            return None
        is_seen = self.driver.execute_script("const style = getComputedStyle(arguments[0]); return style.outlineStyle !== 'none' && style.outlineWidth !== '0px'", now)
        check(is_seen, f"no focus to be seen: {now.get_attribute('outerHTML')[:100]}")
        return now

    def picture(self, path):
        """The page as a WebP file, cut to a length that is useful in a guide, and of 60 kB at most."""
        height = self.driver.execute_script("return Math.max(document.documentElement.scrollHeight, 400)")
        width = self.driver.execute_script("return document.documentElement.clientWidth")
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": min(height, 1400), "deviceScaleFactor": 1, "mobile": width < 500})
        self.wait_for_pictures(is_seen=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        for quality in (55, 40, 25, 10):
            taken = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": quality})
            data = base64.b64decode(taken["data"])
            if len(data) < 60_000:
                break
        path.write_bytes(data)
