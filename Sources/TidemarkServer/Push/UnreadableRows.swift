import Logging

/// How many rows of a ``SQLiteSubscriptionStorage`` can't be read. No notification is sent for them.
struct UnreadableRows: Hashable, Sendable {
    /// The number of subscriptions.
    var subscriptions = 0
    /// The number of devices.
    var devices = 0

    /// Logs a warning for each kind that has unreadable rows.
    func warn(_ logger: Logger) {
        if subscriptions > 0 {
            logger.warning(
                "subscriptions that can't be read send no notifications: devices make them again",
                metadata: ["count": "\(subscriptions)"])
        }
        if devices > 0 {
            logger.warning(
                "devices that can't be read get no notifications until they register again", metadata: ["count": "\(devices)"])
        }
    }
}
