import TidemarkModel

/// A value that several tasks can change.
package final class Shared<Value: Sendable>: Sendable {
    private let content: LockedValue<Value>

    package init(_ value: Value) { content = LockedValue(value) }

    package var value: Value { content.withLock { $0 } }

    package func change(_ change: @Sendable (inout Value) -> Void) { content.withLock { change(&$0) } }
}
