import Foundation
import Logging
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkServer

@Suite("The contracts of subscriptions and notifications, in a directory", .timeLimit(.minutes(30)))
struct SubscriptionStorageTests {
    @Test(arguments: SubscriptionStorageContract.checks)
    func `subscriptions are kept in a file`(_ check: StorageCheck<SubscriptionStorageContract.Subject>) async throws {
        let scratch = try Scratch()
        try await check.run { try SQLiteSubscriptionStorage(at: scratch.url) { _, _ in nil } }
    }

    @Test func `a row with a missing value is left out and counted, and does not crash the server`() async throws {
        let (scratch, file) = (try Scratch(), "subscriptions.sqlite")
        func opened(_ folder: URL) throws -> SQLiteSubscriptionStorage {
            try SQLiteSubscriptionStorage(at: folder) { owner, content in
                StoredSubscription(
                    owner: owner, id: "1", place: .init(zoneOwner: "1", zone: "1", recordType: nil), content: content)
            }
        }
        try FileManager.default.createDirectory(at: scratch["made"], withIntermediateDirectories: true)
        _ = try opened(scratch["made"])
        for column in try NullColumn.allow(in: scratch["made/\(file)"], values: ["environment": "'development'"]) {
            let folder = scratch[column.description]
            try column.copy(scratch["made"], to: folder, database: file)
            let storage = try opened(folder)
            let isOfDevices = column.table == "devices"
            let unreadable = isOfDevices ? UnreadableRows(devices: 1) : UnreadableRows(subscriptions: 1)
            #expect(storage.unreadable == unreadable, "\(column)")
            #expect(try await storage.accounts() == ["1"], "\(column)")
            let devices = try await storage.devices(of: "1", container: "1", environment: .development)
            #expect(devices.count == (isOfDevices ? 0 : 1), "\(column)")
        }
    }

    @Test func `the log has a line for each kind of unreadable row, and no line if all rows can be read`() {
        let log = StubbedServer.Log()
        let logger = Logger(label: "test") { _ in
            LogfmtHandler(level: .warning) { line in log.lines.withLock { $0.append(line) } }
        }
        UnreadableRows().warn(logger)
        #expect(log.lines.withLock { $0.isEmpty })
        UnreadableRows(subscriptions: 2, devices: 3).warn(logger)
        let lines = log.lines.withLock { $0 }
        #expect(lines.count == 2)
        for (line, text) in zip(lines, ["subscriptions that can't be read", "devices that can't be read"]) {
            #expect(line.contains(text) && line.contains(text.hasPrefix("devices") ? " count=3" : " count=2"), "\(line)")
        }
    }

    @Test(arguments: NotificationStorageContract.checks)
    func `notifications are kept in memory`(_ check: StorageCheck<NotificationStorageContract.Subject>) async throws {
        let mailboxes = LockedMailbox()
        try await check.run(.init { mailboxes.mailbox($0) })
    }

    /// Two servers of one directory don't share notifications: here both are one mailbox.
    private final class LockedMailbox: Sendable {
        private let made = LockedValue<NotificationMailbox?>(nil)

        func mailbox(_ limits: NotificationLimits) -> NotificationMailbox {
            made.withLock { made in
                let mailbox = made ?? NotificationMailbox(limits: limits)
                made = mailbox
                return mailbox
            }
        }
    }
}
