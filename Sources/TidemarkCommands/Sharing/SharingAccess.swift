import ArgumentParser
import Foundation
import Tidemark
import TidemarkStore
import TidemarkSync

/// A container, open for what its account does with shares.
struct SharingAccess {
    let container: PersistentContainer
    let access: CloudAccess
    var databases: CloudDatabases { access.databases }

    /// - Throws: `ContainerEvent.Failure` when nobody is signed in, or the account is switched off.
    init(_ path: String) async throws {
        let directory = try ContainerDirectory(openingAt: fileURL(path, "the container"))
        access = try await CloudAccess(directory)
        if let failure = access.settings.state.setupFailures.first { throw failure }
        container = try PersistentContainer(directory: directory, author: "tidemark share", role: .tool)
    }

    func share(_ name: String) async throws -> Share { try await container.share(named: name) }
}

extension PersistentContainer {
    /// The share that somebody means by a record that it covers, its zone, its number, or its title.
    ///
    /// - Throws: ``StoreError`` `notFound` where none is meant, `invalid` where several are.
    func share(named text: String) async throws -> Share {
        let all = try await fetchShares()
        let records = try recordNames(text)
        var found: [Share] = []
        for record in records {
            guard let share = try await fetchShares(matching: [record.name])[record.name] else { continue }
            if !found.contains(share) { found.append(share) }
        }
        if found.isEmpty { found = all.filter { $0.zone.name == text } }
        if found.isEmpty, let number = Int(text), all.indices.contains(number - 1) { found = [all[number - 1]] }
        if found.isEmpty { found = all.filter { $0.title == text } }
        if let share = found.first, found.count == 1 { return share }
        guard found.isEmpty else {
            let numbers = found.compactMap { all.firstIndex(of: $0) }.map { "\($0 + 1)" }.joined(separator: " and ")
            throw StoreError(.invalid, "'\(text)' stands for several shares; give the number, \(numbers) in 'tidemark share list'")
        }
        guard let record = records.first else {
            throw StoreError(
                .notFound,
                "there is no share '\(text)': no record, zone, number or title of one. 'tidemark share list' shows those that there are"
            )
        }
        throw StoreError(
            .notFound, "\(record.name.type) \(record.name.name) is not shared; 'tidemark share create' shares it")
    }

    /// The records, in one store or both, that `NAME` or `TYPE/NAME` stands for.
    nonisolated func recordNames(_ text: String, type: String? = nil) throws -> [(name: RecordName, scope: DatabaseScope)] {
        try ContainerDirectory.scopes.compactMap { scope in
            let reader = try StoreReader(container: directory, scope: scope)
            if let (schema, record) = try reader.record(named: text), type == nil || type == schema.name {
                return (RecordName(type: schema.name, name: record.name), scope)
            }
            guard type == nil, let slash = text.firstIndex(of: "/") else { return nil }
            let (type, name) = (String(text[..<slash]), String(text[text.index(after: slash)...]))
            guard let (schema, record) = try reader.record(named: name), schema.name == type else { return nil }
            return (RecordName(type: type, name: record.name), scope)
        }
    }
}

extension Share {
    /// The participant whom somebody means by a name, an address, a number or an identifier.
    ///
    /// - Throws: ``StoreError`` `notFound` where nobody is meant, `invalid` where several are.
    func participant(named text: String) throws(StoreError) -> ShareParticipant {
        let wanted = [UserLookUp.emailAddress(text), .phoneNumber(text)].compactMap(\.normalized)
        func matches(_ participant: ShareParticipant) -> Bool {
            if participant.id == text || participant.identity.userRecordName == text { return true }
            if let lookUp = participant.identity.lookUp?.normalized, wanted.contains(lookUp) { return true }
            return participant.identity.title.lowercased() == text.lowercased()
        }
        var found = participants.filter(matches)
        // Of one who was removed and came again as somebody else, the latter.
        if found.count > 1 { found.removeAll { $0.acceptanceStatus == .removed } }
        if let participant = found.first, found.count == 1 { return participant }
        guard found.isEmpty else {
            throw StoreError(
                .invalid,
                "'\(text)' stands for several participants; give the identifier: \(found.map(\.id).joined(separator: " or "))")
        }
        let known = participants.map(\.identity.title).joined(separator: ", ")
        throw StoreError(.notFound, "'\(text)' takes no part in the share; there are \(known)")
    }

    /// What people call it.
    var caption: String { title ?? root ?? zone.name }
}

/// Whether a container is synchronised when a share was changed.
struct SyncAfterwards: ParsableArguments {
    @Flag(help: "Does not synchronise afterwards; the next 'tidemark sync' does.")
    var noSync = false

    /// What has come of it.
    enum Outcome {
        case notWanted
        /// Another process synchronises the container.
        case leftToAnother(ContainerEvent.Failure)
        case done(SyncReport)
    }

    func run(_ access: CloudAccess) async throws -> Outcome {
        guard !noSync else { return .notWanted }
        do {
            return .done(try await access.sync().sync())
        } catch let failure as ContainerEvent.Failure where failure.code == SyncErrorCode.anotherSyncer {
            return .leftToAnother(failure)
        }
    }
}
