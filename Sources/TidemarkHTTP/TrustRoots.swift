import Foundation
import NIOSSL
import TidemarkCloud

/// Which authorities a server's certificate may be from.
///
/// ```swift
/// let own = try TrustRoots(contentsOf: URL(fileURLWithPath: "authority.pem"))
/// let cloud = HTTPCloud(try ServerAddress("https://sync.example.org"), container: name, trustRoots: own)
/// ```
public struct TrustRoots: Hashable, Sendable {
    /// Those that the machine trusts. On Linux, the list of the distribution: `SSL_CERT_FILE` is not looked at.
    public static let system = TrustRoots()

    /// The certificates as they were given; `nil` for those of the machine.
    public let pem: String?
    let certificates: [NIOSSLCertificate]

    /// More than any has: a distribution's whole list has a quarter of it.
    private static let sizeLimit = 1 << 20
    private static let begin = "-----BEGIN CERTIFICATE-----"

    private init() { (pem, certificates) = (nil, []) }

    /// Authorities of one's own, and no others.
    ///
    /// - Parameter pem: One certificate or several, each between `-----BEGIN CERTIFICATE-----` and `-----END CERTIFICATE-----`. What stands
    ///   around them does not count.
    /// - Throws: `CloudError` `invalidArguments`.
    public init(pem: String) throws(CloudError) {
        guard pem.utf8.count <= Self.sizeLimit else {
            throw CloudError(.invalidArguments, "the authority's certificates have more than \(Self.sizeLimit) bytes")
        }
        guard !pem.contains("PRIVATE KEY-----") else {
            throw CloudError(
                .invalidArguments, "there is a private key beside the certificates: give the authority's certificate alone")
        }
        guard pem.contains(Self.begin) else {
            throw CloudError(
                .invalidArguments, "there is no certificate in PEM, which begins with \(Self.begin)")
        }
        guard let certificates = try? NIOSSLCertificate.fromPEMBytes(Array(pem.utf8)), !certificates.isEmpty else {
            throw CloudError(.invalidArguments, "there is a certificate that can't be read: is it whole?")
        }
        (self.pem, self.certificates) = (pem, certificates)
    }

    /// Authorities of one's own, and no others, from a file.
    ///
    /// - Throws: `CloudError` `invalidArguments`, which names the file.
    public init(contentsOf file: URL) throws(CloudError) {
        let data: Data?
        do {
            let handle = try FileHandle(forReadingFrom: file)
            defer { try? handle.close() }
            data = try handle.read(upToCount: Self.sizeLimit + 1)
        } catch {
            throw CloudError(.invalidArguments, "\(file.path) can't be read; name a file with the authority's certificate in PEM")
        }
        guard let text = String(validating: data ?? Data(), as: UTF8.self) else {
            throw CloudError(.invalidArguments, "\(file.path): there is no certificate in PEM, which is text")
        }
        do throws(CloudError) {
            self = try TrustRoots(pem: text)
        } catch {
            throw CloudError(error.code, "\(file.path): \(error.reason)")
        }
    }

    /// For connections; `nil` where nothing is to be said.
    var configuration: TLSConfiguration? {
        guard pem != nil else { return nil }
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .certificates(certificates)
        return configuration
    }
}
