import Foundation
import TidemarkCloud
import TidemarkIdentity
import TidemarkModel

/// The permission to do something with an asset, as an address or a receipt has it. It is signed, so only this cloud can have
/// made it. It is not encrypted.
///
/// It is valid until it expires, while its container is served and its account can be used. It allows no more than the account
/// may do at that time. It ends with the session, token or key with which it was made.
struct SignedAssetToken: Hashable, Sendable {
    var container: String
    var environment: StoreEnvironment
    var scope: DatabaseScope
    var zone: CloudZoneID
    /// The account that may use it; `nil` for callers who are not signed in.
    var account: String?
    /// The content; `nil` for one that is still to be sent.
    var asset: CloudAsset?
    /// The field that will name the content.
    var recordType = ""
    var fieldName = ""
    /// The credential with which it was made.
    var credential = Credential.none
    /// Identifies an upload address; empty for others.
    var id = ""

    // Purposes.
    static let upload = "upload"
    static let download = "download"
    static let receipt = "receipt"

    // How long each is valid, in microseconds.
    static let uploadAge: Int64 = 15 * 60 * 1_000_000
    static let downloadAge: Int64 = 6 * 3600 * 1_000_000
    static let receiptAge: Int64 = 24 * 3600 * 1_000_000

    var data: Data {
        var output = ByteOutput()
        for text in [
            container, environment.rawValue, zone.zoneName, zone.ownerName, account ?? "", asset?.digest ?? "", recordType,
            fieldName, id, credential.text,
        ] { output.add(text) }
        output.add(UInt8(scope.rawValue))
        output.add(signed: asset?.size ?? 0)
        return Data(output.bytes)
    }

    init?(_ data: Data) {
        // Data that can't be read is no token of this server.
        let read: SignedAssetToken? = try? data.withUnsafeBytes { bytes in
            var input = ByteInput(bytes)
            let (container, environment) = (try input.text(), StoreEnvironment(rawValue: try input.text()))
            let zone = CloudZoneID(try input.text(), owner: try input.text())
            let (account, digest, type, field) = (try input.text(), try input.text(), try input.text(), try input.text())
            let (id, credential) = (try input.text(), Credential(text: try input.text()))
            let (scope, size) = (DatabaseScope(rawValue: Int(try input.byte())), try input.signed())
            guard let environment, let scope, let credential, size >= 0 else { return nil }
            var pass = SignedAssetToken(container: container, environment: environment, scope: scope, zone: zone)
            pass.account = account.isEmpty ? nil : account
            pass.asset = digest.isEmpty ? nil : CloudAsset(digest: digest, size: size)
            (pass.recordType, pass.fieldName, pass.id, pass.credential) = (type, field, id, credential)
            return pass
        }
        guard let read else { return nil }
        self = read
    }

    init(
        container: String, environment: StoreEnvironment, scope: DatabaseScope, zone: CloudZoneID, account: String? = nil,
        asset: CloudAsset? = nil, recordType: String = "", fieldName: String = "", credential: Credential = .none, id: String = ""
    ) {
        (self.container, self.environment, self.scope, self.zone) = (container, environment, scope, zone)
        (self.account, self.asset, self.recordType, self.fieldName) = (account, asset, recordType, fieldName)
        (self.credential, self.id) = (credential, id)
    }
}
