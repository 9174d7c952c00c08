#!/usr/bin/env python3
"""Makes one site of the README, the guides, the references, the formats, the decisions and the articles of the API. Pages lie where their
Markdown lies, so that they work from a file as from a server."""

import argparse
import html
import json
import os
import pathlib
import posixpath
import re
import shutil
import sys
import urllib.parse

sys.dont_write_bytecode = True
SYSTEM = "/usr/bin/python3"
try:
    from markdown_it import MarkdownIt
except ImportError:
    # Debian's packages are seen by the system's Python only.
    if os.path.exists(SYSTEM) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM):
        os.execv(SYSTEM, [SYSTEM, *sys.argv])
    sys.exit("make.py: markdown-it-py is missing. Install Debian's python3-markdown-it, or run 'pip install markdown-it-py'")
try:
    import pygments
    import pygments.formatters
    import pygments.lexers
except ImportError:
    pygments = None

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
sys.path.insert(0, str(ROOT / ".ci" / "checks"))
import common

NAME = "Tidemark"

# The groups of the navigation: title, and the pages whose paths fit. Within a group, the order is Documentation/README.md's.
GROUPS = [
    ("Begin", r"README\.md|Documentation/README\.md"),
    ("Guides", r"Documentation/Guides/.*"),
    ("The API", r"Sources/.*\.docc/.*"),
    ("Reference", r"Documentation/Reference/.*|GLOSSARY\.md"),
    ("Formats", r"Documentation/Formats/.*"),
    ("Decisions", r"Documentation/Decisions/.*"),
    ("Project", r"CONTRIBUTING\.md|SECURITY\.md|CHANGELOG\.md|Benchmarks/README\.md|Examples/.*"),
]
# The pages that are called otherwise in the navigation than by their heading.
SHORT = {"README.md": "Tidemark", "Documentation/README.md": "All documents"}


def slug(heading):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def plain(tokens):
    """The text of a heading without its marks."""
    return "".join(plain(token.children) if token.type == "image" else token.content or (" " if token.type == "softbreak" else "") for token in tokens or [])


def page_of(path):
    """Where the page of a Markdown file goes: README.md is the index of its folder."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, "index.html" if name == "README.md" else name.removesuffix(".md") + ".html")


def highlight(text, language):
    if not pygments or not language or language == "csv":
        return html.escape(text)
    try:
        lexer = pygments.lexers.get_lexer_by_name(language, stripnl=False)
    except pygments.util.ClassNotFound:
        return html.escape(text)
    return pygments.highlight(text, lexer, pygments.formatters.HtmlFormatter(nowrap=True))


class Page:
    def __init__(self, path, text):
        self.path, self.place, self.group, self.headings = path, page_of(path), None, []
        self.tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
        counts = {}
        for opening, inline in zip(self.tokens, self.tokens[1:]):
            if opening.type != "heading_open":
                continue
            title = plain(inline.children)
            anchor = slug(title)
            counts[anchor] = counts.get(anchor, -1) + 1
            anchor = f"{anchor}-{counts[anchor]}" if counts[anchor] else anchor
            opening.attrSet("id", anchor)
            self.headings.append((int(opening.tag[1]), title, anchor))
        self.title = self.headings[0][1] if self.headings else posixpath.basename(path)

    @property
    def short(self):
        number = re.match(r"\d{3}", posixpath.basename(self.path))
        title = re.sub(r"^\d+[.:]?\s+", "", self.title)
        return SHORT.get(self.path) or (f"{number[0]} {title}" if number else title)


class Site:
    def __init__(self, into):
        self.into, self.pages, self.files, self.pictures, self.finds = into, {}, set(), set(), []
        self.tree = set(common.files())
        for path in sorted(self.tree):
            if path.endswith(".md") and any(re.fullmatch(pattern, path) for _, pattern in GROUPS):
                self.pages[path] = Page(path, (ROOT / path).read_text(encoding="utf-8"))
        self.articles = {posixpath.basename(path).removesuffix(".md"): page for path, page in self.pages.items() if ".docc/" in path}
        self.navigation = self.order()

    def order(self):
        """The groups with their pages."""
        overview = self.pages.get("Documentation/README.md")
        named = []
        for token in overview.tokens if overview else []:
            for child in token.children or []:
                if child.type == "link_open":
                    named.append(posixpath.normpath(posixpath.join("Documentation", child.attrGet("href").split("#")[0])))
        groups = []
        for title, pattern in GROUPS:
            found = [page for path, page in self.pages.items() if re.fullmatch(pattern, path)]
            found.sort(key=lambda page: (page.path != "README.md", named.index(page.path) if page.path in named else len(named), page.path))
            for page in found:
                page.group = title
            if found:
                groups.append((title, found))
        return groups

    # Links

    def target(self, page, address, line=""):
        """The address of a link of a page, in the site."""
        if re.match(r"[a-z][a-z0-9+.-]*:", address, re.I) or address.startswith(("#", "//")):
            return address
        path, mark, anchor = address.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), urllib.parse.unquote(path)))
        if path in self.pages:
            place = self.pages[path].place
        elif path in self.tree and re.search(r"\.(svg|png|jpe?g|gif)$", path):
            self.pictures.add(path)
            place = path
        elif path in self.tree:
            self.files.add(path)
            place = path + ".html"
        else:
            self.finds.append(f"{page.path}: the link {address} leads nowhere")
            return address
        return urllib.parse.quote(posixpath.relpath(place, posixpath.dirname(page.place) or ".")) + mark + anchor

    def inline(self, page, tokens):
        """Rewrites links; `<doc:Name>` becomes a link to the article, or the name of a symbol."""
        for index, token in enumerate(tokens):
            if token.type == "link_open":
                address = token.attrGet("href")
                if address.startswith("doc:"):
                    name = address.removeprefix("doc:")
                    article = self.articles.get(posixpath.basename(name))
                    token.attrSet("href", self.target(page, posixpath.relpath(article.path, posixpath.dirname(page.path) or ".")) if article else "")
                    tokens[index + 1].content = article.short if article else posixpath.basename(name)
                    if not article:
                        token.tag = tokens[index + 2].tag = "code"
                        token.attrs = {}
                else:
                    token.attrSet("href", self.target(page, address))
            elif token.type == "image":
                token.attrSet("src", self.target(page, token.attrGet("src")))
                token.attrSet("loading", "lazy")
            elif token.type == "html_inline":
                token.content = self.raw(page, token.content)

    def raw(self, page, text):
        return re.sub(r'\b(src|srcset|href)="([^"]+)"', lambda it: f'{it[1]}="{html.escape(self.target(page, it[2]))}"', text)

    # Pages

    def body(self, page):
        renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        rules = renderer.renderer.rules
        rules["fence"] = lambda tokens, index, options, environment: code(tokens[index].content, tokens[index].info.split(" ")[0])
        rules["code_block"] = lambda tokens, index, options, environment: code(tokens[index].content, "")
        rules["table_open"] = lambda *_: '<div class="table" tabindex="0"><table>\n'
        rules["table_close"] = lambda *_: "</table></div>\n"
        closing = {}
        for index, token in enumerate(page.tokens):
            if token.type == "inline":
                self.inline(page, token.children)
            elif token.type == "html_block":
                token.content = self.raw(page, token.content)
            elif token.type == "heading_open":
                closing[index + 2] = token.attrGet("id")

        def heading_close(tokens, index, options, environment):
            anchor = closing[index]
            return f' <a class="anchor" href="#{anchor}" aria-label="Link to this section">#</a></{tokens[index].tag}>\n'

        rules["heading_close"] = heading_close
        return renderer.renderer.render(page.tokens, renderer.options, {})

    def menu(self, page):
        parts = []
        for title, pages in self.navigation:
            is_open = title in ("Begin", page.group) or (title == "Guides" and page.group == "Begin")
            parts.append(f'<details{" open" if is_open else ""}><summary>{html.escape(title)}</summary><ul>')
            for other in pages:
                here = ' aria-current="page"' if other is page else ""
                parts.append(f'<li><a href="{self.relative(page.place, other.place)}"{here}>{html.escape(other.short)}</a></li>')
            if title == "The API":
                here = ' aria-current="page"' if page.place == "API.html" else ""
                parts.append(f'<li><a href="{self.relative(page.place, "API.html")}"{here}>All symbols</a></li>')
            parts.append("</ul></details>")
        return "\n".join(parts)

    @staticmethod
    def relative(place, other):
        return urllib.parse.quote(posixpath.relpath(other, posixpath.dirname(place) or "."))

    def beside(self, page):
        """Links to the page before and the one after, within the group."""
        for _, pages in self.navigation:
            if page in pages:
                index = pages.index(page)
                link = lambda other, kind, word: (f'<a class="{kind}" rel="{kind}" href="{self.relative(page.place, other.place)}"><span>{word}</span>'
                                                  f"{html.escape(other.short)}</a>")
                before = link(pages[index - 1], "prev", "Previous") if index else "<span></span>"
                after = link(pages[index + 1], "next", "Next") if index + 1 < len(pages) else "<span></span>"
                return f'<nav class="beside" aria-label="Beside this page">{before}{after}</nav>' if len(pages) > 1 else ""
        return ""

    def contents(self, page):
        entries = [(level, title, anchor) for level, title, anchor in page.headings if level in (2, 3)]
        if len(entries) > 30:
            entries = [entry for entry in entries if entry[0] == 2]
        if len(entries) < 2:
            return ""
        items = "\n".join(f'<li class="level{level}"><a href="#{anchor}">{html.escape(title)}</a></li>' for level, title, anchor in entries)
        return f'<nav class="contents" aria-label="On this page"><p>On this page</p><ul>\n{items}\n</ul></nav>'

    def document(self, page, body, source):
        up = posixpath.relpath(".", posixpath.dirname(page.place) or ".")
        up = "" if up == "." else up + "/"
        title = NAME if page.title == NAME else f"{page.title} – {NAME}"
        group = f'<p class="group">{html.escape(page.group)}</p>' if page.group not in (None, "Begin") else ""
        return TEMPLATE.format(
            title=html.escape(title), up=up, menu=self.menu(page), contents=self.contents(page), group=group, body=body, beside=self.beside(page),
            source=f"<footer>Made from <code>{html.escape(source)}</code></footer>" if source else "")

    def write(self, place, text):
        file = self.into / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def make(self, reference):
        for page in self.pages.values():
            self.write(page.place, self.document(page, self.body(page), page.path))
        for path in sorted(self.files):
            page = Page(path, "")
            page.place, page.title = path + ".html", posixpath.basename(path)
            text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
            language = {".json": "json", ".py": "python", ".service": "ini", ".example": "nginx", ".swift": "swift"}.get(posixpath.splitext(path)[1], "")
            language = "docker" if page.title == "Dockerfile" else language
            self.write(page.place, self.document(page, f"<h1>{html.escape(page.title)}</h1>\n{code(text, language)}", path))
        self.write("API.html", self.api(reference))
        for path in sorted(self.pictures):
            (self.into / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, self.into / path)
        for name in ("style.css", "script.js"):
            shutil.copyfile(FOLDER / name, self.into / name)
        entries = [[title, page.short if level > 1 else "", page.group, page.place + (f"#{anchor}" if level > 1 else "")]
                   for _, pages in self.navigation for page in pages for level, title, anchor in page.headings if level <= 4]
        self.write("index.js", "window.searchEntries = " + json.dumps(entries, ensure_ascii=False, separators=(",", ":")) + ";\n")

    def api(self, reference):
        page = Page("API", "# The API: all symbols\n")
        page.place, page.group = "API.html", "The API"
        body = ["<h1>The API: all symbols</h1>"]
        archive = reference / "documentation" if reference else None
        if archive and archive.is_dir():
            shutil.copytree(reference, self.into / "api", dirs_exist_ok=True)
            body.append("<p>The reference of all modules is below <code>api/</code>. Its pages load their data over HTTP, so that they need a server, "
                        "and do not open from a file:</p>")
            body.append(code("python3 -m http.server --bind 127.0.0.1 --directory .build/site 8000\n", "sh"))
            body.append('<p>Then open <code>http://127.0.0.1:8000/api/documentation/</code>, or follow these links on that server:</p><ul class="modules">')
            for folder in sorted(it for it in archive.iterdir() if it.is_dir()):
                name = next((title for title in self.module_names() if title.lower() == folder.name), folder.name)
                body.append(f'<li><a href="api/documentation/{urllib.parse.quote(folder.name)}/">{html.escape(name)}</a></li>')
            body.append("</ul>")
        else:
            body.append("<p>The reference of all modules was not built when this site was made. These commands build it, and make the site with it:</p>")
            body.append(code("make docs\nmake site\n", "sh"))
            body.append("<p>The articles of the API are in the navigation.</p>")
        return self.document(page, "\n".join(body), "")

    def module_names(self):
        """The modules of libraries: programs begin with a small letter."""
        return {path.split("/")[1] for path in self.tree if re.match(r"Sources/[A-Z]\w*/", path)}


def code(text, language):
    name = f' class="language-{html.escape(language)}"' if language else ""
    return f'<pre tabindex="0"><code{name}>{highlight(text, language)}</code></pre>\n'


TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="{up}style.css">
<script src="{up}index.js" defer></script>
<script src="{up}script.js" defer></script>
</head>
<body data-up="{up}">
<a class="skip" href="#main">Skip to the text</a>
<header>
<a class="brand" href="{up}index.html">Tidemark</a>
<div class="search" role="search">
<input type="search" id="search" placeholder="Search" aria-label="Search titles and headings" role="combobox" aria-expanded="false" aria-controls="results" aria-autocomplete="list" autocomplete="off" spellcheck="false">
<ul id="results" role="listbox" aria-label="Found" hidden></ul>
</div>
<button id="menu-button" type="button" aria-expanded="false" aria-controls="menu">Menu</button>
</header>
<div class="columns">
<nav id="menu" aria-label="All pages">
{menu}
</nav>
<main id="main">
{group}
<article>
{body}
</article>
{beside}
{source}
</main>
{contents}
</div>
</body>
</html>
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=pathlib.Path, default=ROOT / ".build" / "site", help="the folder of the site, which is replaced (.build/site)")
    parser.add_argument("--reference", type=pathlib.Path, default=ROOT / ".build" / "docs", help="the reference that 'make docs' has built (.build/docs)")
    options = parser.parse_args()
    site = Site(options.into.resolve())
    # Only a folder of which this program knows that it was its own is replaced.
    if site.into.exists() and any(site.into.iterdir()) and not (site.into / "index.js").exists():
        sys.exit(f"make.py: {site.into} is there and is no site; remove it, or name another folder with --into")
    shutil.rmtree(site.into, ignore_errors=True)
    site.make(options.reference if options.reference.is_dir() else None)
    if site.finds:
        sys.exit("\n".join([*site.finds, f"make.py: {len(site.finds)} links lead nowhere"]))
    print(f"{len(site.pages)} pages: {site.into}/index.html")


if __name__ == "__main__":
    main()
