import Hummingbird

/// Sharing with people.
extension Site {
    func addSharing(_ router: Router<VisitContext>) {
        router.post("/destinations/:id/invitations") { request, context in
            let session = try context.signedIn
            let form = try await form(of: request, session)
            let (id, email) = (try Self.id(context), form["email"])
            let token = try await session.journal.invite(email, to: id, mayEdit: form.isChecked("edits"))
            return await done(
                "\(email) is invited. Send them this link; it is for them alone.",
                link: address.link(to: "/invitations/\(token)", request),
                in: session, then: Self.page(of: context))
        }
        router.post("/destinations/:id/permission") { request, context in
            let session = try context.signedIn
            let form = try await form(of: request, session)
            try await session.journal.setMayEdit(form["may"] == "edit", form["participant"], of: Self.id(context))
            return Self.redirect(to: Self.page(of: context))
        }
        router.post("/destinations/:id/removal") { request, context in
            let session = try context.signedIn
            let form = try await form(of: request, session)
            try await session.journal.remove(form["participant"], from: Self.id(context))
            return Self.redirect(to: Self.page(of: context))
        }
        router.post("/destinations/:id/end") { request, context in
            let session = try context.signedIn
            _ = try await form(of: request, session)
            let isOwner = try await session.journal.detail(Self.id(context)).isOwner
            try await session.journal.endShare(of: Self.id(context))
            return isOwner
                ? await done("Nobody else sees the place now.", in: session, then: Self.page(of: context))
                : await done("You have left. The place stays with its owner.", in: session, then: "/")
        }
        router.get("/invitations/:token") { request, context in
            let session = try context.signedIn
            let invitation = try await session.journal.invitation(context.parameters.require("token"))
            return try await page(
                InvitationPage(invitation: invitation, layout: layout(request, context), session: session).html)
        }
        router.post("/invitations/:token") { request, context in
            let session = try context.signedIn
            let form = try await form(of: request, session)
            let token = try context.parameters.require("token")
            if form["answer"] == "accept" {
                try await session.journal.accept(token)
                return await done("You take part. The place appears here in a moment.", in: session, then: "/")
            }
            try await session.journal.decline(token)
            return await done("The invitation is declined.", in: session, then: "/")
        }
    }

    private static func page(of context: VisitContext) -> String { "/destinations/\(context.parameters.get("id") ?? "")" }
}
