/// Signals that a container's databases have changed.
package protocol ChangeSignal: Sendable {
    /// Wakes all listeners, in this process and in others. Signals may be merged, and say nothing of what changed: a listener asks for
    /// the changes. It is called after the transaction is durable, from any thread, and returns soon.
    func post()
}
