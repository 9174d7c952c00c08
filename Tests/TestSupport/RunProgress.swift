import Foundation

/// How far a series of seeded runs has come, for proofs that take long.
///
/// The seed of the first run is that of ``Randomness``, or a given one; the seeds of the others follow it. If `TIDEMARK_PROGRESS`
/// names a folder, a file in it keeps the seed and how many runs are done, and the next process goes on behind them. If a person
/// has chosen another seed, the runs begin again.
public struct RunProgress: Sendable {
    public let seed: UInt64
    /// Runs that an earlier process has done.
    public let begin: UInt64
    private let purpose: String
    private let runs: UInt64
    private let interval: UInt64
    private let file: URL?

    /// The time limit of a suite in minutes: a proof may take a day.
    public static var minutes: Int { ProcessInfo.processInfo.environment["TIDEMARK_PROGRESS"] == nil ? 30 : 24 * 60 }

    /// - Parameters:
    ///   - interval: After how many runs the file is written.
    ///   - first: The seed of the first run.
    ///   - isChosen: Whether a person has chosen `first`; then a different seed in the file does not count.
    public init(_ purpose: String, runs: UInt64, interval: UInt64, first: UInt64? = nil, isChosen: Bool = false) {
        let environment = ProcessInfo.processInfo.environment
        let given = first ?? Randomness(purpose).seed
        let isChosen = isChosen || first == nil && environment["TIDEMARK_SEED"].flatMap { UInt64($0) } != nil
        file = environment["TIDEMARK_PROGRESS"].map {
            URL(fileURLWithPath: $0).appendingPathComponent(purpose.replacingOccurrences(of: " ", with: "-"))
        }
        let text = file.flatMap { try? String(contentsOf: $0, encoding: .utf8) } ?? ""
        let kept = text.split(separator: " ").compactMap { UInt64($0) }
        if kept.count == 2, !isChosen || kept[0] == given {
            (seed, begin) = (kept[0], min(kept[1], runs))
            print("\(purpose): goes on behind \(begin) of \(runs) runs, which began with seed \(seed)")
        } else {
            (seed, begin) = (given, 0)
        }
        (self.purpose, self.runs, self.interval) = (purpose, runs, max(1, interval))
    }

    /// Stores how many runs are done, and prints it after each twentieth of them.
    public func note(_ done: UInt64) throws {
        guard let file, done % interval == 0 || done == runs else { return }
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data("\(seed) \(done)".utf8).write(to: file, options: .atomic)
        if done * 20 / runs != (done - min(done, interval)) * 20 / runs {
            print("\(purpose): \(done) of \(runs) runs, the seed of the next is \(seed &+ done)")
            fflush(nil)
        }
    }
}
