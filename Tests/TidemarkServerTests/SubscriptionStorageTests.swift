import Foundation
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkModel

@testable import TidemarkServer

@Suite("The contracts of subscriptions and notifications, in a directory", .timeLimit(.minutes(5)))
struct SubscriptionStorageTests {
    @Test(arguments: SubscriptionStorageContract.checks)
    func `a file keeps it`(_ check: StorageCheck<SubscriptionStorageContract.Subject>) async throws {
        let scratch = try Scratch()
        try await check.run { try SQLiteSubscriptionStorage(at: scratch.url) { _, _ in nil } }
    }

    @Test(arguments: NotificationStorageContract.checks)
    func `memory keeps it`(_ check: StorageCheck<NotificationStorageContract.Subject>) async throws {
        let mailboxes = LockedMailbox()
        try await check.run(.init { mailboxes.mailbox($0) })
    }

    /// Two servers of one directory don't share notifications: here both are one.
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
