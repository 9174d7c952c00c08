import ArgumentParser
import Tidemark

struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Adds a destination.")

    @OptionGroup var folder: Folder
    @Option(help: "The place.") var caption: String
    @Option(help: "What it was like.") var details: String
    @Option(help: "The file of a photo.") var photo: String

    func run() async throws {
        let destination = try Destination(caption: caption, details: details, image: .photo(photo))
        try await folder.journal.container.save(destination)
        print("added '\(caption)'")
    }
}

struct Edit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Edits a destination.")

    @OptionGroup var folder: Folder
    @Argument(help: "Its caption, or the beginning of its identifier.") var destination: String
    @Option(help: "The place.") var caption: String?
    @Option(help: "What it was like.") var details: String?
    @Option(help: "The file of a photo.") var photo: String?

    func run() async throws {
        let journal = try folder.journal
        let found = try await journal.destination(destination)
        let image = try photo.map { try Asset.photo($0) }
        try await journal.edit(found) { edited in
            if let caption { edited.caption = caption }
            if let details { edited.details = details }
            if let image { edited.image = image }
        }
        print("edited '\(found.caption)'")
    }
}

struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Deletes a destination.")

    @OptionGroup var folder: Folder
    @Argument(help: "Its caption, or the beginning of its identifier.") var destination: String

    func run() async throws {
        let journal = try folder.journal
        let found = try await journal.destination(destination)
        try await journal.container.delete(found)
        print("deleted '\(found.caption)'")
    }
}
