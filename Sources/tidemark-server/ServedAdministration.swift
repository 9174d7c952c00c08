import Foundation
import TidemarkCommands
import TidemarkServer

/// Opens databases for the commands of `tidemark admin`.
actor ServedAdministration: AdminDatabaseOpener {
    private var opened: [OpenedDatabase] = []

    func close() async {
        for database in opened { await database.close() }
        opened = []
    }

    func open(_ storage: StorageOptions, makes: Bool) async throws(AdminFailure) -> AdminDatabase {
        guard let place = storage.place() else {
            throw AdminFailure("say which cloud: --database <address> and --assets <place>", status: 64)
        }
        do {
            let opened = try await OpenedDatabase(place, makes: makes)
            self.opened.append(opened)
            let (cloud, credentials) = try opened.administered()
            return AdminDatabase(cloud: cloud, credentials: credentials, isNew: opened.isNew) { progress in
                try await opened.verify(progress)
            }
        } catch let error as ServerError {
            throw AdminFailure(error.message, status: error.exitStatus)
        } catch {
            throw AdminFailure("\(error)", status: 74)
        }
    }

    func move(
        _ directory: URL, _ storage: StorageOptions, intoDatabase isIntoDatabase: Bool,
        progress: @escaping @Sendable (AdminMoveProgress) -> Void
    ) async throws(AdminFailure) -> AdminMoveReport {
        guard let place = storage.place() else { throw AdminFailure("say where the assets are: --assets <place>", status: 64) }
        let (here, there) = (CloudMove.Place.directory(directory), CloudMove.Place.database(place))
        let move = CloudMove(from: isIntoDatabase ? here : there, to: isIntoDatabase ? there : here) { state in
            progress(AdminMoveProgress(what: state.what, done: state.done, total: state.total))
        }
        do throws(ServerError) {
            let report = try await move.run()
            return AdminMoveReport(
                containers: report.containers, environments: report.environments, accounts: report.accounts,
                records: report.records, assets: report.assets, digest: report.digest, problems: report.problems)
        } catch {
            throw AdminFailure(error.message, status: error.exitStatus)
        }
    }
}
