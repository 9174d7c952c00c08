public import Foundation

extension CredentialStore {
    /// What others on the machine may do with a cloud's directory, and what keeps them from it, for people; `nil` when it is its owner's alone.
    ///
    /// A directory that is made along with the credential store has the mode 0700. One that was there before keeps its own: whoever runs the cloud may
    /// have a reason for it, and is told.
    public static func exposure(of directory: URL) -> String? {
        var status = stat()
        guard stat(directory.path, &status) == 0, status.st_mode & 0o077 != 0 else { return nil }
        let mode = String(status.st_mode & 0o777, radix: 8)
        return "others on this machine may look into \(directory.path) (mode \(mode)), which has everybody's records; "
            + "keep them out by 'chmod 700 \(directory.path)'"
    }
}
