import CTidePictures

/// A flag that the core reads while it makes a picture.
///
/// `@unchecked Sendable`: the core reads and writes it atomically.
final class StopFlag: @unchecked Sendable {
    /// The memory that the core reads. It is valid as long as this object.
    let pointer: UnsafeMutablePointer<Int32>

    init() {
        pointer = .allocate(capacity: 1)
        pointer.initialize(to: 0)
    }

    deinit { pointer.deallocate() }

    /// Makes the core end its work soon.
    func raise() { tide_picture_stop(pointer, true) }
}
