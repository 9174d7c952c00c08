import Metrics
import Synchronization
import TidemarkModel

/// Makes the metrics of one server, and writes them in the text format of Prometheus.
///
/// A process has one `MetricsSystem`, and may run several servers. So each server has an exporter, and names it where it makes a metric:
///
/// ```swift
/// let exporter = PrometheusExporter([.init("answers_total", .counter, "Answers that were sent.")])
/// let answers = Counter(label: "answers_total", factory: exporter)
/// answers.increment()
/// print(exporter.text())
/// ```
///
/// Two metrics with one label and equal dimensions share their value.
final class PrometheusExporter: MetricsFactory {
    /// All metrics that have one label.
    struct Family: Sendable {
        enum Kind: Hashable {
            case counter
            case gauge
            /// - Parameter bounds: In ascending order; for a timer in seconds.
            case histogram(bounds: [Double])

            fileprivate var name: String {
                switch self {
                case .counter: "counter"
                case .gauge: "gauge"
                case .histogram: "histogram"
                }
            }
        }

        let label: String
        let kind: Kind
        let help: String

        init(_ label: String, _ kind: Kind, _ help: String) { (self.label, self.kind, self.help) = (label, kind, help) }
    }

    fileprivate protocol Handler: AnyObject, Sendable {
        /// The lines of a metric.
        func lines(_ name: String, _ dimensions: [(String, String)]) -> String
    }

    private struct Metric {
        let dimensions: [(String, String)]
        let handler: any Handler

        func has(_ others: [(String, String)]) -> Bool { dimensions.elementsEqual(others) { $0 == $1 } }
    }

    private struct State {
        /// The metrics by their family's label.
        var metrics: [String: [Metric]] = [:]
        /// The order of a dimension's values, by the dimension's name.
        var places: [String: [String: Int]] = [:]

        /// Returns whether a metric comes before another, by the order of their dimensions' values.
        func precedes(_ metric: Metric, _ other: Metric) -> Bool {
            for ((name, value), (_, otherValue)) in zip(metric.dimensions, other.dimensions) where value != otherValue {
                let (place, otherPlace) = (places[name]?[value] ?? .max, places[name]?[otherValue] ?? .max)
                return place == otherPlace ? value < otherValue : place < otherPlace
            }
            return metric.dimensions.count < other.dimensions.count
        }
    }

    private let families: [Family]
    private let state = LockedValue(State())

    /// - Parameter families: The families in the order of the text. A metric belongs to one of them.
    init(_ families: [Family]) { self.families = families }

    /// Orders the values of a dimension in the text. Other values come after these, in alphabetical order.
    func order(_ dimension: String, _ values: [String]) {
        let places = Dictionary(zip(values, values.indices)) { first, _ in first }
        state.withLock { $0.places[dimension] = places }
    }

    /// Returns the value of a gauge that has no dimensions.
    func value(ofGauge label: String) -> Double? {
        state.withLock { ($0.metrics[label]?.first { $0.dimensions.isEmpty }?.handler as? Gauge)?.value }
    }

    /// Writes all metrics in the text format of Prometheus, version 0.0.4.
    func text() -> String {
        state.withLock { state in
            var text = ""
            for family in families {
                text += "# HELP \(family.label) \(family.help)\n# TYPE \(family.label) \(family.kind.name)\n"
                for metric in (state.metrics[family.label] ?? []).sorted(by: state.precedes) {
                    text += metric.handler.lines(family.label, metric.dimensions)
                }
            }
            return text
        }
    }

    // The factory

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        handler(label, dimensions) { kind in kind == .counter ? Sum() : nil }
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        handler(label, dimensions) { kind in kind == .gauge ? Gauge() : nil }
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        if aggregate { return histogram(label, dimensions) }
        return handler(label, dimensions) { kind in kind == .gauge ? Gauge() : nil }
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { histogram(label, dimensions) }

    func destroyCounter(_ handler: any CounterHandler) { remove(handler) }
    func destroyMeter(_ handler: any MeterHandler) { remove(handler) }
    func destroyRecorder(_ handler: any RecorderHandler) { remove(handler) }
    func destroyTimer(_ handler: any TimerHandler) { remove(handler) }

    private func histogram(_ label: String, _ dimensions: [(String, String)]) -> Histogram {
        handler(label, dimensions) { kind in
            guard case .histogram(let bounds) = kind else { return nil }
            return Histogram(bounds)
        }
    }

    /// Returns the handler of a metric.
    ///
    /// - Parameter make: Makes the handler; `nil` where the family is of another kind.
    private func handler<Made: Handler>(
        _ label: String, _ dimensions: [(String, String)], _ make: (Family.Kind) -> Made?
    ) -> Made {
        state.withLock { state in
            if let known = state.metrics[label]?.first(where: { $0.has(dimensions) })?.handler as? Made { return known }
            guard let family = families.first(where: { $0.label == label }), let made = make(family.kind) else {
                preconditionFailure("the exporter has no family '\(label)' of this kind")
            }
            state.metrics[label, default: []].append(Metric(dimensions: dimensions, handler: made))
            return made
        }
    }

    private func remove(_ handler: AnyObject) {
        state.withLock { state in
            for label in state.metrics.keys { state.metrics[label]?.removeAll { $0.handler === handler } }
        }
    }

    fileprivate static func line(_ name: String, _ dimensions: [(String, String)], _ value: String) -> String {
        guard !dimensions.isEmpty else { return "\(name) \(value)\n" }
        let pairs = dimensions.map { "\($0)=\"\(escaped($1))\"" }
        return "\(name){\(pairs.joined(separator: ","))} \(value)\n"
    }

    private static func escaped(_ value: String) -> String {
        guard value.utf8.contains(where: { [UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "\n")].contains($0) }) else {
            return value
        }
        var text = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}

extension PrometheusExporter {
    private final class Sum: Handler, CounterHandler {
        private let value = Atomic<Int64>(0)

        func increment(by amount: Int64) { value.wrappingAdd(amount, ordering: .relaxed) }
        func reset() { value.store(0, ordering: .relaxed) }

        func lines(_ name: String, _ dimensions: [(String, String)]) -> String {
            PrometheusExporter.line(name, dimensions, "\(value.load(ordering: .relaxed))")
        }
    }

    private final class Gauge: Handler, MeterHandler, RecorderHandler {
        /// The bits of a double.
        private let bits = Atomic<UInt64>(0)

        var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

        func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
        func set(_ value: Int64) { set(Double(value)) }
        func record(_ value: Double) { set(value) }
        func record(_ value: Int64) { set(Double(value)) }
        func decrement(by amount: Double) { increment(by: -amount) }

        func increment(by amount: Double) {
            var old = bits.load(ordering: .relaxed)
            while true {
                let new = (Double(bitPattern: old) + amount).bitPattern
                let (isExchanged, original) = bits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
                if isExchanged { return }
                old = original
            }
        }

        func lines(_ name: String, _ dimensions: [(String, String)]) -> String {
            PrometheusExporter.line(name, dimensions, Int64(exactly: value).map { "\($0)" } ?? "\(value)")
        }
    }

    private final class Histogram: Handler, TimerHandler, RecorderHandler {
        private struct Values {
            /// For each bound, the number of values up to it and above the bound before.
            var counts: [Int]
            var sum = 0.0
        }

        private let bounds: [Double]
        private let values: LockedValue<Values>

        init(_ bounds: [Double]) {
            self.bounds = bounds
            values = LockedValue(Values(counts: [Int](repeating: 0, count: bounds.count + 1)))
        }

        func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
        func record(_ value: Int64) { record(Double(value)) }

        func record(_ value: Double) {
            let bound = bounds.firstIndex { value <= $0 } ?? bounds.count
            values.withLock {
                $0.counts[bound] += 1
                $0.sum += value
            }
        }

        func lines(_ name: String, _ dimensions: [(String, String)]) -> String {
            let values = values.withLock { $0 }
            var text = ""
            var count = 0
            for (bound, more) in zip(bounds.map { "\($0)" } + ["+Inf"], values.counts) {
                count += more
                text += PrometheusExporter.line("\(name)_bucket", dimensions + [("le", bound)], "\(count)")
            }
            text += PrometheusExporter.line("\(name)_sum", dimensions, "\(values.sum)")
            return text + PrometheusExporter.line("\(name)_count", dimensions, "\(count)")
        }
    }
}
