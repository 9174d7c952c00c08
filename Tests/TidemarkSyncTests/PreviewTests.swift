import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

@testable import TidemarkSync

/// Goal: previewing a synchronisation costs little and changes nothing. Method: a preview of a real container, and the files in
/// the caller's folder afterwards.
@Suite(.timeLimit(.minutes(30))) struct PreviewTests {
    @Test func `a preview copies the records and none of their pictures`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let manifest = try scratch.writeLines([#"{"id":"senja","image":"senja.png"}"#], to: "records.jsonl")
        try scratch.write(Picture.png(1), to: "senja.png")
        _ = try await BulkImport(
            source: .file(manifest), into: a.container.url, options: .destination { $0.assetFields = ["image"] }
        ).run()
        try FileManager.default.createDirectory(at: scratch["preview"], withIntermediateDirectories: true)
        let before = (try a.reader().transactions(), try await a.store.syncState())
        let preview = try await SyncPreview(
            of: a.container, databases: try cloud.cloud.databases(of: TestCloud.container, account: cloud.account.id),
            in: scratch["preview"])
        #expect(preview.toSend.map(\.record) == ["senja"])
        #expect(try a.reader().transactions() == before.0)
        #expect(try await a.store.syncState() == before.1)
        let copied = try FileManager.default.subpathsOfDirectory(atPath: scratch["preview"].path)
        #expect(copied.contains("preview.tidemark/private.sqlite"))
        #expect(copied.filter { $0.contains("/assets/") } == [])
    }

    @Test func `a failure of the store keeps its code inside a cloud error`() {
        let failures: [StoreError] = [.init(.busy, "busy"), .init(.diskFull, "full"), .init(.corrupt, "damaged")]
        for failure in failures {
            let carried = CloudError(transfer: failure).storeError
            #expect(carried?.code == failure.code)
            #expect(carried?.message == failure.message)
        }
        #expect(CloudError(transfer: CancellationError()).storeError?.code == .io)
        #expect(CloudError(transfer: CloudError(.zoneBusy, "busy")).storeError == nil)
    }
}
