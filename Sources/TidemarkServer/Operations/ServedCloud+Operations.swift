import HTTPTypes
import TidemarkCloud
import TidemarkIdentity
import TidemarkModel

/// The operations of a served cloud.
extension ServedCloud {
    var operations: [Operation] { protocolOperations + transferOperations + ownOperations }

    /// CloudKit Web Services.
    private var protocolOperations: [Operation] {
        let container = "/database/1/{container}/{environment}"
        let database = container + "/{database}"
        let custom: Set<DatabaseScope> = [.private, .shared]
        return [
            Operation("records.query", .post, database + "/records/query", isForKeys: true, answer: query),
            Operation("records.modify", .post, database + "/records/modify", isForKeys: true, isChanging: true, answer: modify),
            Operation("records.lookup", .post, database + "/records/lookup", isForKeys: true, answer: lookup),
            Operation("records.changes", .post, database + "/records/changes", scopes: custom, answer: recordChanges),
            Operation(
                "records.resolve", .post, database + "/records/resolve", scopes: [.public], needsUser: true, answer: resolve),
            Operation(
                "records.accept", .post, database + "/records/accept", scopes: [.public], needsUser: true, isChanging: true,
                answer: accept),
            Operation("changes.database", .post, database + "/changes/database", scopes: custom, answer: databaseChanges),
            Operation("changes.zone", .post, database + "/changes/zone", scopes: custom, answer: zoneChanges),
            Operation(
                "zones.list", .get, database + "/zones/list", body: .none, needsUser: true, isForKeys: true, answer: listZones),
            Operation("zones.list.post", .post, database + "/zones/list", needsUser: true, isForKeys: true, answer: listZones),
            Operation("zones.lookup", .post, database + "/zones/lookup", needsUser: true, isForKeys: true, answer: lookupZones),
            Operation("zones.modify", .post, database + "/zones/modify", needsUser: true, isChanging: true, answer: modifyZones),
            Operation("zones.changes", .post, database + "/zones/changes", scopes: custom, answer: zonesChanged),
            Operation(
                "subscriptions.list", .get, database + "/subscriptions/list", body: .none, needsUser: true,
                answer: listSubscriptions),
            Operation(
                "subscriptions.lookup", .post, database + "/subscriptions/lookup", needsUser: true, answer: lookupSubscriptions),
            Operation(
                "subscriptions.modify", .post, database + "/subscriptions/modify", needsUser: true, isChanging: true,
                answer: modifySubscriptions),
            Operation(
                "tokens.create", .post, container + "/tokens/create", needsUser: true, isChanging: true, answer: createToken),
            Operation(
                "tokens.register", .post, container + "/tokens/register", needsUser: true, isChanging: true,
                answer: registerToken),
            Operation(
                "device.tokens.create", .post, "/device/1/{container}/{environment}/tokens/create", needsUser: true,
                isChanging: true, answer: createToken),
            Operation(
                "device.tokens.register", .post, "/device/1/{container}/{environment}/tokens/register", needsUser: true,
                isChanging: true, answer: registerToken),
            Operation("users.caller", .get, database + "/users/caller", body: .none, needsUser: true, answer: currentCaller),
            Operation("users.current", .get, database + "/users/current", body: .none, needsUser: true, answer: currentUser),
            Operation("users.discover", .post, database + "/users/discover", needsUser: true, answer: findUsers),
            Operation(
                "users.discover.contacts", .get, database + "/users/discover", body: .none, needsUser: true, answer: contacts),
            Operation("users.lookup.email", .post, database + "/users/lookup/email", needsUser: true, answer: lookupUsers),
            Operation("users.lookup.id", .post, database + "/users/lookup/id", needsUser: true, answer: lookupUsers),
            Operation("users.lookup.contacts", .post, database + "/users/lookup/contacts", needsUser: true, answer: contacts),
            Operation(
                "assets.upload", .post, database + "/assets/upload", isForKeys: true, isChanging: true, answer: prepareUploads),
            Operation("assets.rereference", .post, database + "/assets/rereference", isForKeys: true, answer: rereference),
            Operation(
                "records.query.batch", .post, database + "/internal/records/query/batch", scopes: custom, answer: queryBatch),
        ]
    }

    /// Contents and notifications. The address itself is the permission.
    private var transferOperations: [Operation] {
        [
            Operation("assets.content.upload", .post, "/assets/upload/{capability}", body: .stream, isOpen: true, answer: upload),
            Operation(
                "assets.content.download", .get, "/assets/download/{capability}/{name}", body: .none, isOpen: true,
                answer: download),
            Operation("courier", .get, "/courier/{capability}", body: .none, isOpen: true, answer: wait),
        ]
    }

    /// Operations for Tidemark's own clients.
    private var ownOperations: [Operation] {
        let database = "/tidemark/1/{container}/{environment}/{database}"
        func post(
            _ id: String, _ path: String, isChanging: Bool = true, audit action: AuditEvent.Action? = nil,
            _ answer: @escaping @Sendable (Call) async throws -> Reply
        ) -> Operation {
            Operation("tidemark." + id, .post, database + path, isChanging: isChanging) { call in
                guard let action else { return try await answer(call) }
                return try await audited(action, call, answer)
            }
        }
        return [
            Operation("tidemark.account", .get, database + "/account", body: .none, answer: account),
            post("account.set", "/account/set", audit: .discoverable, setAccount),
            Operation("tidemark.limits", .get, database + "/limits", body: .none, answer: limits),
            post("shares.list", "/shares/list", isChanging: false, listShares),
            post("shares.create", "/shares/create", audit: .shareCreate, createShare),
            post("shares.change", "/shares/change", audit: .shareChange, changeShare),
            post("shares.delete", "/shares/delete", audit: .shareDelete, deleteShare),
            post("shares.audit", "/shares/audit", isChanging: false, auditShares),
            post("links.make", "/links/make", audit: .linkMake, makeLink),
            post("links.revoke", "/links/revoke", audit: .linkRevoke, revokeLink),
            post("links.resolve", "/links/resolve", isChanging: false, resolveLink),
            post("links.accept", "/links/accept", audit: .linkAccept, acceptLink),
            post("links.decline", "/links/decline", audit: .linkDecline, declineLink),
            post("users.find", "/users/find", isChanging: false, findUsers),
            post("assets.missing", "/assets/missing", isChanging: false, missingAssets),
            Operation(
                "tidemark.assets.put", .put, database + "/assets/{asset}", body: .bytes(most: Self.limits.bytesPerAssetPiece),
                isChanging: true, answer: putPiece),
            Operation("tidemark.assets.get", .get, database + "/assets/{asset}", body: .none, answer: getAsset),
            Operation("tidemark.notifications", .get, database + "/notifications", body: .none, answer: awaitChange),
        ]
    }
}
