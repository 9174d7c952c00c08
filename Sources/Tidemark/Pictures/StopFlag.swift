import CTidePictures

/// A flag that the core looks at while it makes a picture.
///
/// `@unchecked Sendable`: the core reads and writes it atomically.
final class StopFlag: @unchecked Sendable {
    /// What the core looks at; lives as long as this.
    let pointer: UnsafeMutablePointer<Int32>

    init() {
        pointer = .allocate(capacity: 1)
        pointer.initialize(to: 0)
    }

    deinit { pointer.deallocate() }

    /// Has the core end its work soon.
    func raise() { tide_picture_stop(pointer, true) }
}
