import Foundation
import TestSupport
import Testing
import TidemarkModel

/// Goal: `tidemark permissions` shows people and programs what the user may do, and changes nothing. Method: real processes, on
/// stores whose shares are written in SQL, as a synchronisation leaves them; whole outputs compared.
@Suite(.timeLimit(.minutes(30))) struct PermissionsCommandTests {
    private let tool: Tool
    private let scratch: Scratch

    init() async throws {
        tool = try Tool()
        scratch = try Scratch()
        try await scratch.receive(["theirs", "a, \"b\"", "asked"].map { Destination($0, caption: "c") })
        try await scratch.journal().save([Destination("own", caption: "c"), Destination("given", caption: "c")])
        let anna = ShareParticipant.named("Anna, the \"first\"", .owner)
        func share(_ zone: ZoneName, _ user: ShareParticipant, _ scope: StoreScope = .shared, root: String? = nil) -> Share {
            Share(scope: scope, zone: zone, name: "s", root: root, participants: [anna, user], currentUser: user)
        }
        let own = try SharedPlaces(scratch.container, .private)
        try own.zone(2, ZoneName("Trip"), records: ["given"])
        try own.note(share(ZoneName("Trip"), .named("Me", .owner), .private), of: 2)
        let others = try SharedPlaces(scratch.container, .shared)
        let users: [(String, ShareParticipant)] = [
            ("theirs", .named("Me", .privateUser)), ("a, \"b\"", .named("Me", .publicUser, .readOnly)),
            ("asked", .named("Me", .privateUser, .readWrite, .pending)),
        ]
        for (index, (record, user)) in users.enumerated() {
            let zone = ZoneName("Z\(index)", owner: "_Anna")
            try others.zone(Int64(index + 2), zone, records: [record])
            try others.note(share(zone, user, root: index == 0 ? record : nil), of: Int64(index + 2))
        }
    }

    private func run(_ arguments: String...) async throws -> Tool.Result {
        try await tool.run(["permissions", scratch.container.path] + arguments)
    }

    @Test func `the table has roles, permissions and acceptance in words, and whole reasons`() async throws {
        let result = try await run()
        #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
        #expect(
            result.output == #"""
                record  type         shared  owner              role          permission  acceptance  edit  delete  share  reason
                ------  -----------  ------  -----------------  ------------  ----------  ----------  ----  ------  -----  \#
                ----------------------------------------
                own     Destination  no                         Owner         Read-Write  Accepted    yes   yes     yes    \#
                no cloud has it yet
                given   Destination  yes     Anna, the "first"  Owner         Read-Write  Accepted    yes   yes     no     \#
                the owner may
                theirs  Destination  yes     Anna, the "first"  Private User  Read-Write  Accepted    yes   no      no     \#
                the permission is Read-Write
                a, "b"  Destination  yes     Anna, the "first"  Public User   Read-Only   Accepted    no    no      no     \#
                the permission is Read-Only; ask the owner for the permission Read-Write
                asked   Destination  yes     Anna, the "first"  Private User  Read-Write  Invited     no    no      no     \#
                the invitation is not accepted; accept the invitation

                """#)
    }

    @Test func `JSON has one object per line, with the names that programs know`() async throws {
        let result = try await run("--as", "json")
        let lines = result.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 6 && lines.last == "")
        #expect(
            lines[2] == #"""
                {"type":"Destination","record":"theirs","acceptance":"Accepted","canDelete":false,"canEdit":true,"canRead":true,\#
                "canShare":false,"owner":"Anna, the \"first\"","permission":"Read-Write","reason":"the permission is Read-Write",\#
                "role":"Private User","rule":"readWrite","scope":"shared","share":"s","shared":true,"zone":"Z0","zoneOwner":"_Anna"}
                """#)
        let objects = try lines.dropLast().map { try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
        #expect(objects.map { $0?["record"] as? String } == ["own", "given", "theirs", "a, \"b\"", "asked"])
        #expect(objects.map { $0?["remedy"] as? String } == [nil, nil, nil, "askForReadWrite", "acceptInvitation"])
    }

    @Test func `CSV output follows RFC 4180`() async throws {
        let result = try await run("--as", "csv", "--only", "shared")
        let expected = #"""
            type,record,scope,zone,shared,owner,role,permission,acceptance,edit,delete,share,reason
            Destination,given,private,Trip,yes,"Anna, the ""first""",Owner,Read-Write,Accepted,yes,yes,no,the owner may
            Destination,theirs,shared,Z0,yes,"Anna, the ""first""",Private User,Read-Write,Accepted,yes,no,no,the permission is Read-Write
            Destination,"a, ""b""",shared,Z1,yes,"Anna, the ""first""",Public User,Read-Only,Accepted,no,no,no,\#
            the permission is Read-Only; ask the owner for the permission Read-Write
            Destination,asked,shared,Z2,yes,"Anna, the ""first""",Private User,Read-Write,Invited,no,no,no,\#
            the invitation is not accepted; accept the invitation

            """#
        #expect(result.output == expected.replacingOccurrences(of: "\n", with: "\r\n"))
    }

    private func names(_ arguments: String...) async throws -> [String] {
        let result = try await tool.run(["permissions", scratch.container.path, "--as", "json"] + arguments)
        return try result.output.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])["record"] as? String ?? ""
        }
    }

    @Test func `records are chosen by name, type and kind`() async throws {
        #expect(try await names("theirs", "own") == ["theirs", "own"])
        #expect(try await names("theirs", "own", "--only", "owned") == ["own"])
        #expect(try await names("--only", "editable") == ["own", "given", "theirs"])
        #expect(try await names("--only", "read-only") == ["a, \"b\""])
        #expect(try await names("--only", "owned", "--type", "Destination") == ["own", "given"])
    }

    @Test func `records that do not exist are reported after the others`() async throws {
        let missing = try await run("own", "none", "nor this", "--as", "csv")
        #expect(missing.status == 66)
        #expect(missing.errors == "tidemark: there is no record 'none' and 1 more\n")
        #expect(missing.output.split(separator: "\r\n").count == 2)
        let type = try await run("--type", "Visit")
        #expect(type.status == 64 && type.output.isEmpty)
        #expect(type.errors.contains("Visit") && type.errors.contains("Destination"), "\(type.errors)")
        let other = try await tool.run(["permissions", scratch["none.tidemark"].path])
        #expect(other.status == 66, "\(other.errors)")
    }

    @Test func `the command changes nothing in the container`() async throws {
        func state() throws -> [String: Data] {
            let files = try FileManager.default.subpathsOfDirectory(atPath: scratch.container.path)
            return files.reduce(into: [:]) { state, path in
                let url = scratch.container.appendingPathComponent(path)
                state[path] = (try? Data(contentsOf: url)) ?? Data()
            }
        }
        let before = try state()
        #expect(try await run("--as", "json").status == 0)
        #expect(try await run("own").status == 0)
        #expect(try state() == before)
    }
}
