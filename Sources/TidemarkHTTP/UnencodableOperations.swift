import TidemarkCloud
import TidemarkModel

/// Operations that the protocol has no words for, or takes for a fault of the whole request: with numbers that are none, or without the tag
/// that they need. They are refused here, each by itself.
struct UnencodableOperations {
    private let errors: [Int: CloudError]

    /// `nil` when the request has none.
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

    /// What becomes of the request, the others of which are sent.
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
    /// Whether its numbers are numbers.
    var isSpeakable: Bool {
        filters.allSatisfy { $0.value.isWhollyFinite && $0.distance?.isFinite != false }
            && sorts.allSatisfy { $0.relativeLocation.map { CloudValue.location($0).isFinite } != false }
    }
}
