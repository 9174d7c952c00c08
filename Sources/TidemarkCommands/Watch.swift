import ArgumentParser
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints changes of a container as they are committed.",
        discussion: """
            The command prints each transaction of any process once, without polling. End it with Ctrl-C, and continue later with \
            --since and the token of the last line.

            Examples:
              tidemark watch MyJournal.tidemark
              tidemark watch MyJournal.tidemark --type Destination --json
              tidemark watch MyJournal.tidemark --since "$TOKEN" --count 1
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "Only records of this type.")
    var type: String?

    @Option(help: ArgumentHelp("Starts after this token instead of at the present.", valueName: "token"))
    var since: String?

    @Option(help: ArgumentHelp("Exits after this number of transactions.", valueName: "n"))
    var count: Int?

    @Flag(help: "Prints one JSON object per line; the first has the start token.")
    var json = false

    private struct Line: Encodable {
        struct Change: Encodable {
            let type, record, kind: String
            let fields: [String]
        }
        let scope: String
        let transaction: Int64
        let time, author, origin: String
        let changes: [Change]
        let token: String
    }

    private struct Start: Encodable {
        let token: String
    }

    func validate() throws {
        if let since, ContainerToken(since) == nil {
            throw ValidationError("--since takes a token that 'watch --json' has printed")
        }
        if let count, count < 1 { throw ValidationError("--count takes a number from 1 on") }
    }

    func run() async throws {
        try await reportingErrors {
            let journal = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: fileURL(container, "the container")))
            let start = try since.flatMap { ContainerToken($0) } ?? journal.historyToken()
            if json { try Output.json(Start(token: start.description)) }
            var changes = journal.changes(since: start).makeAsyncIterator()
            var seen = 0
            while seen < count ?? .max, let change = try await changes.next() {
                let wanted = change.changes.filter { type == nil || $0.record.type == type }
                guard !wanted.isEmpty else { continue }
                seen += 1
                try show(change, wanted, token: changes.token)
            }
        }
    }

    private func show(_ change: ContainerChange, _ changes: [RecordChange], token: ContainerToken) throws {
        let (it, time) = (change.transaction, Timestamp.text(microseconds: change.transaction.time))
        if json {
            return try Output.json(
                Line(
                    scope: change.scope.name, transaction: it.id, time: time, author: it.author, origin: it.origin.rawValue,
                    changes: changes.map {
                        .init(type: $0.record.type, record: $0.record.name, kind: "\($0.kind)", fields: $0.fields)
                    }, token: token.description))
        }
        for change in changes {
            let fields = change.fields.isEmpty ? "" : "  (\(change.fields.joined(separator: ", ")))"
            try Output.line("\(time)  \(it.author)  \(change.kind) \(change.record.title)\(fields)")
        }
    }
}
