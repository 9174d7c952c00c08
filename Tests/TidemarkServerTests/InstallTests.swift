import Foundation
import TestSupport
import Testing

/// Goal: what `make install` installs is whole, and `make uninstall` leaves nothing of it. Method: `Deployment/install` with the programs that
/// were built with the tests, below a folder of the test's.
@Suite(.timeLimit(.minutes(30))) struct InstallTests {
    private let scratch: Scratch
    private let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Deployment/install").standardizedFileURL

    init() throws { scratch = try Scratch() }

    private func install(_ arguments: [String] = [], _ changes: [String: String] = [:]) throws -> (status: Int32, errors: String)
    {
        let variables = [
            "DESTDIR": scratch["root"].path, "PREFIX": "/usr", "BUILT": try Tool().executable.deletingLastPathComponent().path,
        ].merging(changes) { $1 }
        let errors = try scratch.write("", to: "errors-\(UUID().uuidString)")
        let status = try ChildProcess.run(
            "/usr/bin/env", variables.map { "\($0)=\($1)" } + [script.path] + arguments, errors: errors)
        return (status, try String(contentsOf: errors, encoding: .utf8))
    }

    private func files() -> [String: Int] {
        let root = scratch["root"]
        let found = FileManager.default.enumerator(at: root, includingPropertiesForKeys: [.isRegularFileKey, .fileSizeKey])
        var files: [String: Int] = [:]
        for case let file as URL in found ?? FileManager.DirectoryEnumerator() {
            let values = try? file.resourceValues(forKeys: [.isRegularFileKey, .fileSizeKey])
            if values?.isRegularFile == true { files[String(file.path.dropFirst(root.path.count))] = values?.fileSize ?? 0 }
        }
        return files
    }

    @Test func `an installation has programs, completions, manual and unit, and its removal leaves no file`() async throws {
        let result = try install()
        #expect(result.status == 0, "\(result.errors)")
        let installed = files()
        let expected = [
            "bin/tidemark", "bin/tidemark-server", "share/bash-completion/completions/tidemark",
            "share/zsh/site-functions/_tidemark", "share/fish/vendor_completions.d/tidemark.fish", "share/man/man1/tidemark.1.gz",
            "share/man/man8/tidemark-server.8.gz", "lib/systemd/system/tidemark.service",
            "lib/systemd/system/tidemark-cluster.service", "share/doc/tidemark/nginx.conf.example",
            "share/doc/tidemark/haproxy.cfg.example", "share/doc/tidemark/prometheus-rules.yaml",
        ]
        for name in expected { #expect(installed["/usr/\(name)", default: 0] > 100, "\(name)") }
        #expect(installed.keys.allSatisfy { !$0.hasSuffix(".new") })
        for name in ["tidemark", "tidemark-cluster"] {
            let unit = try String(contentsOf: scratch["root/usr/lib/systemd/system/\(name).service"], encoding: .utf8)
            #expect(unit.contains("ExecStart=/usr/bin/tidemark-server "), "\(name)")
        }
        #expect(try install(["--uninstall"]).status == 0)
        #expect(files().isEmpty)
    }

    @Test func `a relative prefix, and programs that are not built, are reported before anything is installed`() async throws {
        let relative = try install([], ["PREFIX": "usr"])
        #expect(relative.status == 64 && relative.errors.contains("PREFIX must be an absolute path"))
        let missing = try install([], ["BUILT": scratch["nowhere"].path])
        #expect(missing.status == 66 && missing.errors.contains("make server"))
        #expect(files().isEmpty)
    }
}
