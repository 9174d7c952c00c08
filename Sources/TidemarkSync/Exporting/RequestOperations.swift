import TidemarkCloud
import TidemarkModel
import TidemarkStore

/// The operations of a request to the cloud.
struct RequestOperations: Sendable {
    private(set) var all: [RecordOperation] = []
    /// The results to note instead of sending, if some operations could not be made.
    let refused: [ExportResult]?

    init(refused: [ExportResult]) { self.refused = refused }

    /// Makes the operations of a request whose assets are known.
    ///
    /// - Parameters:
    ///   - assets: The cloud's names of the store's assets.
    ///   - foreign: Fields, by record, that are not emptied in the cloud.
    ///   - whole: Records that are sent with all of their fields.
    init(
        _ request: SentRequest, mapping: RecordMapping, environment: SyncEnvironment, assets: [String: CloudAsset] = [:],
        foreign: [String: Set<String>] = [:], whole: Set<String> = []
    ) {
        var results: [ExportResult] = []
        // Records that came together were mostly edited at the same time.
        var edited: (times: EditTimes, text: String)?
        for item in request.items {
            if edited?.times != item.edited { edited = (item.edited, item.edited.description) }
            do throws(CloudError) {
                var operation = try mapping.operation(item, assets: assets, edited: edited?.text ?? "")
                if let fields = foreign[item.name] {
                    operation = RecordOperation(operation.kind, operation.record, clearing: operation.cleared.subtracting(fields))
                }
                if whole.contains(item.name) { operation = RecordOperation(.replace, operation.record) }
                all.append(operation)
                results.append(.undone)
            } catch {
                // A file may come back.
                let isOfAssets = item.assets.contains { assets[$0] == nil }
                results.append(
                    .refused(
                        code: isOfAssets ? CloudError.Code.assetNotAvailable.rawValue : error.code.rawValue,
                        reason: isOfAssets
                            ? "a file that it names is missing or damaged here, or the cloud does not take it" : error.reason,
                        nextTry: isOfAssets ? environment.now() + ExportReaction.pause : nil))
            }
        }
        refused = all.count < request.items.count ? results : nil
    }
}
