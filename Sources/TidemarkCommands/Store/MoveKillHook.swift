import Foundation
import TidemarkContainers
import TidemarkSQLite
import TidemarkStore

/// In debug builds, ends the process as `kill -9` does when a move reaches the step that `TIDEMARK_KILL_AT` names, for tests.
enum MoveKillHook {
    static let hook: @Sendable (MoveStep) throws -> Void = { step in
        #if DEBUG
            if step.rawValue == ProcessInfo.processInfo.environment["TIDEMARK_KILL_AT"] { kill(getpid(), SIGKILL) }
        #endif
    }
}
