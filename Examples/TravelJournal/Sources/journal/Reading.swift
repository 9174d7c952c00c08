import ArgumentParser
import Foundation
import Tidemark

struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the destinations, newest first.")

    @OptionGroup var folder: Folder

    func run() async throws {
        let journal = try folder.journal
        for destination in try await journal.destinations() {
            let isShared = try await journal.permission(of: destination).isShared
            print("\(destination.createdAt.formatted(.iso8601))  \(destination.caption)\(isShared ? "  [shared]" : "")")
        }
    }
}

struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Shows a destination, what one may do with it, and who takes part.")

    @OptionGroup var folder: Folder
    @Argument(help: "Its caption, or the beginning of its identifier.") var destination: String

    func run() async throws {
        let journal = try folder.journal
        let destination = try await journal.destination(destination)
        let permission = try await journal.permission(of: destination)
        print(destination.caption)
        print(destination.details)
        print("photo:   \(destination.image.size ?? 0) bytes")
        print("edit:    \(permission.canEdit ? "yes" : "no"): \(permission.reason)")
        let delete = permission.decision(for: .delete)
        print("delete:  \(delete.isAllowed ? "yes" : "no"): \(delete.reason)")
        guard permission.isShared else { return }
        for participant in try await journal.share(of: destination).participants {
            let parts = [participant.acceptanceStatus.title, participant.role.title, participant.permission.title]
            print("\(participant.identity.title): \(parts.joined(separator: ", "))")
        }
    }
}
