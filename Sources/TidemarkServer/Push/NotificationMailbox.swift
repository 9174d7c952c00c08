import TidemarkCloudEngine

/// Keeps notifications that no device has fetched in memory, up to ``NotificationLimits``.
actor NotificationMailbox: NotificationStorage {
    typealias Box = NotificationBox
    typealias Limits = NotificationLimits

    private struct Content {
        var frames: [[UInt8]] = []
        var size = 0
    }

    private struct Wait {
        let number: Int
        let continuation: CheckedContinuation<[UInt8]?, Never>
    }

    private let limits: Limits
    private let metrics: ServerMetrics
    private var boxes: [Box: Content] = [:]
    private var waits: [Box: Wait] = [:]
    /// By account.
    private var sizes: [String: Int] = [:]
    private var size = 0
    private var next = 0

    init(limits: Limits = Limits(), metrics: ServerMetrics = ServerMetrics()) { (self.limits, self.metrics) = (limits, metrics) }

    func put(_ frame: [UInt8], for box: Box) {
        metrics.count(.notifications)
        if let wait = waits.removeValue(forKey: box) { return wait.continuation.resume(returning: frame) }
        let cost = Limits.cost(frame)
        guard cost <= limits.sizeOfBox else { return metrics.count(.notificationsDropped) }
        // The latest notifications matter most.
        while let content = boxes[box],
            content.frames.count >= limits.framesOfBox || content.size + cost > limits.sizeOfBox
        {
            _ = takeFirst(of: box)
            metrics.count(.notificationsDropped)
        }
        keep(frame, for: box, isFirst: false)
    }

    /// Gives back a notification that was taken and has reached no device.
    func putBack(_ frame: [UInt8], for box: Box) {
        if let wait = waits.removeValue(forKey: box) { return wait.continuation.resume(returning: frame) }
        if let content = boxes[box] {
            // It is the oldest notification, and would have been dropped first.
            guard content.frames.count < limits.framesOfBox, content.size + Limits.cost(frame) <= limits.sizeOfBox else {
                return metrics.count(.notificationsDropped)
            }
        }
        keep(frame, for: box, isFirst: true)
    }

    /// Returns the next notification; `nil` when the task is cancelled, or the device waits again, before there is one.
    func take(for box: Box) async -> [UInt8]? {
        next += 1
        let number = next
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { return continuation.resume(returning: nil) }
                // The connection of the earlier wait may be long gone.
                if let older = waits.removeValue(forKey: box) { older.continuation.resume(returning: nil) }
                if let frame = takeFirst(of: box) { return continuation.resume(returning: frame) }
                waits[box] = Wait(number: number, continuation: continuation)
            }
        } onCancel: {
            Task { await self.leave(number, box) }
        }
    }

    private func leave(_ number: Int, _ box: Box) {
        guard let wait = waits[box], wait.number == number else { return }
        waits[box] = nil
        wait.continuation.resume(returning: nil)
    }

    // What is kept

    private func keep(_ frame: [UInt8], for box: Box, isFirst: Bool) {
        let cost = Limits.cost(frame)
        guard (sizes[box.account] ?? 0) + cost <= limits.sizeOfAccount, size + cost <= limits.size else {
            return metrics.count(.notificationsDropped)
        }
        var content = boxes[box] ?? Content()
        content.frames.insert(frame, at: isFirst ? 0 : content.frames.count)
        content.size += cost
        boxes[box] = content
        sizes[box.account, default: 0] += cost
        size += cost
    }

    private func takeFirst(of box: Box) -> [UInt8]? {
        guard var content = boxes[box], !content.frames.isEmpty else { return nil }
        let frame = content.frames.removeFirst()
        let cost = Limits.cost(frame)
        content.size -= cost
        boxes[box] = content.frames.isEmpty ? nil : content
        let left = (sizes[box.account] ?? 0) - cost
        sizes[box.account] = left > 0 ? left : nil
        size -= cost
        return frame
    }
}
