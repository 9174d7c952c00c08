import ArgumentParser
import TidemarkAdministration

/// The options of commands that list a cloud's objects: as a table for people, or as one JSON object a line.
struct AdminListing: ParsableArguments {
    @OptionGroup var place: AdminData

    @Flag(help: "Prints one JSON object per line.")
    var json = false

    /// - Parameter none: The sentence for people when the list is empty.
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

/// The options of commands that revoke an object, such as a token, by its identifier.
struct AdminRevocation: ParsableArguments {
    @Argument(help: "The identifier, or its beginning.")
    var id: String

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    /// - Parameters:
    ///   - what: The kind of the object, in one word; `tidemark admin WHAT list` lists these objects.
    ///   - all: Returns all objects of the kind.
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
