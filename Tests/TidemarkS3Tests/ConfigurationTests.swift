import Foundation
import TestSupport
import Testing
import TidemarkCloud

@testable import TidemarkS3

@Suite("Configurations and answers of S3", .timeLimit(.minutes(30)))
struct ConfigurationTests {
    private let scratch = try! Scratch()

    private func make(_ bucket: String, _ endpoint: String?, style: S3Configuration.Style? = nil) throws -> S3Configuration {
        try S3Configuration(
            bucket: bucket, endpoint: endpoint, region: "eu-central-1", style: style, credentials: .environment([:]))
    }

    @Test("Addresses are by path or by virtual host, encoded, with a query in order")
    func addresses() throws {
        let own = try make("journal", "https://s3.example.org:8333/")
        #expect(
            own.url("a b/ü/c", [("uploads", ""), ("prefix", "x/y&z")])
                == "https://s3.example.org:8333/journal/a%20b/%C3%BC/c?prefix=x%2Fy%26z&uploads=")
        #expect(own.url("", []) == "https://s3.example.org:8333/journal")
        let amazon = try make("journal", nil)
        #expect(amazon.url("a/b", []) == "https://journal.s3.eu-central-1.amazonaws.com/a/b")
        #expect(amazon.url("", [("list-type", "2")]) == "https://journal.s3.eu-central-1.amazonaws.com/?list-type=2")
        #expect(try make("journal", "http://[::1]:9000", style: .path).endpoint == "http://[::1]:9000")
    }

    @Test(
        "A wrong name of a bucket, or a wrong endpoint, is refused",
        arguments: [
            ("Journal", nil), ("jo", nil), ("a/b", nil), ("../x", nil), ("journal", "s3.example.org"),
            ("journal", "ftp://s3.example.org"),
            ("journal", "https://s3.example.org/path"), ("journal", "https://user:geheim@s3.example.org"),
            ("journal", "https://"),
            ("journal", "https://s3.example.org?x=1"),
        ] as [(String, String?)])
    func refuses(_ bucket: String, _ endpoint: String?) {
        let error = #expect(throws: CloudError(.invalidArguments, "")) { try make(bucket, endpoint) }
        #expect(error?.reason.contains("geheim") == false)
    }

    @Test("Keys come from the environment, or from a profile of a file that may change")
    func readsKeys() throws {
        let environment = ["AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c"]
        #expect(try S3Credentials.environment(environment).keys() == .init(id: "a", secret: "b", token: "c"))
        let file = try scratch.write(
            """
            # Keys
            [default]
            aws_access_key_id = one
            aws_secret_access_key=two=/+
            [ other ]
            AWS_ACCESS_KEY_ID=three
              aws_secret_access_key = four
            aws_session_token = five
            [empty]
            """, to: "keys")
        let shared = ["AWS_SHARED_CREDENTIALS_FILE": file.path]
        #expect(try S3Credentials.environment(shared).keys() == .init(id: "one", secret: "two=/+", token: nil))
        #expect(
            try S3Credentials.environment(shared.merging(["AWS_PROFILE": "other"]) { $1 }).keys()
                == .init(id: "three", secret: "four", token: "five"))
        for (credentials, word) in [
            (S3Credentials.file(file, profile: "empty"), "'empty'"), (.file(scratch["none"]), "AWS_ACCESS_KEY_ID"),
        ] {
            let error = #expect(throws: CloudError(.invalidArguments, "")) { try credentials.keys() }
            #expect(error?.reason.contains(word) == true)
        }
    }

    @Test("Answers are read with their entities, and malformed ones are refused")
    func readsAnswers() throws {
        func answer(_ text: String) -> S3Answer? { S3Answer(Array(text.utf8)) }
        let list = answer(
            """
            <?xml version="1.0"?><a:ListBucketResult xmlns:a="x"><IsTruncated>true</IsTruncated>
            <NextContinuationToken>a&amp;b&#x2F;&#99;</NextContinuationToken>
            <Contents><Key>k&lt;1</Key><Size>7</Size><LastModified>2026-11-25T20:35:11.073Z</LastModified><Owner><ID>o</ID></Owner></Contents>
            <Contents><Key>k2</Key><Size>0</Size><LastModified>1970-01-01T00:00:00Z</LastModified><ETag/></Contents>
            <CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes></a:ListBucketResult>
            """.replacingOccurrences(of: "a:ListBucketResult>", with: "ListBucketResult>")
                .replacingOccurrences(of: "<a:", with: "<"))
        #expect(
            list?.page
                == S3Page(
                    objects: [
                        S3Object(key: "k<1", size: 7, modified: 1_795_638_911_073_000), S3Object(key: "k2", size: 0, modified: 0),
                    ], prefixes: ["p/"], next: "a&b/c"))
        #expect(answer("<Error><Code>SlowDown</Code></Error>")?.errorCode == "SlowDown")
        #expect(answer("<Error/>") != nil)
        for text in [
            "", "x", "<", "<a>", "<a></b>", "</a>", "<a>&nbsp;</a>", "<a>&#xD800;</a>", "<a>&amp</a>",
            String(repeating: "<a>", count: 50),
            "<a", "<>", "<a></a", String(repeating: "<a/>", count: 200_000),
        ] {
            #expect(answer(text)?.page == nil)
            #expect(answer(text) == nil || text.isEmpty, "\(text.prefix(20))")
        }
        for text in [
            "<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>",
            "<ListBucketResult><Contents><Key>k</Key><Size>-1</Size><LastModified>1970-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", "<Other></Other>",
        ] { #expect(answer(text)?.page == nil) }
    }

    @Test("Times are read in both forms, and other texts are refused")
    func readsTimes() {
        #expect(S3Time.microseconds(header: "Sun, 06 Nov 1994 08:49:37 GMT") == 784_111_777_000_000)
        #expect(S3Time.microseconds("1994-11-06T08:49:37Z") == 784_111_777_000_000)
        #expect(S3Time.microseconds("2000-02-29T00:00:00.5Z") == 951_782_400_500_000)
        for text in [
            "", "2000-02-29T00:00:00.5e300Z", "2026-13-01T00:00:00Z", "2026-11-25T20:35:11", "now", "2026-11-25",
            "99999-01-01T00:00:00Z",
        ] {
            #expect(S3Time.microseconds(text) == nil)
        }
        for text in ["", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Now 1994 08:49:37 GMT", "06 Nov 1994"] {
            #expect(S3Time.microseconds(header: text) == nil)
        }
    }
}
