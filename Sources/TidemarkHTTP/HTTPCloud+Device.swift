import Foundation

extension HTTPCloud {
    /// What this machine calls itself, without asking the network; empty where it does not say.
    public static var deviceName: String {
        var name = [UInt8](repeating: 0, count: 256)
        let isKnown = name.withUnsafeMutableBytes { buffer in
            // The last byte stays the end, whatever does not fit.
            gethostname(buffer.bindMemory(to: CChar.self).baseAddress!, buffer.count - 1) == 0
        }
        return isKnown ? String(decoding: name.prefix { $0 != 0 }, as: UTF8.self) : ""
    }
}
