import ArgumentParser
import Foundation
import TidemarkMail
import TidemarkServer

/// The mail server for letters to people.
struct MailOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A mail server for letters to people: smtps://host, or smtp://host with STARTTLS. With it people get links for forgotten "
                + "passwords, and show that a new address is theirs. (default: no letters)", valueName: "url"))
    var smtpServer: String?

    @Option(help: ArgumentHelp("The address that letters are from.", valueName: "address"))
    var smtpFrom: String?

    @Option(help: ArgumentHelp("The user at the mail server. (default: it asks for none)", valueName: "name"))
    var smtpUser: String?

    @Option(
        help: ArgumentHelp(
            "A file with a line that is the user's password at the mail server. (default: the variable TIDEMARK_SMTP_PASSWORD)",
            valueName: "file"))
    var smtpPasswordFile: String?

    @Option(
        help: ArgumentHelp(
            "A file of certificates in PEM: the mail server's is from one of them. (default: those that this machine trusts)",
            valueName: "file"))
    var smtpCA: String?

    func validate() throws {
        guard (smtpServer == nil) == (smtpFrom == nil) else { throw ValidationError("--smtp-server and --smtp-from go together") }
        guard smtpServer != nil || smtpUser == nil && smtpPasswordFile == nil && smtpCA == nil else {
            throw ValidationError("--smtp-user, --smtp-password-file and --smtp-ca need --smtp-server")
        }
    }

    /// The mail server that the options name; `nil` where no letters are sent.
    func server() throws(ServerError) -> MailServer? {
        guard let smtpServer, let smtpFrom else { return nil }
        let password = try smtpUser == nil ? nil : password()
        do throws(MailServer.Failure) {
            return try MailServer(smtpServer, from: smtpFrom, user: smtpUser, password: password, authorities: smtpCA)
        } catch {
            throw ServerError(.options, error.description)
        }
    }

    private func password() throws(ServerError) -> String {
        guard let smtpPasswordFile else {
            guard let given = ProcessInfo.processInfo.environment["TIDEMARK_SMTP_PASSWORD"], !given.isEmpty else {
                throw ServerError(
                    .options, "--smtp-user needs a password: in TIDEMARK_SMTP_PASSWORD, or in the file of --smtp-password-file")
            }
            return given
        }
        return try SecretFile.line(of: smtpPasswordFile, option: "--smtp-password-file", what: "password")
    }
}
