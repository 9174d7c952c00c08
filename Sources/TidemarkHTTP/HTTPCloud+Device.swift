import Foundation

extension HTTPCloud {
    /// The host name of this machine, without a network request; empty if it is not known.
    public static var deviceName: String {
        var name = [UInt8](repeating: 0, count: 256)
        let isKnown = name.withUnsafeMutableBytes { buffer in
            // The last byte stays 0, even if the name does not fit.
            gethostname(buffer.bindMemory(to: CChar.self).baseAddress!, buffer.count - 1) == 0
        }
        return isKnown ? String(decoding: name.prefix { $0 != 0 }, as: UTF8.self) : ""
    }
}

extension HTTPCloud {
    /// The operating system of this machine and its version, such as `Debian GNU/Linux 12` or `macOS 15.1`; empty if it is not
    /// known.
    public static var systemName: String { SystemName.current }
}

/// The name and the version of the operating system.
enum SystemName {
    static let current = here()

    #if os(Linux)
        /// The most bytes of the file that are read.
        private static let size = 64 << 10

        private static func here() -> String {
            for path in ["/etc/os-release", "/usr/lib/os-release"] {
                guard let file = FileHandle(forReadingAtPath: path) else { continue }
                defer { try? file.close() }
                // If the file can't be read, the system is called "Linux".
                guard let bytes = try? file.read(upToCount: size) else { continue }
                return text(osRelease: String(decoding: bytes, as: UTF8.self))
            }
            return "Linux"
        }
    #else
        private static func here() -> String {
            #if os(macOS)
                let name = "macOS"
            #elseif os(iOS)
                let name = "iOS"
            #elseif os(tvOS)
                let name = "tvOS"
            #elseif os(watchOS)
                let name = "watchOS"
            #elseif os(visionOS)
                let name = "visionOS"
            #elseif os(Windows)
                let name = "Windows"
            #else
                let name = ""
            #endif
            let version = ProcessInfo.processInfo.operatingSystemVersion
            let patch = version.patchVersion == 0 ? "" : ".\(version.patchVersion)"
            return name.isEmpty ? "" : "\(name) \(version.majorVersion).\(version.minorVersion)\(patch)"
        }
    #endif

    /// Returns the name and the version from the text of `/etc/os-release`; see os-release(5).
    static func text(osRelease: String) -> String {
        var values: [Substring: String] = [:]
        for line in osRelease.split(whereSeparator: \.isNewline) {
            guard let place = line.firstIndex(of: "=") else { continue }
            values[line[..<place]] = unquoted(line[line.index(after: place)...])
        }
        let name = values["NAME"].flatMap { $0.isEmpty ? nil : $0 } ?? "Linux"
        guard let version = values["VERSION_ID"], !version.isEmpty else { return name }
        return "\(name) \(version)"
    }

    /// Returns the value of a shell assignment without its quotation marks and backslashes.
    private static func unquoted(_ value: Substring) -> String {
        var value = Substring(value.trimmingCharacters(in: .whitespaces))
        if let mark = value.first, mark == "\"" || mark == "'", value.count > 1, value.last == mark {
            value = value.dropFirst().dropLast()
        }
        var (text, isEscaped) = ("", false)
        for character in value {
            if character == "\\", !isEscaped {
                isEscaped = true
            } else {
                text.append(character)
                isEscaped = false
            }
        }
        return text
    }
}
