import Foundation
import TidemarkSQLite
import TidemarkStore

/// The output of an export: a file that gets its name when it is complete; or standard output, a pipe or a device, which are
/// written to directly.
final class OutputFile {
    private let handle: FileHandle
    private let shown: String
    /// For a file: its temporary and its final place.
    private let place: (temporary: URL, final: URL)?
    private var isFinished = false

    init(_ target: BulkExport.Target) throws(ImportError) {
        guard case .file(let url) = target else {
            (handle, shown, place) = (.standardOutput, "to standard output", nil)
            return
        }
        shown = url.path
        if let there = FileIdentity(url), !there.isFile {
            let descriptor = open(url.path, O_WRONLY | O_CLOEXEC | O_NOCTTY)
            guard descriptor >= 0 else { throw Self.cannotMake(url) }
            (handle, place) = (FileHandle(fileDescriptor: descriptor, closeOnDealloc: true), nil)
            return
        }
        // A symbolic link stays, and the file that it leads to is replaced.
        let final = url.resolvingSymlinksInPath()
        let (parent, name) = (final.deletingLastPathComponent(), final.lastPathComponent)
        do {
            let folder = try Folder(at: parent, followsLink: true)
            // Temporary files of killed exports to the same file. An error does not matter: a folder that can't be listed may be
            // writable.
            try? folder.removeTemporaryFiles { $0 == name }
            let made = try folder.makeTemporaryFile(for: name, mode: 0o644)
            handle = FileHandle(fileDescriptor: made.descriptor, closeOnDealloc: true)
            place = (parent.appendingPathComponent(made.name), final)
        } catch {
            throw ImportError(.output, "cannot write \(url.path): \(error.message)", cause: error)
        }
    }

    deinit {
        if let place, !isFinished { unlink(place.temporary.path) }
    }

    func write(_ bytes: [UInt8]) throws(ImportError) {
        try handle.write(all: bytes, "write \(shown)")
    }

    func finish() throws(ImportError) {
        guard let place else { return }
        guard DurableFile.flush(handle.fileDescriptor), rename(place.temporary.path, place.final.path) == 0 else {
            throw ImportError(.writing, "cannot write \(shown): \(String(cString: strerror(errno)))")
        }
        isFinished = true
        do {
            try Folder(at: place.final.deletingLastPathComponent(), followsLink: true).synchronize()
        } catch {
            throw ImportError(.writing, error.message, cause: error)
        }
    }

    private static func cannotMake(_ url: URL) -> ImportError {
        ImportError(.output, "cannot write \(url.path): \(String(cString: strerror(errno)))")
    }
}
