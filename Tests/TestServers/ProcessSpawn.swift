import Foundation

/// Starts a process that inherits no file but its input, output and errors.
///
/// Sockets of the tests' servers would be inherited otherwise, and a client would not see that its server has closed one.
public enum ProcessSpawn {
    /// What a descriptor of the new process is.
    public enum Stream {
        case path(String)
        case descriptor(Int32)
    }

    /// Starts a process, and returns its identifier.
    ///
    /// - Parameter words: The arguments, beginning with the program's name.
    public static func start(
        _ executable: String, _ words: [String], environment: [String: String], input: Stream, output: String, errors: String
    ) throws -> pid_t {
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
            var attributes: posix_spawnattr_t?
        #else
            var actions = posix_spawn_file_actions_t()
            var attributes = posix_spawnattr_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        switch input {
        case .path(let path): posix_spawn_file_actions_addopen(&actions, 0, path, O_RDONLY, 0)
        case .descriptor(let descriptor): posix_spawn_file_actions_adddup2(&actions, descriptor, 0)
        }
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY, 0)
        #if canImport(Darwin)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_CLOEXEC_DEFAULT))
        #else
            addCloseFrom(&actions, 3)
        #endif
        let words = words.map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in words + variables { free(text) } }
        var identifier: pid_t = 0
        let failure = posix_spawn(&identifier, executable, &actions, &attributes, words, variables)
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        return identifier
    }
}

#if !canImport(Darwin)
    /// The C header declares it for GNU sources only, which Swift's module of the C library does not count as.
    @_silgen_name("posix_spawn_file_actions_addclosefrom_np")
    @discardableResult
    private func addCloseFrom(_ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ first: Int32) -> Int32
#endif
