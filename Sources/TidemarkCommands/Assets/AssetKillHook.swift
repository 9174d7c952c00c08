import Foundation
import TidemarkStore

/// In debug builds, ends the process as `kill -9` does when a removal of contents reaches the step that `TIDEMARK_KILL_AT` names,
/// for tests.
enum AssetKillHook {
    static let hook: AssetCleaning.Hook = { step in
        #if DEBUG
            if step.rawValue == ProcessInfo.processInfo.environment["TIDEMARK_KILL_AT"] { kill(getpid(), SIGKILL) }
        #endif
    }
}
