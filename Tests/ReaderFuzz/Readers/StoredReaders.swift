import Foundation
import TidemarkCloud
import TidemarkS3
import TidemarkWire

/// Readers of bytes that are stored, packed or answered by a bucket.
enum StoredReaders {
    static func fields(_ bytes: [UInt8]) {
        guard let found = try? FieldCoding.decodeMarked(Data(bytes)) else { return }
        let coded = FieldCoding.encode(found.fields, encrypted: found.encrypted)
        guard let again = try? FieldCoding.decodeMarked(coded) else { fatalError("fields can't be read that were written") }
        // The bytes and not the values: NaN is unlike itself.
        demand(
            FieldCoding.encode(again.fields, encrypted: again.encrypted) == coded,
            "fields are others when they are written and read again: \(found)")
    }

    static func gzip(_ bytes: [UInt8]) {
        let limit = 1 << 20
        var held = 0
        if let unpacked = try? Gzip.unpacked(bytes, limit: limit, more: { held += $0 }) {
            demand(unpacked.count <= limit && held == unpacked.count, "more was unpacked than was asked for")
        }
        // The bytes themselves, packed.
        if let packed = Gzip.packed(bytes) {
            demand((try? Gzip.unpacked(packed, limit: limit, more: { _ in })) == bytes, "packed bytes are unpacked as others")
        }
    }

    static func bucket(_ bytes: [UInt8]) {
        guard let answer = S3Answer(bytes) else { return }
        _ = (answer.errorCode, answer.page, answer.uploads)
    }
}
