import TidemarkCloudEngine

/// What pages show while a second factor is set up: those of operators and those of people.
enum SecondFactorPieces {
    /// A secret, as apps take it.
    static func secret(_ secret: String, of email: String) -> HTML {
        let parts = stride(from: 0, to: secret.count, by: 4).map { start in
            String(secret.dropFirst(start).prefix(4))
        }
        let uri = "otpauth://totp/Tidemark:\(Address.encoded(email))?secret=\(secret)&issuer=Tidemark"
        return """
            <p>Enter this secret in your authenticator app, then the code that it shows.</p>
            <pre tabindex="0">\(parts.joined(separator: " "))</pre>
            <details><summary>As an address</summary><pre class="link" tabindex="0">\(uri)</pre></details>
            """
    }

    /// The fields for the first code.
    ///
    /// - Parameter pending: What carries the secret until then.
    static func codeFields(_ pending: String) -> HTML {
        """
        <input type="hidden" name="factor" value="\(pending)">
        <div class="field"><label for="code">Code</label>
        <input id="code" name="code" autocomplete="one-time-code" inputmode="numeric" maxlength="10" required autofocus></div>
        <button>Set it up</button>
        """
    }

    static func recoveryCodes(_ codes: [String]) -> HTML {
        """
        <div class="card"><h2>Recovery codes</h2><p>Each lets you in once when you have lost your phone. They are not shown again.</p>
        <pre tabindex="0">\(codes.joined(separator: "\n"))</pre></div>
        """
    }
}
