/// Waits until a condition holds that other tasks or processes bring about; gives up after a minute.
public func eventually(_ holds: () throws -> Bool) async throws -> Bool {
    for _ in 0..<3000 {
        if try holds() { return true }
        try await Task.sleep(for: .milliseconds(20))
    }
    return try holds()
}
