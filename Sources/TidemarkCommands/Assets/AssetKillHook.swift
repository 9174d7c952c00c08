import Foundation
import TidemarkStore

/// In debug builds, ends the process as `kill -9` does when a removal of contents has come to the step that `TIDEMARK_KILL_AT` names:
/// tests stop it there.
enum AssetKillHook {
    static let hook: AssetCleaning.Hook = { step in
        #if DEBUG
            if step.rawValue == ProcessInfo.processInfo.environment["TIDEMARK_KILL_AT"] { kill(getpid(), SIGKILL) }
        #endif
    }
}
