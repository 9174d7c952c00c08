import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel

/// Goal: only the owner can read a session, and only safe addresses of servers are accepted. Method: files of all kinds in a
/// folder of the test's.
@Suite(.timeLimit(.minutes(30))) struct SessionFileTests {
    private let scratch: Scratch
    private let file: SessionFile
    private let session: CloudSession

    init() throws {
        scratch = try Scratch()
        file = SessionFile(at: scratch["cloud-session"])
        session = try CloudSession(cloud: "https://sync.example.org a development", userRecordName: "_anna", token: "secret")
    }

    @Test func `a session is stored for its owner only, and read again`() throws {
        #expect(try file.session() == nil)
        try file.keep(session)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.url.path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        #expect(try file.session() == session)
        let next = try CloudSession(cloud: session.cloud, userRecordName: "_anna", token: "next")
        try file.replace(session, by: next)
        #expect(try file.session() == next)
        // The file has another session now.
        try file.replace(session, by: session)
        #expect(try file.session() == next)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.url.path) == ["cloud-session"])
        try file.remove()
        try file.remove()
        #expect(try file.session() == nil)
        try file.replace(next, by: session)
        #expect(try file.session() == nil)
    }

    @Test func `a session is removed only while it is the stored one`() throws {
        try file.keep(session)
        let next = try CloudSession(cloud: session.cloud, userRecordName: "_ben", token: "next")
        try file.remove(next)
        #expect(try file.session() == session)
        try file.remove(session)
        #expect(try file.session() == nil)
        // A lock that a process has left does not block others.
        try Data().write(to: scratch[".cloud-session.lock"])
        try file.keep(next)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.url.path) == ["cloud-session"])
    }

    @Test func `leftovers of killed processes are removed by the next sign-in, and files of running ones stay`() throws {
        let names = (0..<4).map { _ in UUID().uuidString }
        let left = [".cloud-session.\(names[0])", ".cloud-session.\(names[1]).tmp", ".cloud-session-device.\(names[2]).tmp"]
        let stays = [
            ".cloud-session.\(names[3]).tmp", ".cloud-session.notes", ".cloud-session.notes.tmp", ".other.\(names[0]).tmp",
        ]
        for name in left + stays { try scratch.write("half", to: name) }
        // The process that has this file open still runs.
        let written = open(scratch[stays[0]].path, O_RDWR)
        defer { close(written) }
        try #require(flock(written, LOCK_EX | LOCK_NB) == 0)
        try file.keep(session)
        let there = try FileManager.default.contentsOfDirectory(atPath: scratch.url.path)
        #expect(Set(there) == Set(stays + ["cloud-session"]))
    }

    @Test func `of many writers that replace the same session only one succeeds`() throws {
        try file.keep(session)
        let names = (0..<8).map { "token-\($0)" }
        let (file, session) = (file, session)
        DispatchQueue.concurrentPerform(iterations: names.count) { index in
            let next = try? CloudSession(cloud: session.cloud, userRecordName: "_anna", token: names[index])
            if let next { try? file.replace(session, by: next) }
        }
        let kept = try #require(try file.session())
        #expect(names.contains(kept.token))
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.url.path) == ["cloud-session"])
    }

    @Test(arguments: [0o640, 0o604, 0o660, 0o620, 0o601])
    func `a session that others can read or write is refused`(mode: Int) throws {
        try file.keep(session)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.url.path)
        let error = #expect(throws: CloudError.self) { try file.session() }
        #expect(error?.code == .notAuthenticated)
        #expect(error?.reason.contains("sign in again") == true)
        // A new session replaces it, with its own mode.
        try file.keep(session)
        #expect(try file.session() == session)
    }

    @Test func `a link, a folder and a pipe are refused`() throws {
        try file.keep(session)
        try FileManager.default.moveItem(at: file.url, to: scratch["elsewhere"])
        try FileManager.default.createSymbolicLink(at: file.url, withDestinationURL: scratch["elsewhere"])
        #expect(throws: CloudError(.notAuthenticated, "")) { try file.session() }
        try FileManager.default.removeItem(at: file.url)
        try FileManager.default.createDirectory(at: file.url, withIntermediateDirectories: false)
        #expect(throws: CloudError(.notAuthenticated, "")) { try file.session() }
        try FileManager.default.removeItem(at: file.url)
        mkfifo(file.url.path, 0o600)
        #expect(throws: CloudError(.notAuthenticated, "")) { try file.session() }
    }

    @Test(arguments: [
        "", "{", "[]", #"{"format":2,"cloud":"a","userRecordName":"b","token":"c"}"#,
        #"{"format":1,"cloud":"a","userRecordName":"b"}"#,
        #"{"format":1,"cloud":"a","userRecordName":"b","token":"c d"}"#, String(repeating: " ", count: 20_000),
    ])
    func `a damaged session is reported without its secrets`(text: String) throws {
        try Data(text.utf8).write(to: file.url)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.url.path)
        #expect(throws: CloudError(.notAuthenticated, "")) { try file.session() }
    }

    // Addresses

    @Test(arguments: [
        ("https://sync.example.org", "https://sync.example.org"), ("HTTPS://Sync.Example.org/", "https://sync.example.org"),
        ("https://sync.example.org:443", "https://sync.example.org"), ("https://a:8443/sync/", "https://a:8443/sync"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"), ("http://localhost", "http://localhost"),
        ("http://[::1]:8080/", "http://[::1]:8080"), ("https://[2001:db8::1]", "https://[2001:db8::1]"),
        ("http://127.8.9.10:80", "http://127.8.9.10"),
    ])
    func `an address is read`(text: String, wanted: String) throws {
        let address = try ServerAddress(text)
        #expect(address.description == wanted)
        #expect(try ServerAddress(address.description) == address)
    }

    @Test(arguments: [
        "", "sync.example.org", "ftp://sync.example.org", "https://", "https:///path", "https://anna:pw@sync.example.org",
        "https://a?b",
        "https://a#b", "https://a:0", "https://a:70000", "https://a/../b", "https://a b", "https://a/%2e%2e", "https://ä.example",
        "https://a\r\nb", "http://sync.example.org", "http://127.evil.example", "http://127.0.0.1.example.org",
        "http://1270.0.0.1", "http://127.0.0.01", "http://127.00.0.1", "http://0127.0.0.1",
        String(repeating: "https://a", count: 200),
    ])
    func `an invalid or unsafe address is refused`(text: String) {
        let error = #expect(throws: CloudError.self) { try ServerAddress(text) }
        #expect(error?.code == .invalidArguments)
        #expect(error?.reason.contains("anna:pw") == false)
    }

    @Test func `another machine without encryption is accepted only with an explicit option`() throws {
        #expect(try ServerAddress("http://sync.example.org", allowsInsecure: true).description == "http://sync.example.org")
    }
}
