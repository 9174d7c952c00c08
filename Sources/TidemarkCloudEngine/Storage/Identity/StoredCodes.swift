import Foundation
import TidemarkCloud
package import TidemarkModel

// Values in the form of columns: numbers for cases of an enum, and JSON for a person's name. A number without a meaning becomes
// the case that allows least. The digest of such a row does not match.

extension StoredZone {
    package init(
        number: Int64, scope: Int64, owner: String, name: String, state: Int64, made: Int64, changed: Int64, sharing: Int64
    ) {
        self.init(
            number: number, place: Place(scope: DatabaseScope(rawValue: Int(scope)) ?? .private, owner: owner, name: name),
            state: State(rawValue: Int(state)) ?? .present, made: made, changed: changed,
            sharing: Sharing(rawValue: Int(sharing)) ?? .nothing)
    }
}

extension StoredShare {
    package init(
        number: Int64, zone: StoredZone.ID, name: String, root: String?, title: String?, publicPermission: Int64, touched: Int64,
        isEnded: Bool
    ) {
        self.init(
            number: number, zone: zone, name: name, root: root, title: title,
            publicPermission: .init(rawValue: Int(publicPermission)) ?? .none, touched: touched, isEnded: isEnded)
    }
}

extension StoredParticipant {
    /// The numbers that say what a participant is and may do.
    package struct Codes {
        package let role, permission, acceptance: Int64

        package init(role: Int64, permission: Int64, acceptance: Int64) {
            (self.role, self.permission, self.acceptance) = (role, permission, acceptance)
        }
    }

    /// The changes of a participant.
    package struct Changes {
        package let began, ended, invited, expelled: Int64

        package init(began: Int64, ended: Int64, invited: Int64, expelled: Int64) {
            (self.began, self.ended, self.invited, self.expelled) = (began, ended, invited, expelled)
        }
    }

    /// - Parameters:
    ///   - zone: The share's zone.
    ///   - name: As ``storedName`` has made it.
    ///   - address: The kind and the value of what was invited.
    package init(
        id: String, share: Int64, zone: StoredZone.ID, user: String?, name: String?, address: (kind: Int64?, value: String?),
        codes: Codes, changes: Changes
    ) {
        self.init(
            id: id, share: .init(owner: zone.owner, number: share), zone: zone, user: user,
            // A name that can't be read counts as missing: the person is known by the address.
            name: name.flatMap { try? JSONDecoder().decode(PersonName.self, from: Data($0.utf8)) },
            lookUp: UserLookUp(storedKind: address.kind, value: address.value),
            role: .init(rawValue: Int(codes.role)) ?? .unknown, permission: .init(rawValue: Int(codes.permission)) ?? .unknown,
            acceptanceStatus: .init(rawValue: Int(codes.acceptance)) ?? .unknown, began: changes.began, ended: changes.ended,
            invited: changes.invited, expelled: changes.expelled)
    }

    /// The person's name as it is stored: JSON.
    package var storedName: String? {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return try name.map { String(decoding: try encoder.encode($0), as: UTF8.self) }
        }
    }
}

extension UserLookUp {
    /// The kind of the address as it is stored.
    package var storedKind: Int64 {
        switch self {
        case .emailAddress: 1
        case .phoneNumber: 2
        case .userRecordName: 3
        }
    }

    package init?(storedKind: Int64?, value: String?) {
        switch (storedKind, value) {
        case (1, let value?): self = .emailAddress(value)
        case (2, let value?): self = .phoneNumber(value)
        case (3, let value?): self = .userRecordName(value)
        default: return nil
        }
    }
}
