import Foundation

/// The trials of a long table that one run makes: a third, chosen at random and printed. With `TIDEMARK_TRIALS=all` a run makes
/// all trials, with 0, 1 or 2 the third of that number.
public enum DrawnTrials {
    private static let count = 3

    /// The number of the third; `nil` for all trials.
    private static let part: Int? = {
        let given = ProcessInfo.processInfo.environment["TIDEMARK_TRIALS"]
        guard given != "all" else { return nil }
        let part = given.flatMap { Int($0) }.map { abs($0 % count) } ?? Int.random(in: 0..<count)
        print("a third of the trials of long tables: TIDEMARK_TRIALS=\(part)")
        return part
    }()

    /// Returns whether this run takes a trial.
    ///
    /// - Parameter number: The number of the trial in its table.
    public static func have(_ number: Int) -> Bool { part.map { number % count == $0 } ?? true }
}
