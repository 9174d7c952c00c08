import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkStore
import TidemarkSync

/// Goal: every error of a cloud has the outcome of the guide's table, in answer to each kind of request: the request is tried
/// again, or the record gets an issue; nothing is lost, other records are sent, and no loop runs without pauses. Method: each
/// code as the answer to each kind of request, once and each time, to a real container; then the cloud answers again, and both
/// sides must be equal.
@Suite(.timeLimit(.minutes(30))) struct CloudErrorTests {
    private static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.repository.appendingPathComponent(path), encoding: .utf8)
    }

    /// The names of the codes in the source.
    private func codes() throws -> [String] {
        try text("Sources/TidemarkCloud/CloudError.swift").split(separator: "\n").compactMap { line -> String? in
            guard line.contains("public static let"), let begin = line.range(of: "Code(\"") else { return nil }
            return String(line[begin.upperBound...].prefix { $0 != "\"" })
        }
    }

    @Test func `the table has every code once, an outcome in each cell, and is in the guide`() throws {
        let codes = try codes()
        #expect(codes.count >= 23)
        #expect(ErrorTable.rows.map(\.code.rawValue).sorted() == (codes + [ErrorTable.unknown.rawValue]).sorted())
        for row in ErrorTable.rows {
            for operation in ScriptedDatabase.Operation.allCases {
                for always in [false, true] {
                    #expect(row.outcome(of: operation, always: always) != nil, "\(row.code.rawValue), \(operation.rawValue)")
                }
            }
        }
        #expect(try text("Documentation/Guides/Sync.md").contains(ErrorTable.text))
    }

    @Test(arguments: ScriptedDatabase.Operation.allCases, [false, true])
    func `each error of a cloud has its outcome, and finally both sides have everything`(
        operation: ScriptedDatabase.Operation, always: Bool
    ) async throws {
        let place = ScriptedDatabase.Operation.allCases.firstIndex(of: operation)! + (always ? 1 : 0)
        for (number, row) in ErrorTable.rows.enumerated() where DrawnTrials.have(number + place) {
            let outcome = try #require(row.outcome(of: operation, always: always))
            try await ErrorTrial(operation).run(row.code, always: always, expecting: outcome)
        }
    }

    @Test func `a requested content is fetched after any error, and the error is reported`() async throws {
        let devices = try await LazyDevices()
        let picture = LazyDevices.picture(1)
        for row in ErrorTable.rows {
            let (code, name) = (row.code, "of \(row.code.rawValue)")
            let own = picture + Data(code.rawValue.utf8)
            try await LazyDevices.save(own, as: name, on: devices.maker)
            try await devices.sync()
            let id = try devices.asset(name)
            devices.database.downloadsFail(with: code)
            // The content may be in another zone of the account, but is not.
            let isAbsent = [CloudError.Code.assetNotAvailable, .zoneNotFound].contains(code)
            let expected = CloudError(isAbsent ? .assetNotAvailable : code, "")
            await #expect(throws: expected, "\(code.rawValue)") {
                try await devices.access.download([id], priority: .userInitiated, progress: nil)
            }
            #expect(!devices.isHere(id))
            devices.database.downloadsFail(with: nil)
            try await devices.access.download([id], priority: .userInitiated, progress: nil)
            #expect(try devices.content(id) == own, "\(code.rawValue)")
        }
    }
}
