import ArgumentParser
import TidemarkAdministration

/// How the commands list what a cloud has: as a table for people, or as a JSON object a line.
struct AdminListing: ParsableArguments {
    @OptionGroup var place: AdminData

    @Flag(help: "Prints one JSON object per line.")
    var json = false

    /// - Parameter none: What is said to people when there is nothing.
    func show<Line: Encodable>(
        _ lines: [Line], columns: [String], cutsLast: Bool = true, none: String, _ cells: (Line) -> [String]
    ) throws {
        if json {
            for line in lines { try Output.json(line) }
            return
        }
        guard !lines.isEmpty else { return try Output.line(none) }
        var table = TextTable(columns: columns, cutsLast: cutsLast)
        for line in lines { try table.add(cells(line)) }
        try table.finish()
    }
}

/// How the commands end what was given out, by its identifier.
struct AdminRevocation: ParsableArguments {
    @Argument(help: "The identifier, or its beginning.")
    var id: String

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    /// - Parameters:
    ///   - what: What it is, in one word; `tidemark admin WHAT list` shows them.
    ///   - all: All there are.
    func run<Kind: Identifiable>(
        _ what: String, of all: (Administration) async throws -> [Kind], by revoke: (Administration, String) async throws -> Void
    ) async throws where Kind.ID == String {
        try await reportingErrors {
            let administration = try await place.administration()
            let found = try identifier(id, of: try await all(administration).map(\.id), what)
            try await revoke(administration, found)
            try outcome.tell("admin \(what) revoke", [what: found], text: "revoked the \(what) \(found)")
        }
    }
}
