public import Foundation

extension CredentialStore {
    /// Returns a warning for people if other users of the machine may look into a cloud's directory; `nil` if only its owner may.
    ///
    /// A directory that is made along with the credential store has the mode 0700. An older one keeps its mode, for which its
    /// owner may have a reason.
    public static func exposure(of directory: URL) -> String? {
        var status = stat()
        guard stat(directory.path, &status) == 0, status.st_mode & 0o077 != 0 else { return nil }
        let mode = String(status.st_mode & 0o777, radix: 8)
        return "others on this machine may look into \(directory.path) (mode \(mode)), which has everybody's records; "
            + "keep them out by 'chmod 700 \(directory.path)'"
    }
}
