/// Code that reads what others have written, as fuzzers call it.
///
/// A reader may refuse its input by an error. It may not trap, and what it accepts has to be what it says that it is: written and read again, it
/// is the same. A breach ends the process.
package enum FuzzedReader: String, CaseIterable, Sendable {
    /// Requests, as a server reads them: changes of records, and queries.
    case modify, query
    /// Answers, as a client reads them.
    case answer
    /// Shares, links and invitations, as both sides read them.
    case sharing
    /// A record's fields, as stores and clouds keep them.
    case fields
    /// Bodies packed by gzip.
    case gzip
    /// Answers of a bucket.
    case bucket
    /// Columns of a database's rows.
    case row
    /// Addresses, percent-encoding, digits, base 64, times.
    case text
    /// Whole requests, sent to a server in this process.
    case request

    /// Reads an input.
    ///
    /// - Returns: What has come of it, where there is something to tell.
    package func result(of bytes: [UInt8]) -> String {
        guard self == .request else {
            read(bytes)
            return ""
        }
        return ServedRequests.shared.send(bytes).map { "status \($0)" } ?? "no answer"
    }

    /// Reads an input.
    package func read(_ bytes: [UInt8]) {
        switch self {
        case .modify: WireReaders.modify(bytes)
        case .query: WireReaders.query(bytes)
        case .answer: WireReaders.answer(bytes)
        case .sharing: WireReaders.sharing(bytes)
        case .fields: StoredReaders.fields(bytes)
        case .gzip: StoredReaders.gzip(bytes)
        case .bucket: StoredReaders.bucket(bytes)
        case .row: RowReaders.read(bytes)
        case .text: TextReaders.read(bytes)
        case .request: ServedRequests.shared.send(bytes)
        }
    }
}

/// Ends the process where a reader has accepted what it does not keep.
func demand(_ isRight: Bool, _ what: @autoclosure () -> String) {
    guard !isRight else { return }
    fatalError(what())
}
