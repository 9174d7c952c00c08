import Metrics
import TidemarkModel

/// Keeps the last value of each gauge, and the sum of each counter and timer.
public final class RecordingFactory: MetricsFactory {
    private final class Handler: CounterHandler, MeterHandler, TimerHandler {
        private let label: String
        private let values: RecordedValues

        init(_ label: String, _ values: RecordedValues) { (self.label, self.values) = (label, values) }

        private func change(_ change: @Sendable (inout Int64) -> Void) { values.all.withLock { change(&$0[label, default: 0]) } }

        func increment(by amount: Int64) { change { $0 += amount } }
        func reset() {}
        func set(_ value: Int64) { change { $0 = value } }
        func set(_ value: Double) { change { $0 = Int64(value) } }
        func increment(by amount: Double) { change { $0 += Int64(amount) } }
        func decrement(by amount: Double) { change { $0 -= Int64(amount) } }
        func recordNanoseconds(_ duration: Int64) { change { $0 += duration } }
    }

    private final class RecordedValues: Sendable {
        let all = LockedValue<[String: Int64]>([:])
    }

    private let values = RecordedValues()
    private let prefix: String

    /// - Parameter prefix: What the labels that tests ask for begin with.
    public init(prefix: String) { self.prefix = prefix }

    /// Returns the value of a metric; of a timer, the sum of its times in nanoseconds.
    public func value(_ name: String) -> Int64 { values.all.withLock { $0[prefix + name] ?? 0 } }

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { Handler(label, values) }
    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { Handler(label, values) }
    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { Handler(label, values) }
    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        NOOPMetricsHandler.instance
    }
    public func destroyCounter(_ handler: any CounterHandler) {}
    public func destroyMeter(_ handler: any MeterHandler) {}
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    public func destroyTimer(_ handler: any TimerHandler) {}
}
