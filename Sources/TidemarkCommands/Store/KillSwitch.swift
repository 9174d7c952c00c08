#if DEBUG
    import Foundation
    import TidemarkStore

    /// Ends the process as `kill -9` does when a move has come to the step that `TIDEMARK_KILL_AT` names. In debug builds only: tests
    /// stop a move there.
    enum KillSwitch {
        static let hook: @Sendable (MoveStep) throws -> Void = { step in
            if step.rawValue == ProcessInfo.processInfo.environment["TIDEMARK_KILL_AT"] { kill(getpid(), SIGKILL) }
        }
    }
#endif
