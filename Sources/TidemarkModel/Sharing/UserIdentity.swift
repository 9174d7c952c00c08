/// Who somebody is, as far as it is known. As `CKUserIdentity`.
public struct UserIdentity: Hashable, Codable, Sendable {
    /// The account's name in the cloud container; `nil` of one who was invited by an address that no account has yet.
    public var userRecordName: String?
    public var name: PersonName?
    /// By what the person was found, or invited.
    public var lookUp: UserLookUp?

    public init(userRecordName: String? = nil, name: PersonName? = nil, lookUp: UserLookUp? = nil) {
        self.userRecordName = userRecordName
        self.name = name
        self.lookUp = lookUp
    }

    /// What a list shows.
    public var title: String {
        if let name, !name.title.isEmpty { return name.title }
        return lookUp?.value ?? userRecordName ?? "Unknown"
    }
}

/// By what a person is looked for. As `CKUserIdentity.LookupInfo`.
public enum UserLookUp: Hashable, Codable, Sendable {
    /// Compared in lower case and in the normal form C of Unicode.
    case emailAddress(String)
    /// Digits behind a plus sign.
    case phoneNumber(String)
    case userRecordName(String)

    public var value: String {
        switch self {
        case .emailAddress(let value), .phoneNumber(let value), .userRecordName(let value): value
        }
    }

    /// An address as it is kept and compared.
    package static func spelled(_ address: String) -> String { address.lowercased().composed }

    /// The same for all ways to write it; `nil` for what can be none.
    public var normalized: UserLookUp? {
        switch self {
        case .emailAddress(let address):
            let parts = address.split(separator: "@", omittingEmptySubsequences: false)
            guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }), address.utf8.count <= 255,
                address.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f })
            else { return nil }
            return .emailAddress(Self.spelled(address))
        case .phoneNumber(let number):
            let kept = number.filter { !" -()./".contains($0) }
            guard kept.hasPrefix("+"), (5...16).contains(kept.utf8.count),
                kept.dropFirst().utf8.allSatisfy({ (0x30...0x39).contains($0) })
            else { return nil }
            return .phoneNumber(kept)
        case .userRecordName(let name):
            return (1...255).contains(name.utf8.count) ? self : nil
        }
    }
}

/// The parts of a person's name. As `PersonNameComponents`, in the order in which they are written.
public struct PersonName: Hashable, Codable, Sendable {
    public var namePrefix: String?
    public var givenName: String?
    public var middleName: String?
    public var familyName: String?
    public var nameSuffix: String?
    public var nickname: String?

    public init(givenName: String? = nil, familyName: String? = nil) {
        self.givenName = givenName
        self.familyName = familyName
    }

    public var title: String {
        let parts = [namePrefix, givenName, middleName, familyName, nameSuffix].compactMap { $0 }.filter { !$0.isEmpty }
        return parts.isEmpty ? nickname ?? "" : parts.joined(separator: " ")
    }
}
