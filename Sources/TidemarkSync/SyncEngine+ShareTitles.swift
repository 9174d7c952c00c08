import Logging
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

extension SyncEngine {
    /// Gives the account's own shares the present titles of their root records. A failed change is tried again with the next
    /// round of imports or exports.
    func updateShareTitles() async {
        guard shareTitlesAreDue, store.scope == .private, let database = database as? any SharingDatabase else { return }
        do {
            for share in try await store.shares() {
                guard let title = try shareTitle(of: share), title != share.title else { continue }
                let changed = try await database.changeShare(share.cloudID, [.setTitle(title)])
                try await store.note(Share(changed, scope: .private), insteadOf: share)
            }
            shareTitlesAreDue = false
        } catch is CancellationError {
            // The next synchronisation does it.
        } catch {
            log.notice("a share's title could not be changed", metadata: ["reason": "\(error)"])
        }
    }

    /// Returns the title that the root record gives a share; `nil` where the share has a title of its own.
    private func shareTitle(of share: Share) throws -> String? {
        guard let root = share.root ?? share.zone.shareRoot, let (schema, record) = try StoreReader(store).record(named: root),
            let field = configuration.shareTitleField(schema.name),
            let index = schema.fields.firstIndex(where: { $0.name == field }), index < record.values.count,
            case .string(let title) = record.values[index], !title.isEmpty
        else { return nil }
        return title
    }
}
