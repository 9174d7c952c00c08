import Foundation
import TestSupport
import Testing
import TidemarkMail

/// Goal: letters reach a mail server unchanged, over an encrypted connection, and failures are reported. Method: a mail server of
/// the tests, over real sockets, with and without TLS.
@Suite(.timeLimit(.minutes(30))) struct MailSenderTests {
    private static let letter = MailMessage(
        to: "anna@example.org", subject: "Choose another password – now", text: "Grüße\nfrom ä\n.\nend\n")

    private func sender(
        _ host: MailHost, scheme: String = "smtp", login: (String, String)? = nil, authorities: String? = nil
    ) throws -> MailSender {
        let place = authorities == nil ? "127.0.0.1" : "localhost"
        return MailSender(
            try MailServer(
                "\(scheme)://\(place):\(host.port)", from: "cloud@example.org", user: login?.0, password: login?.1,
                authorities: authorities))
    }

    private func failure(_ sender: MailSender, _ message: MailMessage = letter) async -> MailSender.Failure? {
        do throws(MailSender.Failure) {
            try await sender.send(message)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a letter arrives with its text, whatever the text contains`() async throws {
        let host = try await MailHost.started()
        try await sender(host).send(Self.letter)
        let letter = try #require(try await host.letters(1).first)
        #expect(letter.sender == "<cloud@example.org>" && letter.recipient == "<anna@example.org>")
        #expect(letter.text == "Grüße\r\nfrom ä\r\n.\r\nend\r\n")
        #expect(letter.lines.contains("To: <anna@example.org>") && letter.lines.contains("Auto-Submitted: auto-generated"))
        #expect(letter.lines.contains { $0.hasPrefix("Subject: =?utf-8?B?") })
        #expect(letter.lines.contains { $0.wholeMatch(of: /Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000/) != nil })
        #expect(letter.lines.allSatisfy { $0.utf8.count <= 78 })
    }

    @Test func `a mail server of this machine needs no signed certificate`() async throws {
        var manners = MailHost.Manners()
        manners.encryption = .offered
        let host = try await MailHost.started(manners)
        try await sender(host).send(Self.letter)
        #expect(try await host.letters(1).first?.isEncrypted == false)
    }

    @Test func `many letters at once wait for their turns`() async throws {
        let host = try await MailHost.started()
        let sender = try sender(host)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for _ in 0..<12 { tasks.addTask { try await sender.send(Self.letter) } }
            try await tasks.waitForAll()
        }
        #expect(try await host.letters(12).count == 12)
    }

    @Test func `the mail sender gives user and password only to a trusted server, over TLS`() async throws {
        let scratch = try Scratch()
        let trusted = try scratch.write(TestCertificate.certificate + "\n", to: "trusted.pem").path
        for (encryption, scheme) in [(MailHost.Encryption.offered, "smtp"), (.first, "smtps")] {
            var manners = MailHost.Manners()
            (manners.encryption, manners.login) = (encryption, "cloud\0secret")
            let host = try await MailHost.started(manners)
            try await sender(host, scheme: scheme, login: ("cloud", "secret"), authorities: trusted).send(Self.letter)
            let letter = try #require(try await host.letters(1).first)
            #expect(letter.isEncrypted && letter.login?.hasSuffix("cloud\0secret") == true)
            let wrong = await failure(try sender(host, scheme: scheme, login: ("cloud", "wrong"), authorities: trusted))
            #expect(wrong != nil)
            // The machine does not trust the certificate.
            let distrusted = try #require(await failure(try sender(host, scheme: scheme, login: ("cloud", "secret"))))
            #expect(!distrusted.description.contains("secret"))
            #expect(try await host.letters(1).count == 1)
        }
        // Without TLS the sender gives it no password.
        var manners = MailHost.Manners()
        manners.login = "cloud\0secret"
        let open = try await MailHost.started(manners)
        #expect(await failure(try sender(open, login: ("cloud", "secret"))) != nil)
        #expect(try await open.letters(0).isEmpty)
    }

    @Test func `a refusal says whether it is permanent`() async throws {
        for (answer, isTemporary) in [("550 nobody", false), ("451 later", true)] {
            var manners = MailHost.Manners()
            manners.toRecipient = answer
            let host = try await MailHost.started(manners)
            let refused = try #require(await failure(try sender(host)))
            #expect(refused.isTemporary == isTemporary && refused.description.contains(String(answer.prefix(3))), "\(refused)")
            #expect(try await host.letters(0).isEmpty)
        }
        let nobody = MailSender(try MailServer("smtp://127.0.0.1:1", from: "cloud@example.org"))
        #expect(await failure(nobody)?.isTemporary == true)
    }

    @Test(arguments: [
        "", "anna", "anna@", "@example.org", "anna@b@c", "anna@example.org\r\nBcc: eve@example.org", "a b@example.org",
        "<anna@example.org>",
        "anna@example.org>", "anna,eve@example.org", "ännä@example.org", String(repeating: "a", count: 250) + "@example.org",
    ])
    func `an address that could be another header or recipient is refused`(address: String) async throws {
        #expect(!MailMessage.isAddress(address))
        let host = try await MailHost.started()
        #expect(await failure(try sender(host), MailMessage(to: address, subject: "x", text: "x"))?.isTemporary == false)
    }

    @Test func `a subject stays one header, whatever it contains`() {
        let letter = MailMessage(to: "a@example.org", subject: "x\r\nBcc: eve@example.org\u{1F600}", text: "")
        let text = String(decoding: letter.encoded(from: "b@example.org", now: 0), as: UTF8.self)
        #expect(!text.contains("\nBcc:"))
        #expect(text.contains("\r\nDate: Thu, 01 Jan 1970 00:00:00 +0000\r\n"))
    }

    @Test(arguments: [
        "example.org", "http://example.org", "smtp://", "smtp://user:secret@example.org", "smtp://example.org/x",
        "smtps://example.org?x=y",
    ])
    func `an address that is not a mail server's is refused`(address: String) {
        #expect(throws: MailServer.Failure.self) { try MailServer(address, from: "cloud@example.org") }
    }
}
