/// The identity of a person, as far as it is known. As `CKUserIdentity`.
public struct UserIdentity: Hashable, Codable, Sendable {
    /// The account's name in the cloud container; `nil` for a person who was invited and has never accepted, whether or not they have an account.
    public var userRecordName: String?
    /// The parts of the person's name, if they are known.
    public var name: PersonName?
    /// The address, number or name by which the person was found or invited.
    public var lookUp: UserLookUp?

    /// Makes an identity of its known parts.
    public init(userRecordName: String? = nil, name: PersonName? = nil, lookUp: UserLookUp? = nil) {
        self.userRecordName = userRecordName
        self.name = name
        self.lookUp = lookUp
    }

    /// The text that a list shows.
    public var title: String {
        if let name, !name.title.isEmpty { return name.title }
        return lookUp?.value ?? userRecordName ?? "Unknown"
    }
}

/// The address, number or name by which a person is looked up. As `CKUserIdentity.LookupInfo`.
public enum UserLookUp: Hashable, Codable, Sendable {
    /// An email address, compared in lower case and in the normal form C of Unicode.
    case emailAddress(String)
    /// A phone number: digits behind a plus sign.
    case phoneNumber(String)
    /// An account's name in the cloud container.
    case userRecordName(String)

    /// The address, number or name itself.
    public var value: String {
        switch self {
        case .emailAddress(let value), .phoneNumber(let value), .userRecordName(let value): value
        }
    }

    /// An address as it is stored and compared.
    package static func spelled(_ address: String) -> String { address.lowercased().composed }

    /// The same value for all ways to write it; `nil` for a text that can't be an address, a number or a name.
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
    /// The part before the name, such as “Dr.”.
    public var namePrefix: String?
    /// The first name.
    public var givenName: String?
    /// Names between the first and the last.
    public var middleName: String?
    /// The last name.
    public var familyName: String?
    /// The part after the name, such as “Jr.”.
    public var nameSuffix: String?
    /// The nickname, which is shown if no other part is known.
    public var nickname: String?

    /// Makes a name of its two usual parts.
    public init(givenName: String? = nil, familyName: String? = nil) {
        self.givenName = givenName
        self.familyName = familyName
    }

    /// The known parts in order, with spaces between them; otherwise the nickname.
    public var title: String {
        let parts = [namePrefix, givenName, middleName, familyName, nameSuffix].compactMap { $0 }.filter { !$0.isEmpty }
        return parts.isEmpty ? nickname ?? "" : parts.joined(separator: " ")
    }
}

extension PersonName {
    /// A name as a person writes it: the first word is the given name, the last one the family's.
    package init(text: String) {
        let words = text.split(whereSeparator: \.isWhitespace).map(String.init)
        self.init(givenName: words.first, familyName: words.count > 1 ? words.last : nil)
        if words.count > 2 { middleName = words[1..<(words.count - 1)].joined(separator: " ") }
    }
}
