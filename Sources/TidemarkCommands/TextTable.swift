/// Prints rows in columns. Widths are those of the first rows; later ones are cut to fit.
struct TextTable {
    private let columns: [String]
    private var waiting: [[String]] = []
    private var widths: [Int]?
    private let widest = 40
    private let sample = 200

    init(columns: [String]) { self.columns = columns }

    mutating func add(_ row: [String]) {
        let row = row.map(Self.onOneLine)
        guard widths == nil else { return show(row) }
        waiting.append(row)
        if waiting.count == sample { settle() }
    }

    mutating func finish() {
        if widths == nil { settle() }
    }

    private mutating func settle() {
        widths = columns.indices.map { index in
            min(widest, waiting.reduce(columns[index].count) { max($0, $1[index].count) })
        }
        show(columns)
        show(widths!.map { String(repeating: "-", count: $0) })
        for row in waiting { show(row) }
        waiting = []
    }

    private func show(_ row: [String]) {
        guard let widths else { return }
        var line = ""
        for (index, cell) in row.enumerated() {
            let width = widths[index]
            let fitting = cell.count > width ? cell.prefix(width - 1) + "…" : cell[...]
            line += fitting
            if index + 1 < row.count { line += String(repeating: " ", count: width - fitting.count + 2) }
        }
        Output.line(line)
    }

    private static func onOneLine(_ text: String) -> String {
        // Control characters of stored text must not reach the terminal.
        String(String.UnicodeScalarView(text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7f ? " " : $0 }))
    }
}
