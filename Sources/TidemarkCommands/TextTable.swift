/// Prints rows in columns. The first rows decide the widths. Longer cells of later rows are cut.
struct TextTable {
    private let columns: [String]
    /// Whether the last column is cut, too. It need not be, because no column follows it.
    private let cutsLast: Bool
    private var waiting: [[String]] = []
    private var widths: [Int]?
    private let widest = 40
    private let sample = 200

    init(columns: [String], cutsLast: Bool = true) {
        self.columns = columns
        self.cutsLast = cutsLast
    }

    mutating func add(_ row: [String]) throws {
        let row = row.map(Output.printable)
        guard widths == nil else { return try show(row) }
        waiting.append(row)
        if waiting.count == sample { try fixWidths() }
    }

    mutating func finish() throws {
        if widths == nil { try fixWidths() }
    }

    private mutating func fixWidths() throws {
        widths = columns.indices.map { index in
            min(widest, waiting.reduce(columns[index].count) { max($0, $1[index].count) })
        }
        try show(columns)
        try show(widths!.map { String(repeating: "-", count: $0) })
        for row in waiting { try show(row) }
        waiting = []
    }

    private func show(_ row: [String]) throws {
        guard let widths else { return }
        var line = ""
        for (index, cell) in row.enumerated() {
            let width = widths[index]
            let isCut = cell.count > width && (cutsLast || index + 1 < row.count)
            let fitting = isCut ? cell.prefix(width - 1) + "…" : cell[...]
            line += fitting
            if index + 1 < row.count { line += String(repeating: " ", count: width - fitting.count + 2) }
        }
        try Output.line(line)
    }
}
