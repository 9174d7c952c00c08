import Foundation
import TestSupport
import Testing

/// Goal: a mistyped path or address makes nothing, and a sign-in that fails leaves nothing behind. Method: the tool in an empty
/// folder, and the files in it afterwards.
@Suite(.timeLimit(.minutes(30))) struct SignInCommandTests {
    private let scratch: Scratch
    private let tool: Tool

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    @discardableResult
    private func signIn(
        _ name: String = "a", cloud: String = "cloud", email: String = "anna@example.org", _ more: String...,
        expecting status: Int32
    ) async throws -> Tool.Result {
        let result = try await tool.run(
            ["account", "sign-in", scratch["\(name).tidemark"].path, "--cloud", scratch[cloud].path, "--email", email] + more)
        #expect(result.status == status, "\(result.output)\(result.errors)")
        return result
    }

    /// Everything below the folder, by path.
    private func files() throws -> [String] { try FileManager.default.subpathsOfDirectory(atPath: scratch.url.path).sorted() }

    @Test func `a cloud is made only on request, and found later without it`() async throws {
        let refused = try await signIn(expecting: 66)
        #expect(refused.errors.contains("there is no cloud at \(scratch["cloud"].path)"))
        #expect(refused.errors.contains("--create"))
        #expect(try files() == [])
        try await signIn("a", "--create", expecting: 0)
        try await signIn("b", expecting: 0)
        try await signIn("b", "--create", expecting: 0)
    }

    @Test func `an account is made only on request`() async throws {
        try await signIn("a", "--create", expecting: 0)
        let before = try files()
        let refused = try await signIn("b", email: "ana@example.org", expecting: 66)
        #expect(refused.errors.contains("has no account ana@example.org"))
        #expect(try files() == before)
        try await signIn("b", email: "ana@example.org", "--create", expecting: 0)
    }

    @Test func `invalid names make nothing`() async throws {
        #expect(try await signIn(email: "anna", "--create", expecting: 64).errors.contains("no address of an account"))
        #expect(
            try await signIn("a", "--create", "--container", "../up", expecting: 64).errors.contains("can't identify a container")
        )
        #expect(try files() == [])
    }

    @Test func `a cloud is not made in a folder with other files`() async throws {
        try scratch.write("mine", to: "cloud/file")
        let refused = try await signIn("a", "--create", expecting: 73)
        #expect(refused.errors.contains("holds other files"))
        #expect(try files() == ["cloud", "cloud/file"])
    }

    @Test func `no container is left if its cloud can't be made`() async throws {
        try scratch.write("mine", to: "file")
        let refused = try await signIn("a", cloud: "file/cloud", "--create", expecting: 73)
        #expect(refused.errors.contains("cannot make a cloud at \(scratch["file/cloud"].path)"))
        #expect(try files() == ["file"])
    }

    @Test func `no cloud and no account are left if the container can't be made`() async throws {
        try scratch.write("mine", to: "a.tidemark/file")
        try await signIn("a", "--create", expecting: 73)
        #expect(try files() == ["a.tidemark", "a.tidemark/file"])
    }

    @Test func `a sign-in with sync switched off succeeds, and the tool says what that means`() async throws {
        try await signIn("a", "--create", expecting: 0)
        let off = try await tool.run(["account", "set", scratch["a.tidemark"].path, "--app", "off"])
        #expect(off.status == 0)
        let result = try await signIn("a", email: "ben@example.org", "--create", expecting: 0)
        #expect(result.errors.contains("134400"))
        #expect(result.output.contains("signed in as ben@example.org"))
    }
}
