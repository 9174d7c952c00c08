import Foundation
import Tidemark

/// The code of the guide to changes of the schema, and of the doc comments about it. Not run.
extension Guide {
    static func plan(_ journal: PersistentContainer) async throws {
        let plan = try await journal.changeSchema([.renameField("caption", of: "Destination", to: "title")], dryRun: true)
        for problem in plan.problems { print(problem.record.name, problem.value ?? "", problem.reason) }
    }

    static func change(_ journal: PersistentContainer) async throws {
        try await journal.changeSchema([
            .renameField("caption", of: "Destination", to: "title"),
            .retypeField("rating", of: "Destination", to: .init(name: "stars", type: .double)),
        ])
    }

    static func production(_ url: URL) async throws {
        let journal = try ContainerDirectory(openingAt: url)
        let change = try await journal.makeProduction()
        print("\(change.records) records are sent to the production environment")
    }
}
