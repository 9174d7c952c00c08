import ArgumentParser
import Foundation
import Tidemark
import TidemarkSQLite
import TidemarkStore

/// The shares that a container takes part in, as of the last synchronisation; the account's own shares first.
struct KnownShares {
    let all: [Share]
    private let container: ReadOnlyContainer
    private let directory: ContainerDirectory

    init(_ directory: ContainerDirectory) throws {
        self.directory = directory
        container = try ReadOnlyContainer(directory: directory)
        all = try ContainerDirectory.scopes.filter { directory.hasStore($0) }
            .flatMap { try StoreReader(container: directory, scope: $0).shares() }
    }

    /// Finds a share by a record that it covers, by its zone, its number, or its title.
    ///
    /// - Throws: ``StoreError`` `notFound` if no share fits, `invalid` if several do.
    func share(named text: String) async throws -> Share {
        let records = try await records(named: text)
        var found = all.filter { share in
            records.contains { $0.scope == share.scope && $0.zone == share.zone && $0.share == share.name }
        }
        if found.isEmpty { found = all.filter { $0.zone.name == text } }
        if found.isEmpty, let number = Int(text), all.indices.contains(number - 1) { found = [all[number - 1]] }
        if found.isEmpty { found = all.filter { $0.title == text } }
        if let share = found.first, found.count == 1 { return share }
        guard found.isEmpty else {
            let numbers = all.indices.filter { found.contains(all[$0]) }.map { "\($0 + 1)" }.joined(separator: " or ")
            throw StoreError(
                .invalid, "'\(text)' stands for several shares; give its number in 'tidemark share list' instead: \(numbers)")
        }
        if let record = records.first?.record {
            throw StoreError(.notFound, "\(record.title) is not shared; 'tidemark share create' shares it")
        }
        throw StoreError(
            .notFound, "no share has a record, zone, number or title '\(text)'; 'tidemark share list' shows those that there are")
    }

    /// The permissions of the records that `NAME` or `TYPE/NAME` names.
    private func records(named text: String) async throws -> [RecordPermission] {
        let found = try await container.permissions.permissions(named: text)
        guard found.isEmpty else { return found }
        if let record = try FoundRecord(text, type: nil, in: nil, of: directory) {
            return try await container.permissions.permissions(named: record.record.name, type: record.schema.name)
        }
        guard let slash = text.firstIndex(of: "/") else { return found }
        return try await container.permissions.permissions(
            named: String(text[text.index(after: slash)...]), type: String(text[..<slash]))
    }
}

extension Share {
    /// The share's name for people.
    var caption: String { title ?? root ?? zone.name }

    /// Finds a participant by a name, an address, a number or an identifier.
    ///
    /// - Throws: ``StoreError`` `notFound` if no participant fits, `invalid` if several do.
    func participant(named text: String) throws(StoreError) -> ShareParticipant {
        let lookUps = [UserLookUp.emailAddress(text), .phoneNumber(text)].compactMap(\.normalized)
        var found = participants.filter { participant in
            participant.id == text || participant.identity.userRecordName == text
                || participant.identity.title.lowercased() == text.lowercased()
                || participant.identity.lookUp?.normalized.map(lookUps.contains) ?? false
        }
        // A person who was removed and invited again is listed twice: the removed participant is left out.
        if found.count > 1 { found.removeAll { $0.acceptanceStatus == .removed } }
        if let participant = found.first, found.count == 1 { return participant }
        guard found.isEmpty else {
            throw StoreError(
                .invalid,
                "'\(text)' stands for several participants; give an identifier instead: \(found.map(\.id).joined(separator: " or "))"
            )
        }
        throw StoreError(
            .notFound,
            "'\(text)' is no participant of the share; its participants: \(participants.map(\.identity.title).joined(separator: ", "))"
        )
    }
}
