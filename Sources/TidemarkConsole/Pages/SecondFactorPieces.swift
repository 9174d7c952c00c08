import TidemarkAdministration
import TidemarkCloudEngine

/// The parts of the pages on which operators and people set up a second factor.
enum SecondFactorPieces {
    /// A secret for an authenticator app: a picture to scan, and texts for people who can't scan it.
    static func secret(_ secret: String, of email: String) -> HTML {
        let parts = stride(from: 0, to: secret.count, by: 4).map { start in
            String(secret.dropFirst(start).prefix(4))
        }
        let uri = "otpauth://totp/Tidemark:\(Address.encoded(email))?secret=\(secret)&issuer=Tidemark"
        return """
            <p>Scan this QR code with your authenticator app, or type the secret below it. Then enter the code that the app shows.</p>
            \(QRSymbol(uri)?.picture("QR code of the secret, which follows as text") ?? .none)
            <pre class="secret" tabindex="0">\(parts.joined(separator: " "))</pre>
            <details><summary>As an address</summary><pre class="link" tabindex="0">\(uri)</pre></details>
            """
    }

    /// The fields for the first code.
    ///
    /// - Parameter pending: The signed text that carries the secret until then.
    static func codeFields(_ pending: String) -> HTML {
        """
        <input type="hidden" name="factor" value="\(pending)">
        <div class="field"><label for="code">Code</label>
        <input id="code" name="code" autocomplete="one-time-code" inputmode="numeric" maxlength="10" required autofocus></div>
        <button>Set it up</button>
        """
    }

    /// Recovery codes that were just made.
    ///
    /// - Parameter next: The address of the page that follows.
    static func recoveryCodes(_ codes: [String], next: Address) -> HTML {
        """
        <div class="card"><h2>Recovery codes</h2><p>Each lets you in once when you have lost your phone. They are not shown again.</p>
        <pre tabindex="0">\(codes.joined(separator: "\n"))</pre></div>
        <p><a class="button" href="\(next)">The codes are in a safe place: go on</a></p>
        """
    }

    /// The question before new recovery codes are made.
    static let questionOfCodes =
        "You get eight new recovery codes. Those that you have now let you in no longer. The code of your app stays."

    /// The message that new recovery codes were made.
    static let madeCodes = Layout.notice(
        .good, "These are your recovery codes from now on. Those of before let you in no longer.")

    static let changedMeanwhile = AdministrationError(.conflict, "the second factor was changed meanwhile; look at it again")
}
