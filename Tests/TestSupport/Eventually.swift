/// Waits for something that others are to bring about: it ends as soon as it holds, and gives up after a minute.
public func eventually(_ holds: () throws -> Bool) async throws -> Bool {
    for _ in 0..<3000 {
        if try holds() { return true }
        try await Task.sleep(for: .milliseconds(20))
    }
    return try holds()
}
