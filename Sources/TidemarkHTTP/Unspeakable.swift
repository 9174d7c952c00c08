import TidemarkCloud
import TidemarkModel

/// Operations that can't be written as JSON, as they have numbers that are none. They are refused here as the server would refuse them.
struct Unspeakable {
    private let errors: [Int: CloudError]

    /// `nil` when the request has none.
    init?(_ request: ModifyRecordsRequest) {
        var errors: [Int: CloudError] = [:]
        for (index, operation) in request.operations.enumerated() {
            if let field = operation.record.fields.first(where: { !$0.value.isWhollyFinite })?.key {
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
