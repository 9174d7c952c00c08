import TidemarkCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkWire

/// What the audit log has of shares and settings.
extension ServedCloud {
    /// Answers a call and adds to the audit log who asked, for what, and how it ended.
    func audited(
        _ action: AuditEvent.Action, _ call: Call, _ answer: (Call) async throws -> Reply
    ) async throws -> Reply {
        var event = event(action, call, subject: Self.subject(call))
        let reply: Reply
        do {
            reply = try await answer(call)
        } catch {
            event.outcome = (error as? CloudError)?.code.rawValue ?? "error"
            // What is told is why the call failed.
            try? await access.audit(event)
            throw error
        }
        try await access.audit(event)
        return reply
    }

    /// Adds a change of a share that is one item of many.
    func audit(_ item: WireModify.Item, _ failure: CloudError?, _ call: Call) async throws(CredentialError) {
        let operation = item.operation
        let action: AuditEvent.Action =
            operation.isDeletion ? .shareDelete : operation.kind == .create ? .shareCreate : .shareChange
        var event = event(action, call, subject: Self.subject(operation.record.id))
        if let failure { event.outcome = failure.code.rawValue }
        try await access.audit(event)
    }

    /// Adds that a link was followed.
    func auditAcceptance(of metadata: ShareMetadata?, _ failure: CloudError?, _ call: Call) async throws(CredentialError) {
        var event = event(.linkAccept, call, subject: metadata.map { Self.subject($0.share.id) } ?? "")
        if let failure { event.outcome = failure.code.rawValue }
        try await access.audit(event)
    }

    /// Runs a write to the audit log among what throws errors of the cloud.
    func auditing(_ body: () async throws(CredentialError) -> Void) async throws(CloudError) {
        do throws(CredentialError) {
            try await body()
        } catch {
            throw CloudError(credentials: error)
        }
    }

    /// Reads credentials among what throws errors of the cloud.
    func reading<Value>(_ body: () throws(CredentialError) -> Value) throws(CloudError) -> Value {
        do throws(CredentialError) {
            return try body()
        } catch {
            throw CloudError(credentials: error)
        }
    }

    private func event(_ action: AuditEvent.Action, _ call: Call, subject: String) -> AuditEvent {
        let account = call.caller.account ?? ""
        return AuditEvent(
            action, actor: account, account: account, address: call.address,
            container: "\(call.container)/\(call.environment.rawValue)", subject: subject)
    }

    private static func subject(_ id: CloudRecordID) -> String { "\(id.zone.ownerName)/\(id.zone.zoneName)/\(id.recordName)" }

    /// The share or the zone that a body names; a link's token is a secret, and is not kept.
    private static func subject(_ call: Call) -> String {
        let named: (zone: CloudZoneID, record: String?)? = try? call.read { node throws(CloudError) in
            let zone = try CloudZoneID(ofRequest: node)
            if let name = try node.string("recordName") { return (zone, name) }
            return (zone, try node.string("rootRecordName"))
        }
        guard let named else { return "" }
        return subject(CloudRecordID(named.record ?? "", in: named.zone))
    }
}
