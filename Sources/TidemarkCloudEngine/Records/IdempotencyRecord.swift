import Foundation
import TidemarkCloud
import TidemarkModel

/// The outcomes of a request, kept for its repetition, as far as they can't be looked up again. Documentation/Formats/cloud.md
/// has the format.
struct IdempotencyRecord {
    enum Item {
        case saved(tag: String)
        case deleted
        case failed(code: String, reason: String)
        /// A rule of sharing refused the operation.
        case refused(code: String, reason: String, ShareDecision)

        fileprivate var kind: UInt8 {
            switch self {
            case .saved: 0
            case .deleted: 1
            case .failed: 2
            case .refused: 3
            }
        }
    }

    private(set) var items: [(name: String, item: Item)] = []

    init(to request: ModifyRecordsRequest, _ outcomes: [RecordOutcome]) {
        items.reserveCapacity(outcomes.count)
        for (operation, outcome) in zip(request.operations, outcomes) {
            let item: Item =
                switch outcome {
                case .saved(let record): .saved(tag: record.changeTag ?? "")
                case .deleted: .deleted
                case .failed(let error):
                    error.denial.map { .refused(code: error.code.rawValue, reason: error.reason, $0) }
                        ?? .failed(code: error.code.rawValue, reason: error.reason)
                }
            items.append((operation.record.id.recordName, item))
        }
    }

    init(_ data: Data) throws(CloudError) {
        do {
            items = try data.withUnsafeBytes { bytes in
                var input = ByteInput(bytes)
                let count = try input.number()
                guard count <= bytes.count else { throw ByteInput.Damaged() }
                return try (0..<count).map { _ in (try input.text(), try Item(&input)) }
            }
        } catch {
            throw CloudError(.internalError, "an answer that was kept can't be read")
        }
    }

    var data: Data {
        var output = ByteOutput()
        output.reserve(items.count * 48 + 10)
        output.add(UInt64(items.count))
        for (name, item) in items {
            output.add(name)
            output.add(item.kind)
            switch item {
            case .saved(let tag): output.add(tag)
            case .deleted: break
            case .failed(let code, let reason):
                output.add(code)
                output.add(reason)
            case .refused(let code, let reason, let decision):
                for text in [code, reason, decision.operation.rawValue, decision.rule.rawValue] { output.add(text) }
            }
        }
        return Data(output.bytes)
    }
}

extension IdempotencyRecord.Item {
    fileprivate init(_ input: inout ByteInput) throws {
        switch try input.byte() {
        case 0: self = .saved(tag: try input.text())
        case 1: self = .deleted
        case 2: self = .failed(code: try input.text(), reason: try input.text())
        case 3:
            let (code, reason) = (try input.text(), try input.text())
            let (operation, rule) = (
                SharePolicy.Operation(rawValue: try input.text()), SharePolicy.Rule(rawValue: try input.text())
            )
            guard let operation, let rule else { throw ByteInput.Damaged() }
            self = .refused(code: code, reason: reason, ShareDecision(operation: operation, rule: rule))
        default: throw ByteInput.Damaged()
        }
    }
}
