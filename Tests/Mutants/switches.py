"""Plants many mutants in one build. TIDEMARK_MUTANT has the number of the mutant that a program chooses when it starts. The file that
TIDEMARK_MUTANTS_REACHED names has a byte for each mutant, which a program sets to 1 when it reaches the mutant.

A mutant that can't be built beside the code that it replaces is removed, and the rest is built again."""

import pathlib
import re

import operators

# The size of that file: more bytes than a build has mutants.
SIZE = 65_536
# The source that the switched lines call. Each module gets a copy.
MUTANT = """\
import Foundation

/// Chooses the mutant that the environment names.
enum Mutant {
    private static let active = getenv("TIDEMARK_MUTANT").flatMap { Int(String(cString: $0)) } ?? 0
    private nonisolated(unsafe) static let reached: UnsafeMutablePointer<UInt8>? = {
        guard let path = getenv("TIDEMARK_MUTANTS_REACHED") else { return nil }
        let file = open(path, O_RDWR | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        guard let bytes = mmap(nil, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), bytes != MAP_FAILED else { return nil }
        return bytes.assumingMemoryBound(to: UInt8.self)
    }()

    @inline(never) static func isActive(_ number: Int) -> Bool {
        reached?[number] = 1
        return active == number
    }
    static func flipped(_ number: Int, _ value: Bool) -> Bool { isActive(number) ? !value : value }
    static func number<T: Numeric>(_ number: Int, _ value: T) -> T { isActive(number) ? value + 1 : value }
    static func least<T: Comparable>(_ number: Int, _ values: T...) -> T { isActive(number) ? values.max()! : values.min()! }
    static func greatest<T: Comparable>(_ number: Int, _ values: T...) -> T { isActive(number) ? values.min()! : values.max()! }
}
""".replace("SIZE", str(SIZE))


def declaration(number, precedence, operands, before, after):
    """Returns the source of a mutant's infix operator, which chooses between the two versions."""
    name = operators.infix_name(number)
    lines = [f"infix operator {name}: {precedence}"]
    choice = f"Mutant.isActive({number}) ? {after} : {before}"
    if operands == "Bool":
        lines.append(f"func {name} (a: Bool, b: @autoclosure () throws -> Bool) rethrows -> Bool {{ try {choice} }}")
    elif operands == "AdditiveArithmetic":
        lines.append(f"func {name} <T: AdditiveArithmetic>(a: T, b: T) -> T {{ {choice} }}")
    else:
        lines.append(f"func {name} <T: {operands}>(a: T, b: T) -> Bool {{ {choice} }}")
        if operands == "Equatable":
            lines.append(f"func {name} <T>(a: T?, b: _OptionalNilComparisonType) -> Bool {{ {choice} }}")
    return "\n".join(lines) + "\n"


class Plan:
    """The mutants of one build, by their numbers."""

    def __init__(self, folder, mutants):
        self.folder, self.mutants, self.left_out = folder, {}, []
        taken = set()
        for mutant in mutants:
            # Only the first mutant of a line is planted.
            if mutant["change"].switched is None or (mutant["file"], mutant["line"]) in taken:
                self.left_out.append(mutant)
                continue
            taken.add((mutant["file"], mutant["line"]))
            self.mutants[len(self.mutants) + 1] = mutant
        self.whole = {mutant["file"]: (folder / mutant["file"]).read_text() for mutant in self.mutants.values()}
        self.modules = set()

    def write(self):
        """Writes the files with all remaining mutants."""
        declarations = {}
        for file, text in self.whole.items():
            lines = text.split("\n")
            module = "/".join(file.split("/")[:2])
            for number, mutant in self.mutants.items():
                if mutant["file"] != file:
                    continue
                lines[mutant["line"] - 1] = mutant["change"].with_switch(number)
                if mutant["change"].infix:
                    declarations.setdefault(module, []).append(declaration(number, *mutant["change"].infix))
            declarations.setdefault(module, [])
            self.replace(file, "\n".join(lines))
        for module, texts in declarations.items():
            self.modules.add(module)
            self.replace(f"{module}/Mutant.swift", MUTANT + "\n" + "\n".join(texts))

    def replace(self, file, text):
        place = self.folder / file
        if not place.exists() or place.read_text() != text:
            place.write_text(text)

    def drop(self, log):
        """Removes the mutants that the compiler reports. Returns how many these are."""
        places = set(re.findall(r"^(\S+?\.swift):(\d+):\d+: error: ", pathlib.Path(log).read_text(errors="replace"), re.M))
        dropped = []
        for path, line in places:
            near = [(abs(int(line) - mutant["line"]), number) for number, mutant in self.mutants.items()
                    if path.endswith(mutant["file"]) and abs(int(line) - mutant["line"]) <= 12]
            # The compiler reports the mutant's line, or another line of the same statement.
            exact = [number for distance, number in near if distance == 0]
            dropped += exact or [min(near)[1]] if near else []
        for number in set(dropped):
            self.left_out.append(self.mutants.pop(number))
        return len(set(dropped))

    def undo(self):
        for file, text in self.whole.items():
            (self.folder / file).write_text(text)
        for module in self.modules:
            (self.folder / module / "Mutant.swift").unlink(missing_ok=True)
