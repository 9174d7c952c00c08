import Foundation
import TidemarkWire

/// Brings notifications to who waits for them: one for each wait.
///
/// What nobody has fetched is kept in memory, so much of it; it is a hint to look, and not the change itself.
actor Courier {
    private struct Box {
        var frames: [[UInt8]] = []
        var waiting: [Int: CheckedContinuation<[UInt8]?, Never>] = [:]
    }

    private var boxes: [String: Box] = [:]
    private var next = 0
    /// Frames that wait for one device, and devices for which some do.
    private static let framesMost = 100
    private static let boxesMost = 10_000

    func put(_ frame: [UInt8], for device: String) {
        var box = boxes[device] ?? Box()
        if let (number, waiting) = box.waiting.min(by: { $0.key < $1.key }) {
            box.waiting[number] = nil
            boxes[device] = box.waiting.isEmpty && box.frames.isEmpty ? nil : box
            return waiting.resume(returning: frame)
        }
        guard boxes[device] != nil || boxes.count < Self.boxesMost else { return }
        if box.frames.count == Self.framesMost { box.frames.removeFirst() }
        box.frames.append(frame)
        boxes[device] = box
    }

    /// The next notification; `nil` when the task is cancelled before there is one.
    func take(for device: String) async -> [UInt8]? {
        if var box = boxes[device], !box.frames.isEmpty {
            let frame = box.frames.removeFirst()
            boxes[device] = box.frames.isEmpty && box.waiting.isEmpty ? nil : box
            return frame
        }
        next += 1
        let number = next
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiting in
                if Task.isCancelled { return waiting.resume(returning: nil) }
                boxes[device, default: Box()].waiting[number] = waiting
            }
        } onCancel: {
            Task { await self.leave(number, device) }
        }
    }

    private func leave(_ number: Int, _ device: String) {
        guard var box = boxes[device], let waiting = box.waiting.removeValue(forKey: number) else { return }
        boxes[device] = box.frames.isEmpty && box.waiting.isEmpty ? nil : box
        waiting.resume(returning: nil)
    }
}
