import CQREncode

/// A QR code (ISO/IEC 18004): a text as a square of dark and light modules, which a camera reads.
struct QRSymbol {
    /// How many modules a side has.
    let size: Int
    /// Whether each module is dark, row by row.
    private let isDark: [Bool]

    /// How many light modules are on each side of the symbol, so that a camera finds it.
    private static let quietZone = 4
    /// The width of a module in pixels. Modules of whole pixels have sharp edges.
    private static let moduleWidth = 5

    /// Encodes a text, in a symbol that can be read with a seventh of it covered.
    ///
    /// - Returns: `nil` for a text of more than 2,331 bytes, which no symbol can hold.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count <= 2_331, let code = QRcode_encodeData(Int32(bytes.count), bytes, 0, QR_ECLEVEL_M) else { return nil }
        defer { QRcode_free(code) }
        guard let data = code.pointee.data else { return nil }
        size = Int(code.pointee.width)
        // Bit 0 is the module's colour. The other bits tell its purpose.
        isDark = UnsafeBufferPointer(start: data, count: size * size).map { $0 & 1 == 1 }
    }

    /// The symbol as a picture. It is dark on light in each colour scheme, because some cameras do not read light symbols on
    /// dark.
    ///
    /// - Parameter label: The description of the picture, for people who do not see it.
    func picture(_ label: String) -> HTML {
        let side = size + 2 * Self.quietZone
        let width = side * Self.moduleWidth
        return """
            <svg class="symbol" viewBox="0 0 \(side) \(side)" width="\(width)" height="\(width)" shape-rendering="crispEdges" role="img" aria-label="\(label)">\
            <rect width="\(side)" height="\(side)" fill="#fff"></rect><path d="\(path)" fill="#000"></path></svg>
            """
    }

    /// A rectangle for each run of dark modules in a row.
    private var path: String {
        var path = ""
        for row in 0..<size {
            var column = 0
            while column < size {
                let start = column
                while column < size, isDark[row * size + column] { column += 1 }
                if column > start {
                    path += "M\(start + Self.quietZone) \(row + Self.quietZone)h\(column - start)v1h-\(column - start)z"
                }
                column += 1
            }
        }
        return path
    }
}
