/// What a cloud takes; a client asks for it and has no numbers of its own.
public struct CloudLimits: Hashable, Codable, Sendable {
    /// Records that one request may save and delete.
    public var operationsPerRequest = 400
    /// Bytes of one request, assets not counted.
    public var bytesPerRequest = 2_000_000
    /// Bytes of one record, assets not counted.
    public var bytesPerRecord = 1_000_000
    public var fieldsPerType = 256
    public var zones = 1_000
    public var participantsPerShare = 100
    public var bytesPerAsset: Int64 = 50_000_000
    /// Records that one answer has at the most.
    public var recordsPerAnswer = 400
    /// Bytes that go in one piece of an asset.
    public var bytesPerAssetPiece = 4_000_000

    public init() {}
}
