import Foundation

/// Where people sign in.
struct SignInPage {
    let layout: Layout
    let formToken: String
    /// Who may sign in without a password.
    let demonstrators: [Person]
    /// The page that they wanted to see.
    let next: String
    var email = ""
    /// Whether the account has a second factor.
    var asksForCode = false
    var notice: Session.Notice?

    var html: HTML {
        layout.document(
            "Sign in",
            """
            <div class="narrow welcome"><h1>Travel journal</h1>
            <p>Places and photos, on all of your devices, and with the people you choose.</p>
            \(notice.map { Layout.notice($0) } ?? HTML.none)
            \(demonstrators.isEmpty ? passwordForm : demoForms)</div>
            """)
    }

    private var hidden: HTML {
        """
        <input type="hidden" name="token" value="\(formToken)"><input type="hidden" name="next" value="\(next)">
        """
    }

    private var demoForms: HTML {
        """
        <p class="quiet-text">This is a demonstration on one machine. Sign in as one of them here, and as the other in another browser, or in a private window.</p>
        \(demonstrators.map { person in
            """
            <form method="post" action="/sign-in">\(hidden)<input type="hidden" name="email" value="\(person.email)">
            <button class="wide"><span class="avatar" aria-hidden="true">\(String(person.name.prefix(1)))</span> Continue as \(person.name)</button></form>
            """
        })
        """
    }

    private var passwordForm: HTML {
        """
        <form method="post" action="/sign-in">\(hidden)
        <label class="field"><span>E-mail address</span><input type="email" name="email" required autocomplete="username" value="\(email)"></label>
        <label class="field"><span>Password</span><input type="password" name="password" required autocomplete="current-password"></label>
        \(asksForCode ? codeField : HTML.none)
        <button class="wide">Sign in</button></form>
        """
    }

    private var codeField: HTML {
        """
        <label class="field"><span>Code</span><input name="code" required maxlength="40" autocomplete="one-time-code"></label>
        """
    }
}

/// What an invitation leads to.
struct InvitationPage {
    let invitation: Invitation
    let layout: Layout
    let session: Session

    var html: HTML {
        layout.document(
            "Invitation",
            """
            <div class="narrow"><h1>\(invitation.title)</h1>
            \(content)</div>
            """)
    }

    private var content: HTML {
        if invitation.isOwn {
            return """
                <p>This is the link that you have made. Send it to the person whom you have invited.</p>
                <p><a class="button quiet" href="/">To the journal</a></p>
                """
        }
        if invitation.isAccepted {
            return "<p>You take part already.</p><p><a class=\"button quiet\" href=\"/\">To the journal</a></p>"
        }
        return """
            <p><b>\(invitation.owner)</b> shares this place with you. You may \(invitation.mayEdit ? "look at it and edit it" : "look at it").</p>
            <form class="row" method="post" action="/invitations/\(invitation.token)">\(Layout.token(session))
            <button name="answer" value="accept">Accept</button> <button class="quiet" name="answer" value="decline">Decline</button></form>
            """
    }
}
