import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkTransfer

/// Goal: whatever a source names, and whatever is replaced in it meanwhile, an import reads nothing outside of the source's
/// folder. Method: a secret outside, whose bytes may not come into the container, and whose names may not come into the rejects
/// file; paths of all kinds in each format, names in archives, links in folders; a thread that replaces files and folders by
/// links to the secret during imports.
@Suite(.serialized, .timeLimit(.minutes(30))) struct HostileSourceTests {
    private static let farUp = String(repeating: "../", count: 2000) + "etc/passwd"
    private static let farAround = "pictures/" + String(repeating: "./", count: 3000) + "../../secret.png"
    private static let longName = String(repeating: "p", count: 255)
    private static let longerName = String(repeating: "p", count: 256)
    private static let longestName = String(repeating: "p", count: 5000)
    private static let longPath = String(repeating: "p/", count: 3000) + "x"

    private static let outside: [String] = [
        // Absolute paths.
        "/etc/passwd", "//etc/passwd", "/", "//", "/./etc/passwd", "/../etc/passwd", "/proc/self/environ",
        "/proc/self/fd/0",
        "/proc/self/cwd/secret.png", "/dev/zero", "/dev/stdin", "/dev/fd/0", "/dev/urandom",
        // Paths that go up, even if they come back.
        "..", "../", "../secret.png", "../../etc/passwd", "pictures/../../secret.png", "./../secret.png",
        "pictures/./../../secret.png", "pictures//../../secret.png", "pictures/..", "pictures/../pictures/good.png",
        "../in/pictures/good.png", "../secret.png ", "../secret.png\n", "pictures/../to-file.png",
        farUp,
        farAround,
        // Links.
        "to-file.png", "absolute.png", "to-folder/secret.png", "to-secrets/secret.png", "to-secrets/", "loop.png",
        "loop-a/x.png", "dangling.png", "to-link.png", "inside.png", "proc/environ", "proc/fd/0",
        "here/pictures/good.png",
        "slash/etc/passwd", "deep/up/secret.png", "to-folder/in/pictures/good.png",
    ]

    private static let missing: [String] = [
        "pictures/good.png/", "pictures/good.png/.", "pictures/good.png/x", "pictures/good.png/../good.png",
        ".../secret.png", ".. /secret.png", " ../secret.png", "..../secret.png",
        // Percent-encoded.
        ".%2e/secret.png", "%2e%2e/secret.png", "%2e%2e%2fsecret.png", "..%2fsecret.png", "%252e%252e/secret.png",
        "..%00/secret.png", "..%c0%afsecret.png",
        // Paths of other systems.
        "..\\secret.png", "pictures\\..\\..\\secret.png", "\\\\server\\share\\secret.png", "C:\\secret.png",
        "C:/secret.png",
        // Addresses.
        "file:///etc/passwd", "file:../secret.png", "file://localhost/etc/passwd", "http://127.0.0.1:1/secret.png",
        "data:image/png;base64,AAAA", "asset:",
        // Texts that a shell would expand.
        "~/secret.png", "~root/secret.png", "$HOME/secret.png", "${PWD}/../secret.png", "$(cat ../secret.png)", "*.png",
        "pictures/*.png", "{..,pictures}/secret.png",
        // Characters that look like dots and slashes, or are invisible.
        "\u{ff0e}\u{ff0e}/secret.png", "\u{2025}/secret.png", "\u{2024}\u{2024}/secret.png", "..\u{2215}secret.png",
        "..\u{2044}secret.png", "..\u{ff0f}secret.png", "\u{202e}gnp.terces/..", "\u{feff}../secret.png",
        "\u{200b}../secret.png",
        // Control characters.
        "..\n/secret.png", "\t../secret.png", "\r../secret.png", "\u{1b}[2J../secret.png", "..\u{7f}/secret.png",
        // Long names.
        longName, longerName, longestName,
        longPath,
    ]

    /// Paths that lead to no file of the folder, with the code of their refusal.
    private static let refused: [(code: String, paths: [String])] = [
        ("assetOutsideRoot", outside),
        ("assetNotAFile", [".", "./", "pictures", "pictures/", "pictures/.", "fifo.png"]),
        ("assetMissing", missing),
        ("assetUnknown", ["asset:../../secret.png", "asset:/etc/passwd"]),
        ("malformed", ["../secret.png\0.png", "pictures/good.png\0../secret.png", "\0"]),
    ]

    /// Overlong encodings of dots and slashes, and other invalid UTF-8.
    private static let overlong: [[UInt8]] = [
        [0xc0, 0xae, 0xc0, 0xae, 0x2f, 0x61], [0x2e, 0x2e, 0xc0, 0xaf, 0x61], [0xe0, 0x80, 0xae, 0xe0, 0x80, 0xae, 0x2f, 0x61],
        [0xf0, 0x80, 0x80, 0xae, 0x2f, 0x61], [0xff, 0xfe, 0x2f, 0x61], [0xed, 0xa0, 0x80, 0x2f, 0x61],
    ]

    /// A hard link can't be told from the file, because it has the file's permissions.
    private static let good = [
        "pictures/good.png", "./pictures/good.png", "pictures//good.png", "pictures/./good.png", ".//pictures///good.png",
        "hard.png",
    ]

    private static let secret = 98_765_432
    private static let secretName = "of-nobody-else"
    private static let secretText = Data("Number\0\(secret)".utf8)

    /// A folder `in` with every kind of link and file, and the secret beside it, to which nothing may lead.
    private func folder() throws -> Scratch {
        let scratch = try Scratch()
        for path in ["secret.png", "secrets/secret.png", "secrets/\(Self.secretName).png"] {
            try scratch.write(Picture.png(Self.secret), to: path)
        }
        try scratch.write(Picture.png(1), to: "in/pictures/good.png")
        try scratch.write(Picture.png(2), to: "linked.png")
        try scratch.write("", to: "in/deep/keep")
        let links = [
            ("to-file.png", "../secret.png"), ("absolute.png", scratch["secret.png"].path), ("to-folder", ".."),
            ("to-secrets", "../secrets"), ("loop.png", "loop.png"), ("loop-a", "loop-b"), ("loop-b", "loop-a"),
            ("dangling.png", "nowhere"), ("to-link.png", "to-file.png"), ("inside.png", "pictures/good.png"),
            ("proc", "/proc/self"),
            ("here", "."), ("slash", "/"), ("deep/up", "../.."),
        ]
        for (name, target) in links {
            try FileManager.default.createSymbolicLink(atPath: scratch["in/\(name)"].path, withDestinationPath: target)
        }
        #expect(link(scratch["linked.png"].path, scratch["in/hard.png"].path) == 0)
        #expect(mkfifo(scratch["in/fifo.png"].path, 0o600) == 0)
        return scratch
    }

    /// The files of the container, and the rejects file, that contain something of the secret.
    private func betrayed(_ scratch: Scratch, _ needles: [Data]) throws -> [String] {
        var files = ["rejects.jsonl"]
        // An import that stores nothing leaves no container.
        if FileManager.default.fileExists(atPath: scratch.container.path) {
            files += try FileManager.default.subpathsOfDirectory(atPath: scratch.container.path).map { "Test.tidemark/\($0)" }
        }
        return files.filter { file in
            // Folders have no content.
            guard let content = try? Data(contentsOf: scratch[file]) else { return false }
            return needles.contains { content.range(of: $0) != nil }
        }
    }

    private static func json(_ path: [UInt8]) -> [UInt8] {
        var text: [UInt8] = [0x22]
        for byte in path {
            switch byte {
            case 0x22, 0x5c: text += [0x5c, byte]
            case 0..<0x20: text += Array("\\u00\(byte < 16 ? "0" : "")\(String(byte, radix: 16))".utf8)
            default: text.append(byte)
            }
        }
        return text + [0x22]
    }

    private static func manifest(_ paths: [[UInt8]], _ format: ImportFormat) -> Data {
        var rows: [[UInt8]] = []
        for (number, path) in paths.enumerated() {
            if format == .csv {
                // No path has a quotation mark.
                rows.append(Array("r\(number),\"".utf8) + path + [0x22])
            } else {
                rows.append(Array("{\"id\": \"r\(number)\", \"image\": ".utf8) + json(path) + [0x7d])
            }
        }
        let separator: [UInt8] = Array((format == .json ? ",\n" : "\n").utf8)
        let text = Data(rows.joined(separator: separator))
        switch format {
        case .csv: return Data("id,image\n".utf8) + text + Data("\n".utf8)
        case .json: return Data("[".utf8) + text + Data("]".utf8)
        default: return text + Data("\n".utf8)
        }
    }

    @Test(arguments: [ImportFormat.jsonl, .json, .csv])
    func `a path that leads out of the folder is refused, and nothing outside is read`(format: ImportFormat) async throws {
        let scratch = try folder()
        var (paths, codes): ([[UInt8]], [String]) = ([], [])
        for (code, group) in Self.refused {
            paths += group.map { Array($0.utf8) }
            codes += group.map { _ in code }
        }
        let secret = scratch["secret.png"].path
        let absolute = [
            (secret, "assetOutsideRoot"), ("/proc/self/root" + secret, "assetOutsideRoot"),
            ("proc/root" + secret, "assetOutsideRoot"),
            ("slash" + secret, "assetOutsideRoot"), ("file:" + secret, "assetMissing"), ("FILE:" + secret, "assetMissing"),
        ]
        paths += absolute.map { Array($0.0.utf8) }
        codes += absolute.map(\.1)
        // Making a device needs a right that not every user has.
        if mknod(scratch["in/zero.png"].path, S_IFCHR | 0o666, 0x105) == 0 {
            paths.append(Array("zero.png".utf8))
            codes.append("assetNotAFile")
        }
        #if os(Linux)
            #expect(mknod(scratch["in/socket.png"].path, S_IFSOCK | 0o600, 0) == 0)
            paths.append(Array("socket.png".utf8))
            codes.append("assetNotAFile")
        #endif
        paths += Self.overlong
        codes += Self.overlong.map { _ in "invalidUTF8" }
        #expect(paths.count >= 60)
        let manifest = Self.manifest(paths + Self.good.map { Array($0.utf8) }, format)
        let options = ImportOptions.destination {
            $0.format = format
            $0.assetFields = ["image"]
            $0.rejects = scratch["rejects.jsonl"]
        }
        let summary = try await scratch.importing(try scratch.write(manifest, to: "in/manifest"), options)
        #expect(summary.changes == ChangeCounts(inserted: Self.good.count))
        #expect(summary.assets.stored == 2)
        let found = try scratch.rejects().map(\.code)
        #expect(found.count == paths.count)
        for (number, (found, code)) in zip(found, codes).enumerated() where found != code {
            Issue.record("'\(String(decoding: paths[number].prefix(80), as: UTF8.self))' is \(found), not \(code)")
        }
        #expect(try betrayed(scratch, [Self.secretText]) == [])
        #expect(try scratch.verification().isOK)
    }

    @Test func `links, pipes and devices in a folder of photos are not followed`() async throws {
        let scratch = try folder()
        let summary = try await scratch.importing(scratch["in"], ImportOptions(type: "Photo", rejects: scratch["rejects.jsonl"]))
        #expect(summary.changes == ChangeCounts(inserted: 2))
        #expect(try betrayed(scratch, [Self.secretText, Data(Self.secretName.utf8)]) == [])
        #expect(try Set(scratch.rejects().map(\.code)) == ["assetOutsideRoot", "assetNotAFile"])
        #expect(try scratch.verification().isOK)
    }

    @Test(arguments: [
        "../", "a/../../", "./../", "a/./../../", ".//../", "/", "//", "/tmp/", "./", "a//b/", "..\\", "a\\..\\..\\", "C:\\",
        "C:/", "%2e%2e/",
        "..%2f", "\u{ff0e}\u{ff0e}/", "..\u{2215}", "\u{202e}", "~/", ".../", ".. /", "\u{1b}[2J",
        "../../../../../../../../../../tmp/",
    ])
    func `a file of an archive stays below the archive's folder, or the archive is refused`(place: String) async throws {
        let scratch = try Scratch()
        let name = "evil-\(UUID().uuidString).jsonl"
        let entries = [(place + name, Data("{\"id\": \"a\"}\n".utf8))]
        let archive = try scratch.write(try PackedFile.zip(entries), to: "in.zip")
        do {
            try await scratch.importing(archive, .destination())
        } catch let error as ImportError {
            #expect([.manifest, .source].contains(error.code), "\(error.message)")
        }
        let temporary = FileManager.default.temporaryDirectory
        let others = ["/tmp", "/"].map { URL(fileURLWithPath: $0) }
        for folder in [temporary, temporary.deletingLastPathComponent(), scratch.url] + others {
            #expect(!FileManager.default.fileExists(atPath: folder.appendingPathComponent(name).path))
        }
    }

    // Replacements during an import

    /// A source with many folders, and the same files with other contents, and more of them, in a folder `secrets`.
    private func twins() throws -> Scratch {
        let scratch = try Scratch()
        var lines: [String] = []
        for number in 0..<400 {
            let path = "many/\(number)/0.png"
            try scratch.write(Picture.png(number % 7), to: "in/\(path)")
            for name in [path, "many/\(number)/\(Self.secretName).png"] {
                try scratch.write(Picture.png(Self.secret), to: "secrets/\(name)")
            }
            lines.append("{\"id\": \"r\(number)\", \"image\": \"\(path)\"}")
        }
        try scratch.writeLines(lines, to: "in/manifest.jsonl")
        return scratch
    }

    /// Replaces files and folders of the source by links to those in `secrets`, and back, until it is told to end.
    private static func swap(_ folder: String, while isWanted: () -> Bool) {
        var turn = 0
        while isWanted() {
            let name = turn % 2 == 0 ? "many" : turn % 4 == 1 ? "many/\(turn % 400)" : "many/\(turn % 400)/0.png"
            let (path, aside, way) = ("\(folder)/in/\(name)", "\(folder)/aside", "\(folder)/way")
            guard symlink("\(folder)/secrets/\(name)", way) == 0 else { return }
            guard rename(path, aside) == 0, rename(way, path) == 0 else { return }
            usleep(UInt32([0, 100, 1000, 3000][turn / 2 % 4]))
            guard rename(path, way) == 0, rename(aside, path) == 0, unlink(way) == 0 else { return }
            turn += 1
        }
    }

    @Test func `a file that is replaced by a link during an import is not read`() async throws {
        let scratch = try twins()
        let isDone = LockedValue(false)
        let isEnded = LockedValue(false)
        let (done, end) = AsyncStream.makeStream(of: Void.self)
        let folder = scratch.url.path
        // A thread of its own: the threads of tasks are few, and the import needs them.
        Thread.detachNewThread {
            Self.swap(folder) { !isDone.withLock { $0 } }
            isEnded.withLock { $0 = true }
            end.finish()
        }
        var (taken, refused) = (0, 0)
        for number in 0..<8 {
            let isFolder = number % 2 == 0
            let options =
                isFolder
                ? ImportOptions(type: "Photo", rejects: scratch["rejects.jsonl"])
                : ImportOptions.destination {
                    $0.assetFields = ["image"]
                    $0.rejects = scratch["rejects.jsonl"]
                }
            let summary = try await scratch.importing(isFolder ? scratch["in"] : scratch["in/manifest.jsonl"], options)
            taken += summary.assets.referenced
            refused += summary.rejected
            #expect(try betrayed(scratch, [Self.secretText, Data(Self.secretName.utf8)]) == [], "import \(number)")
            if FileManager.default.fileExists(atPath: scratch.container.path) {
                try FileManager.default.removeItem(at: scratch.container)
            }
        }
        let hasFailed = isEnded.withLock { $0 }
        #expect(!hasFailed, "the thread could not exchange anything more")
        isDone.withLock { $0 = true }
        for await _ in done {}
        // Some paths must be read and some refused, or the test would show nothing.
        #expect(taken > 0 && refused > 0)
    }
}
