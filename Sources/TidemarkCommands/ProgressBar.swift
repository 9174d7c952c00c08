import ArgumentParser
import Foundation

/// When a command shows its progress.
enum ProgressMode: String, CaseIterable, ExpressibleByArgument {
    /// On a terminal.
    case auto
    case always, never

    var isShown: Bool {
        switch self {
        case .auto: isatty(STDERR_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
        case .always: true
        case .never: false
        }
    }
}

/// A line on standard error that shows progress. It is overwritten as work goes on, and erased at the end.
final class ProgressBar {
    private let isShown: Bool
    private let start = ContinuousClock.now
    private var lastShown: ContinuousClock.Instant?

    init(_ mode: ProgressMode) { isShown = mode.isShown }

    /// - Parameters:
    ///   - done: The finished part of `total`, in the same unit.
    ///   - rate: The rate per second since the start, of the objects that `label` counts.
    func show(_ label: String, done: Int, total: Int?) {
        let now = ContinuousClock.now
        // Work that is done within 0.3 s needs no bar.
        guard isShown, now - start > .milliseconds(300), lastShown.map({ now - $0 > .milliseconds(100) }) ?? true else { return }
        lastShown = now
        let elapsed = (now - start) / .seconds(1)
        var text = label
        if let total, total > 0 {
            let fraction = min(1, Double(done) / Double(total))
            let filled = Int(fraction * 24)
            let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 24 - filled)
            text = "\(bar) \(String(format: "%3.0f", fraction * 100))%  \(label)"
            if fraction > 0.01 { text += "  \(Wording.duration(.seconds(elapsed / fraction - elapsed))) left" }
        }
        FileHandle.standardError.write(Data("\r\u{1b}[2K\(text.prefix(Self.width()))".utf8))
    }

    func finish() {
        if lastShown != nil { FileHandle.standardError.write(Data("\r\u{1b}[2K".utf8)) }
        lastShown = nil
    }

    var elapsed: Duration { ContinuousClock.now - start }

    private static func width() -> Int {
        var size = winsize()
        let isKnown = ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        return isKnown ? Int(size.ws_col) - 1 : 119
    }
}
