/// Signals that a container's databases have changed.
package protocol ChangeSignal: Sendable {
    /// Signals a change to all listeners, in this process and in others.
    func post()
}
