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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / ".build" / "debug", help="the products of a debug build (.build/debug)")
    parser.add_argument("--into", type=pathlib.Path, default=ROOT / ".build" / "docs", help="the archive, which is replaced (.build/docs)")
    parser.add_argument("--strict", action="store_true", help="end with 1 if DocC warns")
    options = parser.parse_args()
    build, into = options.build.resolve(), options.into.resolve()
    if into.exists() and any(into.iterdir()) and not (into / "metadata.json").exists():
        sys.exit(f"make-reference.py: {into} is there and is no archive; remove it, or name another folder with --into")
    names = documented(json.loads(run(["swift", "package", "dump-package"])))
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
    archives, warnings, broken = [], {}, 0
    with open(work / "log.txt", "w", encoding="utf-8") as log:
        for name in names:
            graphs = work / "graphs" / name
            graphs.mkdir(parents=True)
            run(["swift", "symbolgraph-extract", "-module-name", name, "-I", build / "Modules", *system, "-minimum-access-level", "public",
                 "-skip-inherited-docs", "-module-cache-path", work / "cache", "-output-dir", graphs, *flags], log)
            if not (graphs / f"{name}.symbols.json").exists():
                sys.exit(f"make-reference.py: no symbols of {name} were extracted; {work / 'log.txt'} says why")
            catalogue = ROOT / "Sources" / name / f"{name}.docc"
            archive = work / f"{name}.doccarchive"
            dependencies = [it for other in archives for it in ("--dependency", other)]
            said = run(["docc", "convert", *([catalogue] if catalogue.is_dir() else []), "--additional-symbol-graph-dir", graphs, "--output-path", archive,
                        "--fallback-display-name", name, "--fallback-bundle-identifier", name, "--enable-experimental-external-link-support",
                        *dependencies], log)
            warnings[name] = len(re.findall(r"^(?:.*: )?warning: ", said, re.M))
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
    if options.strict and any(warnings.values()):
        sys.exit("make-reference.py: DocC has warned")


if __name__ == "__main__":
    main()
