/// The sizes that a cloud accepts. A client asks for them and has no numbers of its own.
public struct CloudLimits: Hashable, Codable, Sendable {
    /// Records that one request may save and delete.
    public var operationsPerRequest = 400
    /// Bytes of one request, assets not counted.
    public var bytesPerRequest = 2_000_000
    /// Bytes of one record, assets not counted.
    public var bytesPerRecord = 1_000_000
    /// Fields that one record type may have.
    public var fieldsPerType = 256
    /// Zones that one database may have.
    public var zones = 1_000
    /// Participants that one share may have.
    public var participantsPerShare = 100
    /// Bytes of one asset.
    public var bytesPerAsset: Int64 = 50_000_000
    /// Records that one answer has at the most.
    public var recordsPerAnswer = 400
    /// Bytes of one piece of an asset at the most.
    public var bytesPerAssetPiece = 4_000_000

    /// Makes the default limits.
    public init() {}

    /// The limits, brought into ranges that a client can work with, whatever numbers a cloud has sent.
    package var bounded: CloudLimits {
        func bounded<Number: BinaryInteger>(_ number: Number, _ most: Number) -> Number { min(max(1, number), most) }
        var limits = self
        limits.operationsPerRequest = bounded(operationsPerRequest, 10_000)
        limits.bytesPerRequest = bounded(bytesPerRequest, 1 << 30)
        limits.bytesPerRecord = bounded(bytesPerRecord, 1 << 30)
        limits.recordsPerAnswer = bounded(recordsPerAnswer, 10_000)
        limits.bytesPerAsset = bounded(bytesPerAsset, 1 << 40)
        limits.bytesPerAssetPiece = bounded(bytesPerAssetPiece, 1 << 26)
        return limits
    }
}
