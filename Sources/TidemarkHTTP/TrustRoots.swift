public import Foundation
public import TidemarkCloud

#if canImport(Security)
    public import Security
#else
    import COpenSSL
#endif

/// The authorities that may have issued a server's certificate.
///
/// ```swift
/// let own = try TrustRoots(contentsOf: URL(fileURLWithPath: "authority.pem"))
/// let cloud = HTTPCloud(try ServerAddress("https://sync.example.org"), container: name, trustRoots: own)
/// ```
public struct TrustRoots: Hashable, Sendable {
    /// The authorities that the machine trusts. On Linux it is the list of the distribution; `SSL_CERT_FILE` is ignored.
    public static let system = TrustRoots()

    /// The given certificates in PEM; `nil` for the machine's authorities.
    public let pem: String?

    /// The most bytes of the certificates. A distribution's whole list has a quarter of it.
    private static let sizeLimit = 1 << 20
    private static let begin = "-----BEGIN CERTIFICATE-----"

    private init() { pem = nil }

    /// Makes a list of the given authorities, and no others.
    ///
    /// - Parameter pem: At least one certificate, each between `-----BEGIN CERTIFICATE-----` and `-----END CERTIFICATE-----`.
    ///   Other text is ignored.
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
        guard Self.isReadable(pem) else {
            throw CloudError(.invalidArguments, "there is a certificate that can't be read: is it whole?")
        }
        self.pem = pem
    }

    /// Makes a list of the authorities in a file, and no others.
    ///
    /// - Throws: `CloudError` `invalidArguments`, with a reason that names the file.
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

    /// Whether all certificates of a text can be read.
    private static func isReadable(_ pem: String) -> Bool {
        #if canImport(Security)
            let bodies = pem.components(separatedBy: begin).dropFirst()
            return bodies.allSatisfy { body in
                guard let text = body.components(separatedBy: "-----END CERTIFICATE-----").first,
                    let bytes = Data(base64Encoded: text, options: .ignoreUnknownCharacters)
                else { return false }
                return SecCertificateCreateWithData(nil, bytes as CFData) != nil
            }
        #else
            var pem = pem
            var count = 0
            pem.withUTF8 { bytes in
                guard let source = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return }
                defer { BIO_free(source) }
                while let certificate = PEM_read_bio_X509(source, nil, nil, nil) {
                    X509_free(certificate)
                    count += 1
                }
            }
            // After the last certificate, OpenSSL records the error that there is no other one.
            ERR_clear_error()
            return count == pem.components(separatedBy: begin).count - 1
        #endif
    }
}
