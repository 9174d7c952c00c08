import Foundation
import TestSupport
import Testing

@testable import TidemarkCommands

/// Goal: the manual has every command and option of the help, and no text becomes a request of the typesetter. Method: the page
/// of the tool itself, and of a description with critical texts.
@Suite(.timeLimit(.minutes(30))) struct ManualTests {
    private func page(_ command: String) throws -> String {
        String(
            decoding: try Manual.page(
                Data(#"{"command":\#(command),"serializationVersion":0}"#.utf8), section: 1, seeAlso: ["other"]), as: UTF8.self)
    }

    @Test func `the tool's page names each command that its help shows, with its options`() async throws {
        let page = try await Tool().run(["manual"]).output
        for name in ["import", "records list", "account sign\\-in", "share accept", "sync", "serve"] {
            #expect(page.contains("\n.SS \"tidemark \(name)\"\n"), "\(name)")
        }
        #expect(page.contains("\\fB\\-\\-patience\\fR \\fIseconds\\fR"))
        #expect(page.contains(".SH SEE ALSO\n.BR tidemark\\-server (8)\n"))
        // A command that the help hides is not in the manual.
        #expect(!page.contains("tidemark manual"))
        #expect(!page.contains("\n.SS \"tidemark help\""))
    }

    @Test func `text that looks like a request or an escape is printed as text`() throws {
        let page = try page(
            #"{"commandName":"a","abstract":".so /etc/passwd","discussion":"'quoted\n.TH x\n\n  a \\n b\u001b[2J","shouldDisplay":true}"#
        )
        #expect(page.contains("\\- .so /etc/passwd\n"))
        #expect(page.contains("\n\\(aqquoted\n\\&.TH x\n"))
        #expect(page.contains("\n.nf\n  a \\(rsn b [2J\n.fi\n"))
        let requests = page.split(separator: "\n").filter { $0.hasPrefix(".") || $0.hasPrefix("'") }.map {
            $0.prefix { $0 != " " }
        }
        #expect(Set(requests).isSubset(of: [".TH", ".SH", ".PP", ".nf", ".fi", ".BR"]), "\(requests)")
    }

    @Test func `a manual page of an invalid description is refused`() async throws {
        let scratch = try Scratch()
        let file = try scratch.write("{}", to: "help.json")
        let result = try await Tool().run(["manual", "--of", file.path])
        #expect(result.status == 65)
        #expect(result.output.isEmpty && result.errors.contains("--experimental-dump-help"))
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func `shell completions have the commands`(shell: String) async throws {
        let script = try await Tool().run(["--generate-completion-script", shell])
        #expect(script.status == 0)
        for name in ["import", "sync", "patience"] { #expect(script.output.contains(name)) }
    }
}
