import ArgumentParser
import Foundation
import Tidemark
import TidemarkCloud
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// A container, opened for its account's work with shares.
struct SharingAccess {
    let container: PersistentContainer
    let access: CloudAccess
    var databases: CloudDatabases { access.databases }

    /// - Throws: `ContainerEvent.Failure` when no account is signed in, or the account is switched off.
    static func open(_ path: String) async throws -> SharingAccess {
        let directory = try containerToWrite(path)
        let access = try await CloudAccess(directory)
        try access.demandAccount()
        return SharingAccess(
            container: try PersistentContainer(directory: directory, author: "tidemark share", role: .tool), access: access)
    }

    /// The participants of a share, as the cloud has them now.
    func participants(of share: Share) async throws -> [ShareParticipant] {
        let all = try await databases[share.scope].shares(in: share.cloudID.zone)
        // A cloud may name the zone with its owner.
        return all.first { $0.id.recordName == share.name }?.participants ?? share.participants
    }

    func share(_ text: String) async throws -> Share { try await KnownShares(container.directory).share(named: text) }
}

/// The option that says whether a container is synchronised after a share was changed.
struct SyncAfterwards: ParsableArguments {
    @Flag(help: "Does not synchronise afterwards; the next 'tidemark sync' does.")
    var noSync = false

    /// The result of the synchronisation.
    enum Outcome {
        case notWanted
        /// Another process synchronises the container.
        case leftToAnother(ContainerEvent.Failure)
        case done(SyncReport)
    }

    func run(_ sharing: SharingAccess) async throws -> Outcome {
        guard !noSync else { return .notWanted }
        do {
            // It uses the stores that the command has opened.
            let sync = try await sharing.container.sync(
                with: sharing.databases, configuration: sharing.access.configuration())
            return .done(try await sync.sync())
        } catch let failure as ContainerEvent.Failure where failure.code == SyncErrorCode.anotherSyncer {
            return .leftToAnother(failure)
        }
    }
}
