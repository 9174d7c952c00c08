extension StoreError.Code {
    /// The container is at another place now, or another has come to its place; the message says which.
    public static let moved = StoreError.Code(rawValue: "moved")
    /// What is there is the copy that a move has begun: it does not count yet.
    public static let incompleteCopy = StoreError.Code(rawValue: "incompleteCopy")
    /// A move, its rolling back, a backup or a restoration can't be done as things are.
    public static let cannotMove = StoreError.Code(rawValue: "cannotMove")
}
