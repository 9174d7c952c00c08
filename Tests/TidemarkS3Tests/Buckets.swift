import Foundation
import TestServers
import TestSupport
import TidemarkCloudEngine
import TidemarkS3

/// Storages over a bucket.
enum Buckets {
    /// The credentials of a file: the environment of the tests has none.
    static func credentials(_ scratch: Scratch, secret: String = SeaweedServer.secret) throws -> S3Credentials {
        let file = try scratch.write(
            "[default]\naws_access_key_id = \(SeaweedServer.keyID)\naws_secret_access_key = \(secret)\n",
            to: "credentials-\(secret.utf8.count)")
        return .file(file)
    }

    static func configuration(
        _ endpoint: String, _ scratch: Scratch, bucket: String = "journal", secret: String = SeaweedServer.secret
    ) throws -> S3Configuration {
        var configuration = try S3Configuration(
            bucket: bucket, endpoint: endpoint, region: "us-east-1", credentials: credentials(scratch, secret: secret))
        configuration.partSize = 5 << 20
        // Addresses outlast the slowest machine that reads by them.
        configuration.readTime = 3600
        try configuration.signReads(at: nil)
        return configuration
    }

    /// A prefix of its own in a bucket.
    static func subject(_ configuration: S3Configuration, _ scratch: Scratch) -> AssetStorageContract.Subject {
        let prefix = "test/\(UUID().uuidString)"
        return AssetStorageContract.Subject {
            S3AssetStorage(configuration, prefix: prefix)
        } file: {
            try scratch.write("", to: "file-\(UUID().uuidString)")
        }
    }
}
