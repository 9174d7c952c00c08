import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Testing

@testable import webjournal

/// A site that is served on a port of its own.
struct TestSite: Sendable {
    let port: Int
    let sessions: Sessions
    private let accounts: any Accounts
    /// For what lies on disk; it is removed at the end.
    let folder: URL

    private init(port: Int, sessions: Sessions, accounts: any Accounts, folder: URL) {
        (self.port, self.sessions, self.accounts, self.folder) = (port, sessions, accounts, folder)
    }

    /// With the two people of the demonstration and empty journals.
    static func run(_ configure: (inout Site) -> Void = { _ in }, _ body: (TestSite) async throws -> Void) async throws {
        try await run(url: nil, accounts: demonstration, configure) { site, _ in try await body(site) }
    }

    private static func demonstration(_ accounts: DemoAccounts) -> DemoAccounts { accounts }

    /// With accounts on top of those of the demonstration.
    ///
    /// - Parameter url: The address of the proxy that browsers use; `nil` for none.
    static func run<Some: Accounts>(
        url: String? = nil, accounts: (DemoAccounts) -> Some, _ configure: (inout Site) -> Void = { _ in },
        _ body: (TestSite, Some) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("webjournal-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let accounts = accounts(try await DemoAccounts(at: folder.appendingPathComponent("cloud", isDirectory: true)))
        let sessions = Sessions(in: folder.appendingPathComponent("people", isDirectory: true))
        var configured = Site(accounts: accounts, sessions: sessions, address: SiteAddress(url: url, port: 0))
        configure(&configured)
        let site = configured
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await WebJournal.serve(site, port: 0) { port.yield($0) } }
            for await port in ports {
                try await body(TestSite(port: port, sessions: sessions, accounts: accounts, folder: folder), accounts)
                break
            }
            group.cancelAll()
            do { try await group.waitForAll() } catch is CancellationError {}
        }
    }

    func browser() -> TestBrowser { TestBrowser(port: port) }

    /// A browser in which somebody is signed in.
    func browser(of email: String, password: String = "") async throws -> TestBrowser {
        let browser = browser()
        try #require(try await browser.signIn(email, password: password).status == .seeOther)
        return browser
    }

    /// The journal of a person who is signed in.
    func journal(of email: String) async throws -> webjournal.Journal {
        try await sessions.open(accounts.signIn(email: email, password: "", code: nil))
    }

    static let journal = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("journal/pictures")

    static func picture(_ name: String) throws -> Data { try Data(contentsOf: journal.appendingPathComponent(name)) }
}

/// What a server has answered.
struct Answer: Sendable {
    let status: HTTPResponseStatus
    let headers: HTTPHeaders
    let body: Data

    var text: String { String(decoding: body, as: UTF8.self) }

    /// What stands between two texts, the first time.
    func between(_ start: String, _ end: String) -> String? {
        guard let begin = text.range(of: start)?.upperBound, let finish = text[begin...].range(of: end)?.lowerBound else {
            return nil
        }
        return String(text[begin..<finish])
    }
}

/// A browser without scripts: it keeps cookies and the token of the forms of its last page.
actor TestBrowser {
    private let port: Int
    private(set) var cookies: [String: String] = [:]
    private(set) var cookieHeaders: [String] = []
    private var token = ""

    init(port: Int) { self.port = port }

    static let client = HTTPClient(
        eventLoopGroupProvider: .singleton,
        configuration: HTTPClient.Configuration(redirectConfiguration: .disallow, timeout: .init(connect: .seconds(10))))

    func request(_ path: String, _ method: HTTPMethod = .GET, headers: [String: String] = [:]) -> HTTPClientRequest {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
        request.method = method
        if !cookies.isEmpty {
            request.headers.add(name: "Cookie", value: cookies.map { "\($0.key)=\($0.value)" }.joined(separator: "; "))
        }
        for (name, value) in headers { request.headers.replaceOrAdd(name: name, value: value) }
        return request
    }

    func send(_ request: HTTPClientRequest) async throws -> Answer {
        let response = try await Self.client.execute(request, timeout: .seconds(30))
        let body = try await response.body.collect(upTo: 32 << 20)
        for header in response.headers["Set-Cookie"] {
            cookieHeaders.append(header)
            let pair = header.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            cookies[String(pair[0])] = header.contains("Max-Age=0") ? nil : String(pair[1])
        }
        let answer = Answer(status: response.status, headers: response.headers, body: Data(body.readableBytesView))
        if let token = answer.between("name=\"token\" value=\"", "\"") { self.token = token }
        return answer
    }

    func get(_ path: String, headers: [String: String] = [:]) async throws -> Answer {
        try await send(request(path, headers: headers))
    }

    /// Sends the form to sign in.
    func signIn(_ email: String, password: String = "", headers: [String: String] = [:]) async throws -> Answer {
        _ = try await get("/sign-in", headers: headers)
        return try await post("/sign-in", ["email": email, "password": password], headers: headers)
    }

    /// Sends a form, with the token of the last page unless it has another one.
    func post(_ path: String, _ fields: [String: String], headers: [String: String] = [:]) async throws -> Answer {
        var request = request(path, .POST, headers: headers)
        let fields = ["token": token].merging(fields) { $1 }
        let allowed = CharacterSet.alphanumerics
        request.headers.replaceOrAdd(name: "Content-Type", value: "application/x-www-form-urlencoded")
        request.body = .bytes(
            ByteBuffer(
                string: fields.map { "\($0.key)=\($0.value.addingPercentEncoding(withAllowedCharacters: allowed)!)" }
                    .joined(separator: "&")))
        return try await send(request)
    }

    /// Sends a form with a file, as browsers do.
    func post(_ path: String, _ fields: [String: String], photo: Data?) async throws -> Answer {
        var body = Data()
        for (name, value) in ["token": token].merging(fields, uniquingKeysWith: { $1 }) {
            body += Data("--X7\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n".utf8)
        }
        let file = photo == nil ? "" : "photo.jpg"
        body += Data(
            "--X7\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"\(file)\"\r\nContent-Type: image/jpeg\r\n\r\n"
                .utf8)
        body += (photo ?? Data()) + Data("\r\n--X7--\r\n".utf8)
        var request = request(path, .POST, headers: ["Content-Type": "multipart/form-data; boundary=X7"])
        request.body = .bytes(ByteBuffer(bytes: body))
        return try await send(request)
    }

    /// Adds a destination.
    ///
    /// - Returns: The address of its page.
    func add(
        _ caption: String, details: String = "", photo: String = "reine.jpg", keepsPosition: Bool = false
    ) async throws
        -> String
    {
        _ = try await get("/destinations/new")
        var fields = ["caption": caption, "details": details]
        if keepsPosition { fields["position"] = "on" }
        let answer = try await post("/destinations", fields, photo: TestSite.picture(photo))
        try #require(answer.status == .seeOther)
        return try #require(answer.headers.first(name: "Location"))
    }

    /// Follows the journal as a page does, and looks at a page again after each change, until it is as wanted.
    func follow(_ path: String, until isAsWanted: (Answer) -> Bool) async throws -> Answer {
        let response = try await Self.client.execute(request("/changes"), timeout: .seconds(60))
        try #require(response.headers.first(name: "Content-Type") == "text/event-stream")
        for try await piece in response.body where String(buffer: piece).contains("event: change") {
            let answer = try await get(path, headers: ["X-Live": "1"])
            if isAsWanted(answer) { return answer }
        }
        throw Ended()
    }

    /// Begins to follow the journal: the stream of events, which the server may end.
    func events() async throws -> HTTPClientResponse.Body {
        let response = try await Self.client.execute(request("/changes"), timeout: .seconds(60))
        try #require(response.headers.first(name: "Content-Type") == "text/event-stream")
        return response.body
    }

    struct Ended: Error {}
}
