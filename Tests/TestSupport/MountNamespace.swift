import Foundation

/// Runs commands that see a folder differently from all other processes: as a disk that is read-only, or as one with little
/// space. This holds for root, too.
public enum MountNamespace {
    /// How such commands are run on this machine; `nil` if they can't be: on systems other than Linux, or without the right to
    /// mount.
    private static let unshare: [String]? = {
        for options in [["--mount"], ["--map-root-user", "--mount"]] {
            let words = options + ["/bin/sh", "-c", "mount --make-rprivate / && mount -t tmpfs tmpfs /tmp"]
            if (try? ChildProcess.run("/usr/bin/unshare", words)) == 0 { return options }
        }
        return nil
    }()

    public static let isPossible = unshare != nil
    /// Why a test is skipped.
    public static let refusal: String = "this process may not mount file systems (unshare --mount)"

    /// Runs a shell script to its end.
    ///
    /// - Parameter arguments: `$1` and the following ones of the script.
    public static func run(_ script: String, _ arguments: [String], in directory: URL) async throws -> Tool.Result {
        let shell = Tool(at: "/usr/bin/unshare")
        let words = (unshare ?? []) + ["/bin/sh", "-ec", "mount --make-rprivate /\n" + script, "sh"] + arguments
        return try await shell.run(words, in: directory)
    }

    /// Runs a program to its end, with a folder read-only.
    public static func run(
        _ tool: Tool, _ arguments: [String], readOnly folder: URL, in directory: URL
    ) async throws -> Tool.Result {
        let script = "mount --bind \"$1\" \"$1\"; mount -o remount,ro,bind \"$1\"; shift; exec \"$@\""
        return try await run(script, [folder.path, tool.executable.path] + arguments, in: directory)
    }
}
