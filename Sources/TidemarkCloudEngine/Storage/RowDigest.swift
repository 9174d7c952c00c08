import CTideCore
package import Foundation
import TidemarkCloud
import TidemarkModel

/// Makes the digest of a row, which a storage keeps beside it, and compares when it reads the row: XXH3-128. It detects accident, not malice.
package struct RowDigest {
    /// Whose rows they are, so that a row of one table is not one of another.
    enum Table: UInt8 {
        case records = 1
        case zones, shares, participants
    }

    /// The part of a text that a storage reads back.
    package enum Texts: Sendable {
        case whole
        /// Up to the first U+0000.
        case untilNUL
    }

    private var output = ByteOutput()
    private let texts: Texts

    init(_ table: Table, _ texts: Texts) {
        self.texts = texts
        output.reserve(256)
        output.add(table.rawValue)
    }

    mutating func add(_ number: Int64?) {
        guard let number else { return output.add(0 as UInt8) }
        output.add(1 as UInt8)
        output.add(signed: number)
    }

    mutating func add(_ text: String?) {
        guard let text else { return output.add(0 as UInt8) }
        output.add(2 as UInt8)
        let isCut = texts == .untilNUL && text.utf8.contains(0)
        output.add(isCut ? String(decoding: text.utf8.prefix { $0 != 0 }, as: UTF8.self) : text)
    }

    mutating func add(_ data: Data) {
        output.add(3 as UInt8)
        output.add(data)
    }

    var digest: Data {
        let bytes = output.bytes
        var digest = Data(count: 16)
        digest.withUnsafeMutableBytes { digest in
            tide_digest_bytes(bytes, bytes.count, digest.bindMemory(to: UInt8.self).baseAddress!)
        }
        return digest
    }
}

extension StoredCloudRecord {
    package func rowDigest(_ texts: RowDigest.Texts) -> Data {
        var row = RowDigest(.records, texts)
        for number in [zone.number, changed, created.time, modified.time, isDeleted ? 1 : 0] { row.add(number) }
        for text in [name, type, parent, created.userRecordName, modified.userRecordName] { row.add(text) }
        row.add(fields)
        return row.digest
    }
}

extension StoredZone {
    package func rowDigest(_ texts: RowDigest.Texts) -> Data {
        var row = RowDigest(.zones, texts)
        for number in [Int64(place.scope.rawValue), Int64(state.rawValue), made, changed, Int64(sharing.rawValue)] {
            row.add(number)
        }
        for text in [place.owner, place.name] { row.add(text) }
        return row.digest
    }
}

extension StoredShare {
    package func rowDigest(_ texts: RowDigest.Texts) -> Data {
        var row = RowDigest(.shares, texts)
        for number in [zone.number, Int64(publicPermission.rawValue), touched, isEnded ? 1 : 0] { row.add(number) }
        for text in [name, root, title] { row.add(text) }
        return row.digest
    }
}

extension StoredParticipant {
    /// - Parameter name: The person's name, as it is stored.
    package func rowDigest(_ texts: RowDigest.Texts, name: String?) -> Data {
        var row = RowDigest(.participants, texts)
        let codes = [role.rawValue, permission.rawValue, acceptanceStatus.rawValue].map { Int64($0) }
        for number in [share.number, zone.number] + codes + [began, ended, invited, expelled] { row.add(number) }
        row.add(lookUp.map(\.storedKind))
        for text in [id, user, name, lookUp?.value] { row.add(text) }
        return row.digest
    }
}
