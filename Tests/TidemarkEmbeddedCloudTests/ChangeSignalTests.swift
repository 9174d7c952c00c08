import Foundation
import TestSupport
import Testing

@testable import TidemarkEmbeddedCloud

@Suite("The contract of change signals, in a folder", .timeLimit(.minutes(30)))
struct ChangeSignalTests {
    @Test(arguments: ChangeSignalContract.checks)
    func `a folder passes signals on`(_ check: StorageCheck<ChangeSignalContract.Subject>) async throws {
        let scratch = try Scratch()
        for name in ["journal", "other"] {
            try FileManager.default.createDirectory(at: scratch[name], withIntermediateDirectories: true)
        }
        try await check.run(
            .init {
                try ZoneChangeNotifier(scratch["journal"])
            } other: {
                try ZoneChangeNotifier(scratch["other"])
            })
    }
}
