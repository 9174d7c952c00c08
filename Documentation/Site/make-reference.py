#!/usr/bin/env python3
"""Makes the reference of all library products, one DocC archive, from modules that are built: extracts their symbol graphs, converts each
module with its catalogue of articles, and merges the archives. Nothing is added to the package for it: docc and the extractor are the
toolchain's."""

import argparse
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run(arguments, log=None):
    """Runs a command and returns what it prints; ends this program with that if it fails."""
    try:
        done = subprocess.run([str(it) for it in arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if log else None, text=True)
    except OSError as error:
        sys.exit(f"make-reference.py: {error}. Swift's toolchain has {arguments[0]}: put its usr/bin on the PATH")
    if log:
        log.write(f"$ {' '.join(map(str, arguments))}\n{done.stdout}\n")
    if done.returncode:
        sys.exit(f"{done.stdout}\nmake-reference.py: {' '.join(map(str, arguments[:2]))} failed with {done.returncode}")
    return done.stdout


def documented(dump):
    """The modules of the library products: each after those of them that it depends on."""
    targets = {target["name"]: target for target in dump["targets"]}
    wanted = {name for product in dump["products"] if "library" in product["type"] for name in product["targets"]}
    ordered, seen = [], set()

    def visit(name):
        if name in seen:
            return
        seen.add(name)
        for dependency in targets[name]["dependencies"]:
            value = dependency.get("byName") or dependency.get("target")
            if value and value[0] in targets:
                visit(value[0])
        if name in wanted:
            ordered.append(name)

    for name in sorted(wanted):
        visit(name)
    return ordered


def modules(dump):
    """The modules of the package that documents may name without a page of their own: what the library products are built from."""
    return [target["name"] for target in dump["targets"] if target["type"] == "regular" and not target.get("path", "").startswith(("CSupport", "Tests"))]


def declared(graphs, module):
    """The paths of a module's public symbols, as links have them: Type, Type/method(_:)."""
    symbols = json.loads((graphs / f"{module}.symbols.json").read_text(encoding="utf-8"))["symbols"]
    return {"/".join(symbol["pathComponents"]) for symbol in symbols}


# What DocC says of a link that it can't resolve: the part that is missing, the place of the link, and the line.
UNRESOLVED = re.compile(r"^(?:.*: )?warning: '([^']+)' (doesn't exist at|can't be linked to|is ambiguous at).*\n\s*--> (\S+)\n(?:.*\n)*?(\d+) \+ (.*)$", re.M)


def broken_links(said, known):
    """The links of a module's comments and articles that no module of the package has. DocC finds symbols of the module itself only: what it
    misses and another module declares is shown as code, and is sound."""
    for name, reason, place, line, text in UNRESOLVED.findall(said):
        links = [it for it in re.findall(r"``([^`]+)``", text) if name in re.split(r"[/-]", it)] or [name]
        for link in links:
            at = f"{place.split(':')[0].removeprefix('../')}:{line}"
            if reason.startswith("is ambiguous"):
                yield f"{at}: ``{link}`` may be several symbols; DocC's words say how to name one"
            elif link not in known and re.sub(r"-(\([^)]*\)|[\w.]+)$", "", link) not in known:
                yield f"{at}: ``{link}`` is no public symbol of a module"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / ".build" / "debug", help="the products of a debug build (.build/debug)")
    parser.add_argument("--into", type=pathlib.Path, default=ROOT / ".build" / "docs", help="the archive, which is replaced (.build/docs)")
    parser.add_argument("--strict", action="store_true", help="end with 1 if DocC warns")
    options = parser.parse_args()
    build, into = options.build.resolve(), options.into.resolve()
    if into.exists() and any(into.iterdir()) and not (into / "metadata.json").exists():
        sys.exit(f"make-reference.py: {into} is there and is no archive; remove it, or name another folder with --into")
    dump = json.loads(run(["swift", "package", "dump-package"]))
    names = documented(dump)
    missing = [name for name in names if not (build / "Modules" / f"{name}.swiftmodule").exists()]
    if missing:
        sys.exit(f"make-reference.py: {build} has no {', '.join(missing)}: build them with 'swift build'")
    work = into.with_name(into.name + "-work")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    if platform.system() == "Darwin":
        system = ["-target", f"{platform.machine()}-apple-macosx15.0", "-sdk", run(["xcrun", "--show-sdk-path"]).strip()]
    else:
        system = ["-target", json.loads(run(["swiftc", "-print-target-info"]))["target"]["triple"]]
    maps = [*ROOT.glob("CSupport/*/module.modulemap"), *build.glob("*.build/module.modulemap")]
    checkouts = next((it / "checkouts" for it in build.parents if (it / "checkouts").is_dir()), ROOT / ".build" / "checkouts")
    maps += [*checkouts.glob("*/Sources/*/module.modulemap"), *checkouts.glob("*/Sources/*/include/module.modulemap")]
    flags = [it for path in sorted(maps) for it in ("-Xcc", f"-fmodule-map-file={path}")]
    flags += [it for path in sorted(ROOT.glob("CSupport/*/include")) for it in ("-Xcc", f"-I{path}")]
    # Its headers are in a folder of their own.
    found = subprocess.run(["pkg-config", "--cflags-only-I", "libpq"], capture_output=True, text=True)
    flags += [it for flag in found.stdout.split() for it in ("-Xcc", flag)]
    archives, warnings, said = [], {}, {}
    with open(work / "log.txt", "w", encoding="utf-8") as log:
        def extract(name):
            graphs = work / "graphs" / name
            graphs.mkdir(parents=True)
            run(["swift", "symbolgraph-extract", "-module-name", name, "-I", build / "Modules", *system, "-minimum-access-level", "public",
                 "-skip-inherited-docs", "-module-cache-path", work / "cache", "-output-dir", graphs, *flags], log)
            if not (graphs / f"{name}.symbols.json").exists():
                sys.exit(f"make-reference.py: no symbols of {name} were extracted; {work / 'log.txt'} says why")
            return graphs

        known = set()
        for name in modules(dump):
            if name not in names and (build / "Modules" / f"{name}.swiftmodule").exists():
                known |= declared(extract(name), name)
        for name in names:
            graphs = extract(name)
            known |= declared(graphs, name)
            catalogue = ROOT / "Sources" / name / f"{name}.docc"
            archive = work / f"{name}.doccarchive"
            dependencies = [it for other in archives for it in ("--dependency", other)]
            said[name] = run(["docc", "convert", *([catalogue] if catalogue.is_dir() else []), "--additional-symbol-graph-dir", graphs, "--output-path", archive,
                        "--fallback-display-name", name, "--fallback-bundle-identifier", name, "--enable-experimental-external-link-support",
                        *dependencies], log)
            warnings[name] = len(re.findall(r"^(?:.*: )?warning: ", said[name], re.M))
            archives.append(archive)
        merged = work / "merged.doccarchive"
        run(["docc", "merge", *archives, "--output-path", merged, "--synthesized-landing-page-name", "Tidemark", "--synthesized-landing-page-kind",
             "Package"], log)
        # Below `api`, where the site has it.
        transformed = work / "transformed"
        run(["docc", "process-archive", "transform-for-static-hosting", merged, "--output-path", transformed, "--hosting-base-path", "api"], log)
    for name in names:
        if not (transformed / "documentation" / name.lower() / "index.html").exists():
            sys.exit(f"make-reference.py: the archive has no page of {name}")
    shutil.rmtree(into, ignore_errors=True)
    shutil.move(transformed, into)
    pages = sum(1 for _ in (into / "documentation").rglob("index.html"))
    for name in names:
        print(f"{name:<24} {warnings[name]:>4} warning{'' if warnings[name] == 1 else 's'} of DocC")
    print(f"{len(names)} modules, {pages:,} pages: {into}. DocC's words are in {work / 'log.txt'}")
    for folder in ("cache", "graphs"):
        shutil.rmtree(work / folder, ignore_errors=True)
    broken = [f"{name}: {it}" for name in names for it in broken_links(said[name], known)]
    if broken:
        sys.exit("\n".join([*dict.fromkeys(broken), f"make-reference.py: {len(broken)} links to symbols lead nowhere"]))
    if options.strict and any(warnings.values()):
        sys.exit("make-reference.py: DocC has warned")


if __name__ == "__main__":
    main()
