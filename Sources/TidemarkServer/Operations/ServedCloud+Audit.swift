import TidemarkCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkWire

/// Adds changes of shares and settings to the audit log.
extension ServedCloud {
    /// Answers a call, and adds the caller, the action and its outcome to the audit log.
    func audited(
        _ action: AuditEvent.Action, _ call: Call, _ answer: (Call) async throws -> Reply
    ) async throws -> Reply {
        var event = event(action, call, subject: Self.subject(call))
        let reply: Reply
        do {
            reply = try await answer(call)
        } catch {
            event.outcome = (error as? CloudError)?.code.rawValue ?? "error"
            // The caller gets the error of the call, even if the log can't be written.
            try? await access.audit(event)
            throw error
        }
        try await access.audit(event)
        return reply
    }

    /// Adds a change of a share that is one of many items.
    func audit(_ item: WireModify.Item, _ failure: CloudError?, _ call: Call) async throws(CredentialError) {
        let operation = item.operation
        let action: AuditEvent.Action =
            operation.isDeletion ? .shareDelete : operation.kind == .create ? .shareCreate : .shareChange
        var event = event(action, call, subject: Self.subject(operation.record.id))
        if let failure { event.outcome = failure.code.rawValue }
        try await access.audit(event)
    }

    /// Adds that a link was accepted.
    func auditAcceptance(of metadata: ShareMetadata?, _ failure: CloudError?, _ call: Call) async throws(CredentialError) {
        var event = event(.linkAccept, call, subject: metadata.map { Self.subject($0.share.id) } ?? "")
        if let failure { event.outcome = failure.code.rawValue }
        try await access.audit(event)
    }

    /// Writes to the audit log, and turns its errors into errors of the cloud.
    func auditing(_ body: () async throws(CredentialError) -> Void) async throws(CloudError) {
        do throws(CredentialError) {
            try await body()
        } catch {
            throw CloudError(credentials: error)
        }
    }

    /// Reads credentials, and turns errors into errors of the cloud.
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

    /// Returns the share or the zone that a body names. The token of a link is secret, and is not logged.
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
