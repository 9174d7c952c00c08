import TidemarkCloud
import TidemarkModel

/// Operations that can't be sent, because the protocol can't encode them or would refuse the whole request: those with numbers
/// that are not finite, and those without a change tag that they need. They fail here, one by one.
struct UnencodableOperations {
    private let errors: [Int: CloudError]

    /// Finds the operations of a request; `nil` when it has none.
    init?(_ request: ModifyRecordsRequest) {
        var errors: [Int: CloudError] = [:]
        for (index, operation) in request.operations.enumerated() {
            let needsTag = operation.kind == .update || operation.kind == .replace || operation.kind == .delete
            if needsTag, operation.record.changeTag == nil {
                errors[index] = CloudError(
                    .invalidArguments, "\(operation.kind.rawValue) of \(operation.record.id.recordName) needs the record's tag")
            } else if let field = operation.record.fields.first(where: { !$0.value.isWhollyFinite })?.key {
                errors[index] = CloudError(.invalidArguments, "the field '\(field)' holds a number that is no number")
            }
        }
        if errors.isEmpty { return nil }
        self.errors = errors
    }

    /// Returns the outcomes of a request. The other operations are sent, unless the request is atomic.
    func answer(
        _ request: ModifyRecordsRequest, sending send: (ModifyRecordsRequest) async throws(CloudError) -> [RecordOutcome]
    ) async throws(CloudError) -> [RecordOutcome] {
        let others = request.operations.indices.filter { errors[$0] == nil }
        if request.isAtomic || others.isEmpty {
            return request.operations.indices.map { index in
                .failed(errors[index] ?? CloudError(.batchRequestFailed, "another record of the request is to blame"))
            }
        }
        var rest = request
        rest.operations = others.map { request.operations[$0] }
        var outcomes = try await send(rest)[...]
        return request.operations.indices.map { index in errors[index].map { .failed($0) } ?? outcomes.removeFirst() }
    }
}

extension CloudQuery {
    /// Whether all floating-point numbers of the query are finite.
    var isSpeakable: Bool {
        filters.allSatisfy { $0.value.isWhollyFinite && $0.distance?.isFinite != false }
            && sorts.allSatisfy { $0.relativeLocation.map { CloudValue.location($0).isFinite } != false }
    }
}
