import Testing
import TidemarkCloud

/// Goal: a client can work with the limits of every cloud. Method: limits that are too small, usual, and too large.
@Suite(.timeLimit(.minutes(30))) struct CloudLimitTests {
    @Test func `limits that a cloud announces are clamped to those that a client can work with`() {
        #expect(CloudLimits().bounded == CloudLimits())
        let counts: [(path: WritableKeyPath<CloudLimits, Int>, most: Int)] = [
            (\.operationsPerRequest, 10_000), (\.bytesPerRequest, 1 << 30), (\.bytesPerRecord, 1 << 30),
            (\.recordsPerAnswer, 10_000), (\.bytesPerAssetPiece, 1 << 26),
        ]
        for (path, most) in counts {
            let cases: [(announced: Int, wanted: Int)] = [
                (.min, 1), (0, 1), (1, 1), (7, 7), (most, most), (most + 1, most), (.max, most),
            ]
            for (announced, wanted) in cases {
                var limits = CloudLimits()
                limits[keyPath: path] = announced
                let found = limits.bounded[keyPath: path]
                #expect(found == wanted, "\(path), \(announced)")
            }
        }
        let large: Int64 = 1 << 40
        for (announced, wanted) in [(-1, 1), (7, 7), (large, large), (large + 1, large)] as [(Int64, Int64)] {
            var limits = CloudLimits()
            limits.bytesPerAsset = announced
            #expect(limits.bounded.bytesPerAsset == wanted, "\(announced)")
        }
    }
}
