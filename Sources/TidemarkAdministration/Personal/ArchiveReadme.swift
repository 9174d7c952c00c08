import TidemarkModel

/// The README of an archive, which explains the other files to the person whose data they have.
struct ArchiveReadme {
    /// A container and an environment, and what the archive has of it.
    struct Part {
        let path: String
        var records = 0, shares = 0, assets = 0
    }

    let address: String
    /// Microseconds since 1970 UTC.
    let time: Int64
    let parts: [Part]
    /// The files beside this one, by their names.
    let files: Set<String>

    private static let meanings = [
        ("account.json", "Your account: name, address, quota, status and second factor."),
        ("sessions.jsonl", "Where you are signed in."),
        ("identities.jsonl", "The accounts elsewhere with which you sign in here."),
        ("sync-errors.jsonl", "What the server refused your devices in the last seven days, and why."),
        (
            "audit.jsonl",
            "What happened to your account, the newest first: when (\"at\"), what\n  (\"action\"), who did it (\"by\") and from which network address."
        ),
        ("problems.jsonl", "What the server has found damaged. The archive does not have it."),
        (
            "SHA256SUMS",
            "The checksums of all files of the archive. To check them, run\n  \"sha256sum -c SHA256SUMS\" in this folder (\"shasum -a 256 -c\" on a Mac)."
        ),
    ]

    var text: String {
        let listed = Self.meanings.filter { files.contains($0.0) }.map { "\($0.0)\n  \($0.1)\n" }.joined()
        return """
            All data of \(Self.line(address)) in this Tidemark cloud
            Made \(Timestamp.text(microseconds: time, decimals: 0))

            The archive has all that is stored for you: records, shares, pictures and
            other files. Records that others share with you are theirs, and left out.
            It is private: give it to nobody who should not read it.

            FILES HERE

            \(listed)
            \(parts.isEmpty ? "No records are stored for you.\n" : folders)
            HOW TO READ THEM

            .csv files open in a spreadsheet (UTF-8, a comma between the cells). A cell
            that would be taken for a formula has an apostrophe before it.
            .jsonl files are texts with one JSON object on each line, for programs.
            Times are in UTC, such as 2026-11-26T21:56:10Z. In records.jsonl they are
            milliseconds since 1970, as CloudKit Web Services has them.

            """
    }

    private var folders: String {
        let listed = parts.map { "\($0.path)\n  \(counts($0))\n" }.joined()
        return """
            FOLDERS

            Each app that you use has a container, with what it has stored in
            production, and what was tried out in development.

            \(listed)
            In each of them, where there are any:

            records/TYPE.csv
              The records of a type: one on each line, one field in each column.
            records.jsonl
              The same records with all that the cloud knows of them.
            shares.jsonl
              What you share, and the shares in which you take part.
            assets/
              Pictures and other files, in a folder for each type of record. Their names
              begin with the record and the field that have them.
            assets.csv
              Which record and field has which file, its size and its SHA-256.

            """
    }

    private func counts(_ part: Part) -> String {
        return "\(counted(part.records, "record")), \(counted(part.shares, "share")) and \(counted(part.assets, "file"))"
    }

    private static func line(_ text: String) -> String {
        String(text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) })
    }
}
