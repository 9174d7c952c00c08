#!/usr/bin/env python3
"""Checks that each link of the site leads to a file of it, and each anchor to an element; ends with 1 if one does not.

Addresses of other hosts are not asked for. The reference of the API in `api` is DocC's, and only links into it are checked."""

import html.parser
import pathlib
import sys
import urllib.parse


class Reader(html.parser.HTMLParser):
    """The addresses and the identifiers of a page."""

    def __init__(self, path):
        super().__init__()
        self.path, self.addresses, self.identifiers, self.repeated = path, [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value is not None:
                self.addresses.append((self.getpos()[0], value))
            elif name == "srcset":
                self.addresses += [(self.getpos()[0], part.split()[0]) for part in value.split(",")]
            elif name == "id":
                if value in self.identifiers:
                    self.repeated.append((self.getpos()[0], value))
                self.identifiers.add(value)


def main(arguments):
    if len(arguments) != 1:
        sys.exit("Usage: check.py SITE")
    root = pathlib.Path(arguments[0]).resolve()
    pages = {path: Reader(path) for path in sorted(root.rglob("*.html")) if path.relative_to(root).parts[0] != "api"}
    if root / "index.html" not in pages:
        sys.exit(f"check.py: there is no site at {root}")
    count, finds = 0, []
    for path, page in pages.items():
        name = path.relative_to(root)
        finds += [f"{name}:{line}: the identifier {value} is there twice" for line, value in page.repeated]
        for line, address in page.addresses:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc:
                if parts.scheme not in ("https", "http", "mailto"):
                    finds.append(f"{name}:{line}: {address} has an unknown scheme")
                continue
            count += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if parts.path.endswith("/"):
                # A server sends the index of a folder; DocC's pages are addressed so, and need a server in any case.
                target /= "index.html"
            if not target.is_relative_to(root) or not target.is_file():
                finds.append(f"{name}:{line}: {address} leads nowhere")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].identifiers:
                finds.append(f"{name}:{line}: {address}: there is no such heading")
    if finds:
        sys.exit("\n".join([*finds, f"check.py: {len(finds)} of {count} links are broken"]))
    print(f"{count} links of {len(pages)} pages resolve")


main(sys.argv[1:])
