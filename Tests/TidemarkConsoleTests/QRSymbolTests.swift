import CQREncode
import Testing

@testable import TidemarkConsole

/// Goal: a camera reads the QR code that a page shows. Method: the modules of the picture are read back, and compared with what the standard
/// says of each symbol and with the library's own modules; `make test-console` has the picture read from a page.
@Suite(.timeLimit(.minutes(30))) struct QRSymbolTests {
    private static let secret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
    private static let address = "otpauth://totp/Tidemark:anna%40example.org?secret=\(secret)&issuer=Tidemark"
    /// How many light modules the standard asks for on each side.
    private static let quietZone = 4
    /// How long the texts are: from that of the smallest symbol to that of the largest.
    private static let lengths = [1, 100, 500, 2_331]

    private func text(_ length: Int) -> String {
        String(String(repeating: Self.address, count: length / Self.address.count + 1).prefix(length))
    }

    /// The modules that a picture shows, row by row, with those around the symbol.
    private func modules(_ picture: HTML) throws -> [[Bool]] {
        let box = try #require(picture.text.firstMatch(of: /viewBox="0 0 (\d+) (\d+)" width="(\d+)" height="(\d+)"/))
        let side = try #require(Int(box.1))
        #expect(box.1 == box.2 && box.3 == box.4)
        #expect(try #require(Int(box.3)).isMultiple(of: side), "a module has no whole pixels")
        var rows = [[Bool]](repeating: [Bool](repeating: false, count: side), count: side)
        let path = try #require(picture.text.firstMatch(of: /<path d="([^"]*)" fill="#000">/)).1
        var rest = 0
        for run in path.matches(of: /M(\d+) (\d+)h(\d+)v1h-(\d+)z/) {
            let (column, row, width) = try (#require(Int(run.1)), #require(Int(run.2)), #require(Int(run.3)))
            try #require(run.3 == run.4 && row < side && column + width <= side)
            for place in column..<column + width { rows[row][place] = true }
            rest += run.0.count
        }
        #expect(rest == path.count, "the path has something else")
        return rows
    }

    @Test(arguments: lengths)
    func `a picture has a quiet zone of four modules, and a symbol of one of the sizes`(_ length: Int) throws {
        let rows = try modules(try #require(QRSymbol(text(length))).picture("a picture"))
        let size = rows.count - 2 * Self.quietZone
        #expect((21...177).contains(size) && (size - 21).isMultiple(of: 4))
        let symbol = Self.quietZone..<Self.quietZone + size
        for (row, modules) in rows.enumerated() {
            let dark = modules.indices.filter { modules[$0] }
            #expect(symbol.contains(row) ? dark.allSatisfy(symbol.contains) : dark.isEmpty, "row \(row)")
        }
    }

    @Test(arguments: lengths) func `three corners have finder patterns, with timing patterns between them`(_ length: Int) throws {
        let rows = try modules(try #require(QRSymbol(text(length))).picture("a picture"))
        let (zone, size) = (Self.quietZone, rows.count - 2 * Self.quietZone)
        // A dark square of seven modules, a light one of five, a dark one of three; light modules around them.
        for (top, left) in [(0, 0), (0, size - 7), (size - 7, 0)] {
            for row in -1...7 {
                for column in -1...7 {
                    let distance = max(abs(row - 3), abs(column - 3))
                    let isDark = rows[zone + top + row][zone + left + column]
                    #expect(isDark == (distance != 2 && distance != 4), "\(top + row), \(left + column)")
                }
            }
        }
        for place in 8..<size - 8 {
            #expect(rows[zone + 6][zone + place] == place.isMultiple(of: 2))
            #expect(rows[zone + place][zone + 6] == place.isMultiple(of: 2))
        }
        // The one module that is dark in each symbol.
        #expect(rows[zone + size - 8][zone + 8])
    }

    @Test(arguments: lengths) func `the dark modules are those of the library`(_ length: Int) throws {
        let rows = try modules(try #require(QRSymbol(text(length))).picture("a picture"))
        let bytes = Array(text(length).utf8)
        let code = try #require(QRcode_encodeData(Int32(bytes.count), bytes, 0, QR_ECLEVEL_M))
        defer { QRcode_free(code) }
        let size = Int(code.pointee.width)
        #expect(size == rows.count - 2 * Self.quietZone && QRSymbol(text(length))?.size == size)
        for row in 0..<size {
            let shown = rows[Self.quietZone + row][Self.quietZone..<Self.quietZone + size].map(\.self)
            #expect(shown == (0..<size).map { code.pointee.data[row * size + $0] & 1 == 1 }, "row \(row)")
        }
    }

    @Test func `a text that is too long for a symbol has no picture`() {
        #expect(QRSymbol(String(repeating: "x", count: 2_332)) == nil && QRSymbol("") == nil)
        // The longest address of an account, each of whose characters is encoded.
        let email = String(repeating: "%40", count: 255)
        #expect(QRSymbol(Self.address.replacing("anna%40example.org", with: email)) != nil)
    }

    @Test func `a picture has a description for people who do not see it`() throws {
        let picture = try #require(QRSymbol(Self.address)).picture("\"a\" <b>").text
        #expect(picture.contains("role=\"img\" aria-label=\"&quot;a&quot; &lt;b&gt;\""))
        // The page's policy lets no style in, and a camera needs dark on light.
        #expect(!picture.contains("style") && picture.contains("fill=\"#fff\"") && picture.contains("fill=\"#000\""))
    }
}
