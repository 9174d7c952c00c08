#if os(Linux)
    import CTideCore
    import Foundation
    import TestSupport
    import Testing
    import TidemarkModel
    import TidemarkTransfer

    /// Goal: numbers are read and written alike in every locale. Method: imports in a process whose decimal point is a comma.
    @Suite(.timeLimit(.minutes(30))) struct LocaleTests {
        /// Makes a locale in a folder of its own.
        private static func makeLocale(in scratch: Scratch) -> Bool {
            let arguments = ["-i", "de_DE", "-f", "UTF-8", scratch["de_DE.UTF-8"].path]
            guard (try? ChildProcess.run("/usr/bin/localedef", arguments)) != nil else { return false }
            return FileManager.default.fileExists(atPath: scratch["de_DE.UTF-8/LC_NUMERIC"].path)
        }

        /// Makes the comma the decimal point of the whole process.
        private static func useComma(_ scratch: Scratch) {
            guard makeLocale(in: scratch) else { return }
            setenv("LOCPATH", scratch.url.path, 1)
            setlocale(LC_ALL, "de_DE.UTF-8")
        }

        private static var canMakeLocale: Bool { (try? makeLocale(in: Scratch())) ?? false }

        @Test(.enabled(if: canMakeLocale)) func `a locale with a decimal comma changes no imported number`() async {
            await #expect(processExitsWith: .success) {
                let scratch = try Scratch()
                Self.useComma(scratch)
                #expect(String(cString: localeconv()!.pointee.decimal_point) == ",")
                let json =
                    #"{"id": "a", "d": 1.5, "l": [0.1, 1e300, -2.5], "p": {"latitude": 64.3105, "longitude": -20.302}}"#
                try await scratch.importing(lines: [json], .destination())
                let csv = try scratch.write("id,d,e\nb,1.5,-2.5e-3\nc,0.1,1e+2\n", to: "in.csv")
                try await scratch.importing(csv, .destination())
                #expect(
                    try scratch.records("Destination") == [
                        #"{"id":"a","d":1.5,"l":[0.1,1e+300,-2.5],"p":{"latitude":64.3105,"longitude":-20.302}}"#,
                        #"{"id":"b","d":1.5,"e":-0.0025}"#, #"{"id":"c","d":0.1,"e":100.0}"#,
                    ])
            }
        }

        @Test(.enabled(if: canMakeLocale))
        func `a locale with a decimal comma changes no printed number and no parsed one`() async {
            await #expect(processExitsWith: .success) {
                Self.useComma(try Scratch())
                var random = Randomness("numbers")
                for _ in 0..<50_000 {
                    let number = Double(bitPattern: random.next())
                    guard number.isFinite else { continue }
                    let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(TIDE_NUMBER_SIZE)) {
                        let length = tide_number_print(number, 17, $0.baseAddress!)
                        return String(decoding: $0.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
                    }
                    try #require(Double(text) == number)
                    var again = 0.0
                    try #require(tide_number_parse(text, text.utf8.count, &again))
                    try #require(again == number)
                }
            }
        }
    }
#endif
