import ArgumentParser

/// The report of a command whose only result is success: a line of text, or one JSON object.
struct Outcome: ParsableArguments {
    @Flag(help: "Prints one JSON object.")
    var json = false

    /// Prints the outcome.
    ///
    /// - Parameters:
    ///   - command: The command without the program's name, such as `account set`: `done` in the object.
    ///   - details: The other members of the object; entries without a value are left out.
    ///   - text: The lines for people.
    func tell(_ command: String, _ details: KeyValuePairs<String, (any Encodable)?> = [:], text: String...) throws {
        guard json else { return try text.forEach(Output.line) }
        try Output.json(Report(command: command, details: details.compactMap { name, value in value.map { (name, $0) } }))
    }

    private struct Report: Encodable {
        let command: String
        let details: [(name: String, value: any Encodable)]

        private struct Key: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Key.self)
            try container.encode(command, forKey: Key(stringValue: "done"))
            for (name, value) in details { try container.encode(value, forKey: Key(stringValue: name)) }
        }
    }
}
