import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkServer

/// A client that speaks CloudKit Web Services and shares no code with Tidemark: JSON in, JSON out.
struct ProtocolClient: Sendable {
    /// The members of a JSON object in an answer.
    typealias Object = [String: any Sendable]

    struct Answer: Sendable {
        let status: Int
        let headers: HTTPHeaders
        let bytes: [UInt8]

        /// The body's object.
        var object: Object { read(bytes) as? Object ?? [:] }

        func list(_ name: String) -> [Object] { (object[name] as? [any Sendable] ?? []).compactMap { $0 as? Object } }

        private func read(_ bytes: [UInt8]) -> any Sendable {
            Self.sendable((try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)) ?? NSNull())
        }

        private static func sendable(_ value: Any) -> any Sendable {
            switch value {
            case let object as [String: Any]: object.mapValues { sendable($0) } as Object
            case let list as [Any]: list.map { sendable($0) } as [any Sendable]
            case let text as String: text
            case let number as NSNumber: number
            default: "null"
            }
        }
    }

    let subject: ServedCloudSubject
    let token: String?
    var scope = "private"

    /// - Parameter account: `nil` for a program without an account.
    init(_ subject: ServedCloudSubject, account: String?) async throws {
        self.subject = subject
        guard let id = try await subject.fixture.id(account) else {
            token = nil
            return
        }
        token = try await subject.access.makeSession(
            account: id, container: FaultyCloudFixture.container, environment: .development, kind: .device
        ).text
    }

    func of(_ scope: String) -> ProtocolClient {
        var client = self
        client.scope = scope
        return client
    }

    private var base: String { subject.address.description.trimmingSuffix { $0 == "/" } }

    func post(_ path: String, _ body: String = "{}") async throws -> Answer { try await send(.POST, path, Array(body.utf8)) }
    func get(_ path: String) async throws -> Answer { try await send(.GET, path, nil) }

    private func send(_ method: HTTPMethod, _ path: String, _ body: [UInt8]?) async throws -> Answer {
        let place = path.hasPrefix("/") ? path : "/database/1/\(FaultyCloudFixture.container)/development/\(scope)/\(path)"
        var headers: [(String, String)] = [("Content-Type", "text/plain")]
        if let token { headers.append(("Authorization", "Bearer \(token)")) }
        return try await send(method, url: base + place, headers: headers, body)
    }

    /// Sends a request to an address that the server has given out.
    func send(
        _ method: HTTPMethod, url: String, headers: [(String, String)] = [], _ body: [UInt8]? = nil
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: url)
        request.method = method
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        if let body { request.body = .bytes(ByteBuffer(bytes: body)) }
        let answer = try await StubbedServer.client.execute(request, timeout: .minutes(10))
        let bytes = try await answer.body.collect(upTo: 100 << 20)
        return Answer(status: Int(answer.status.code), headers: answer.headers, bytes: Array(buffer: bytes))
    }

    // Shortcuts

    func makeZone(_ name: String = "notes") async throws {
        let answer = try await post(
            "zones/modify", #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"\#(name)"}}}]}"#)
        try #require(answer.status == 200)
    }

    /// The record in the answer to one operation.
    @discardableResult
    func modify(_ operation: String, record: String, zone: String = "notes") async throws -> Object {
        let answer = try await post(
            "records/modify",
            #"{"zoneID":{"zoneName":"\#(zone)"},"operations":[{"operationType":"\#(operation)","record":\#(record)}]}"#)
        return try #require(answer.list("records").first, "\(String(decoding: answer.bytes, as: UTF8.self))")
    }
}

extension [String: any Sendable] {
    func text(_ path: String...) -> String? { value(path) as? String }
    func number(_ path: String...) -> Int64? { (value(path) as? NSNumber)?.int64Value }
    func object(_ path: String...) -> ProtocolClient.Object? { value(path) as? ProtocolClient.Object }

    private func value(_ path: [String]) -> (any Sendable)? {
        var value: (any Sendable)? = self
        for name in path { value = (value as? ProtocolClient.Object)?[name] }
        return value
    }
}

extension String {
    fileprivate func trimmingSuffix(_ isTrimmed: (Character) -> Bool) -> String {
        var text = self
        while let last = text.last, isTrimmed(last) { text.removeLast() }
        return text
    }
}
