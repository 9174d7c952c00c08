import Foundation
import TidemarkCloud
import TidemarkSQLite
import TidemarkStore

/// The pictures of a run, with the words for them.
struct SimulatedPictures {
    static let count = 4
    /// The size of a piece of an upload or download: a picture has several.
    static let bytesPerPiece = 100

    /// The beginning of a content, which no program takes for a real picture.
    private static let begin = Data("picture ".utf8)

    private let contents: [String: Data]
    private let digests: [String: String]

    init() {
        contents = (0..<Self.count).reduce(into: [:]) {
            $0["picture \($1)"] = Self.begin + Data(repeating: UInt8($1), count: 40 + 90 * $1)
        }
        digests = contents.reduce(into: [:]) { $0[AssetDigest.asset(of: $1.value).digest] = $1.key }
    }

    func content(_ number: Int) -> Data { contents["picture \(number)"]! }

    /// Returns the word for a digest in the cloud.
    func name(ofDigest digest: String) -> String { digests[digest] ?? "no picture of the run" }

    /// Returns the word for an asset of a store.
    func name(of asset: String, in store: RecordStore) -> String {
        guard let file = store.file(of: asset), let data = try? Data(contentsOf: file) else { return "a picture that is missing" }
        return contents.first { $0.value == data }?.key ?? "a damaged picture"
    }

    /// Ingests a picture. The blobs stay open until a record names it.
    func ingest(_ number: Int, into container: ContainerDirectory) throws -> (blobs: BlobStore, blob: BlobStore.Blob) {
        let blobs = try BlobStore(container: container)
        let workers = try IngestWorkers(store: blobs, root: container.url, count: 1)
        let blob = try content(number).withUnsafeBytes { try workers.ingest($0, name: "picture \(number)") }
        try blobs.sync()
        return (blobs, blob)
    }
}
