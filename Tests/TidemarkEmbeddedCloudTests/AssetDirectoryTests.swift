import Foundation
import TestSupport
import Testing

@testable import TidemarkEmbeddedCloud

@Suite("The contract of asset storages, in a directory", .timeLimit(.minutes(5)))
struct AssetDirectoryTests {
    @Test(arguments: AssetStorageContract.all)
    func `a directory keeps it, also where two storages use it`(_ check: AssetStorageContract) async throws {
        let scratch = try Scratch()
        try await check.run(
            AssetStorageContract.Subject {
                AssetDirectory(scratch["assets"])
            } file: {
                try scratch.write("", to: "file-\(UUID().uuidString)")
            })
    }
}
