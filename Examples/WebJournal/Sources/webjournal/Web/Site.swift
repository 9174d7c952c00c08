import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Tidemark

/// The site: what each address answers.
struct Site: Sendable {
    let accounts: any Accounts
    let sessions: Sessions
    let address: SiteAddress
    /// Makes the picture of an upload; a parameter for tests.
    var makePhoto: @Sendable (Data) async throws -> Photo = { try await Photo(data: $0) }
    /// How often a page that follows the journal gets a sign of life.
    var pulse = Duration.seconds(20)
    /// A parameter for tests, whose clock may stand.
    var signIns = SignInLimits()
    private let uploads = Limits(
        each: 2, all: 16, PageError(503, "Busy", "Several photos are just coming in. Try again in a moment."))
    let streams = Limits(
        each: 20, all: 2_000, PageError(503, "Busy", "Too many pages are open. Close some, and load this one again."))
    private let files = FileIO()

    var router: Router<VisitContext> {
        let router = Router(context: VisitContext.self)
        router.addMiddleware {
            SafetyHeaders()
            Failures()
            Visits(sessions: sessions, address: address)
        }
        addFiles(router)
        router.get("/sign-in") { request, context in try await signInPage(request, context) }
        router.post("/sign-in") { request, context in try await signIn(request, context) }
        router.post("/sign-out") { request, context in try await signOut(request, context) }
        router.get("/changes") { request, context in try await changes(context) }
        router.get("/") { request, context in
            let session = try context.signedIn
            let gallery = try await session.journal.gallery(after: Form.pairs(request.uri.query ?? "")["after"])
            return try await page(GalleryPage(gallery: gallery, layout: layout(request, context)).html)
        }
        addDestinations(router.group("/destinations"))
        addSharing(router)
        return router
    }

    // Signing in

    private func signInPage(_ request: Request, _ context: VisitContext) async throws -> Response {
        let token = request.cookies[address.formCookie]?.value ?? Secret.make()
        let next = Form.pairs(request.uri.query ?? "")["next"] ?? ""
        let wasSignedIn = context.session == nil && request.cookies[address.sessionCookie] != nil
        return try await signInPage(
            token: token, next: next,
            notice: wasSignedIn
                ? Session.Notice(tone: .info, text: "Your sign-in has ended. What you have saved is here: sign in again.") : nil)
    }

    private func signInPage(
        token: String, next: String, email: String = "", asksForCode: Bool = false, status: HTTPResponse.Status = .ok,
        notice: Session.Notice? = nil
    ) async throws -> Response {
        let people = try await accounts.demonstrators
        let layout = Layout(session: nil, notice: nil)
        let signIn = SignInPage(
            layout: layout, formToken: token, demonstrators: people, next: next, email: email, asksForCode: asksForCode,
            notice: notice)
        var response = page(signIn.html, status: status)
        response.setCookie(address.cookie(address.formCookie, token, sameSite: .strict))
        return response
    }

    private func signIn(_ request: Request, _ context: VisitContext) async throws -> Response {
        let form = try await Form(of: request, acceptsPhoto: false)
        guard let token = request.cookies[address.formCookie]?.value, !token.isEmpty, Secret.areEqual(token, form["token"]) else {
            throw PageError.foreignForm
        }
        func again(
            _ status: HTTPResponse.Status, _ message: String, asksForCode: Bool = false
        ) async throws -> Response {
            try await signInPage(
                token: token, next: form["next"], email: form["email"], asksForCode: asksForCode, status: status,
                notice: Session.Notice(tone: .error, text: message))
        }
        let (email, browser) = (form["email"], address.browser(of: request, context))
        // Without passwords there is nothing to guess.
        if try await accounts.demonstrators.isEmpty, await !signIns.admits(email, from: browser) {
            return try await again(.tooManyRequests, "There were too many attempts. Wait a minute, and try again.")
        }
        let member: Member
        let code = form["code"]
        do {
            member = try await accounts.signIn(
                email: email, password: form.texts["password"] ?? "", code: code.isEmpty ? nil : code)
        } catch let error as CloudError where error.code == .notAuthenticated || error.code == .secondFactorRequired {
            let isRight = error.code == .secondFactorRequired
            let message =
                switch (isRight, code.isEmpty) {
                case (false, _): "The address or the password is wrong."
                case (true, true): "Enter your password again, and the code that your authenticator app shows."
                case (true, false): "The code is wrong, or was used already."
                }
            return try await again(.forbidden, message, asksForCode: isRight || !code.isEmpty)
        }
        await signIns.succeed(email, from: browser)
        let session = try await sessions.begin(member)
        if let old = context.session { await sessions.end(old.id) }
        var response = Self.redirect(to: Self.isOwn(form["next"]) ? form["next"] : "/")
        response.setCookie(address.cookie(address.sessionCookie, session.id))
        response.setCookie(address.cookie(address.formCookie, nil, sameSite: .strict))
        return response
    }

    /// Whether an address is one of this site, and not of another that begins with `//`.
    private static func isOwn(_ path: String) -> Bool {
        path.hasPrefix("/") && !path.hasPrefix("//") && path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != 0x5c }
    }

    private func signOut(_ request: Request, _ context: VisitContext) async throws -> Response {
        let session = try context.signedIn
        _ = try await form(of: request, session)
        await sessions.end(session.id)
        var response = Self.redirect(to: "/sign-in")
        response.setCookie(address.cookie(address.sessionCookie, nil))
        return response
    }

    // Destinations

    private func addDestinations(_ group: RouterGroup<VisitContext>) {
        group.get("/new") { request, context in
            let session = try context.signedIn
            return try await page(DestinationForm(layout: layout(request, context), session: session).html)
        }
        group.post("/") { request, context in try await add(request, context) }
        group.get("/:id") { request, context in
            let session = try context.signedIn
            let detail = try await session.journal.detail(Self.id(context))
            return try await page(DestinationPage(detail: detail, layout: layout(request, context), session: session).html)
        }
        group.get("/:id/picture") { request, context in try await picture(context, isThumbnail: false) }
        group.get("/:id/thumbnail") { request, context in try await picture(context, isThumbnail: true) }
        group.get("/:id/edit") { request, context in
            let session = try context.signedIn
            let (edit, destination) = try await session.journal.beginEdit(Self.id(context))
            return try await page(
                DestinationForm(
                    layout: layout(request, context), session: session, destination: destination, edit: edit,
                    caption: destination.caption, details: destination.details
                ).html)
        }
        group.post("/:id/edit") { request, context in try await edit(request, context) }
        group.get("/:id/delete") { request, context in
            let session = try context.signedIn
            let detail = try await session.journal.detail(Self.id(context))
            if let obstacle = detail.obstacle(to: .delete) { throw PageError(403, "Not permitted", obstacle) }
            return try await page(DeletionPage(detail: detail, layout: layout(request, context), session: session).html)
        }
        group.post("/:id/delete") { request, context in
            let session = try context.signedIn
            _ = try await form(of: request, session)
            try await session.journal.delete(Self.id(context))
            return await done("The place is deleted.", in: session, then: "/")
        }
    }

    private func add(_ request: Request, _ context: VisitContext) async throws -> Response {
        let session = try context.signedIn
        let (form, photo) = try await photoForm(of: request, session)
        var destination = Destination(caption: form["caption"], details: form["details"], image: Asset(data: Data()))
        do {
            try photo.get()?.move(into: &destination, keepsPosition: form.isChecked("position"))
            try destination.validate()
            try await session.journal.add(destination)
        } catch let error where error is ValidationError || error is PictureError {
            let (message, field) = Self.problem(error)
            return try await page(
                DestinationForm(
                    layout: layout(request, context), session: session, caption: form["caption"], details: form["details"],
                    problem: .invalid(message, field: field)
                ).html, status: .badRequest)
        }
        return await done("“\(destination.caption)” is saved.", in: session, then: Path.destination(destination))
    }

    private func edit(_ request: Request, _ context: VisitContext) async throws -> Response {
        let session = try context.signedIn
        let id = try Self.id(context)
        let (form, uploaded) = try await photoForm(of: request, session)
        let detail = try await session.journal.detail(id)
        var answer = DestinationForm(
            layout: try await layout(request, context), session: session, destination: detail.destination, edit: form["edit"],
            caption: form["caption"], details: form["details"])
        do {
            let photo = try uploaded.get()
            let result = try await session.journal.finishEdit(
                form["edit"], of: id, overwriting: form.isChecked("overwrite")
            ) { destination in
                destination.caption = form["caption"]
                destination.details = form["details"]
                photo?.move(into: &destination, keepsPosition: form.isChecked("position"))
            }
            switch result {
            case .saved: return await done("The changes are saved.", in: session, then: Path.destination(detail.destination))
            case .conflict(let fields, let theirs): answer.problem = .conflict(theirs: theirs, fields: fields)
            case .forgotten:
                answer.edit = try await session.journal.beginEdit(id).edit
                answer.problem = .invalid(
                    "The form was too old to be saved. Compare it with the place, and save it again.", field: nil)
            }
            return page(answer.html, status: .conflict)
        } catch let error where error is ValidationError || error is PictureError {
            let (message, field) = Self.problem(error)
            answer.problem = .invalid(message, field: field)
            return page(answer.html, status: .badRequest)
        }
    }

    private static func problem(_ error: any Error) -> (message: String, field: String?) {
        switch error {
        case let error as ValidationError: (error.message, error.field)
        case let error as PictureError: (Photo.message(of: error), "photo")
        default: (PageError(telling: error).message, nil)
        }
    }

    private func picture(_ context: VisitContext, isThumbnail: Bool) async throws -> Response {
        let asset = try await context.signedIn.journal.picture(of: Self.id(context), isThumbnail: isThumbnail)
        guard let file = asset.fileURL else { throw PageError.gone }
        let isPNG = try FileHandle.firstBytes(4, of: file) == Data([0x89, 0x50, 0x4e, 0x47])
        let headers: HTTPFields = [
            .contentType: isPNG ? "image/png" : "image/jpeg",
            // The address names the content. Nobody else's browser is given it.
            .cacheControl: "private, max-age=604800, immutable", .contentSecurityPolicy: "default-src 'none'; sandbox",
        ]
        return Response(status: .ok, headers: headers, body: try await files.loadFile(path: file.path, context: context))
    }

    // Parts of it

    static func id(_ context: VisitContext) throws -> UUID {
        guard let id = context.parameters.get("id").flatMap({ UUID(uuidString: $0) }) else { throw PageError.gone }
        return id
    }

    /// The form of a page of this session.
    func form(of request: Request, _ session: Session, acceptsPhoto: Bool = false) async throws -> Form {
        let form = try await Form(of: request, acceptsPhoto: acceptsPhoto)
        guard Secret.areEqual(form["token"], session.formToken) else { throw PageError.foreignForm }
        return form
    }

    /// Reads a form with a photo, and makes the picture. Both are one turn of the person's, so that no more uploads wait for their pictures
    /// than may come in at once.
    private func photoForm(
        of request: Request, _ session: Session
    ) async throws -> (form: Form, photo: Result<Photo?, PictureError>) {
        try await uploads.run(for: session.journal.person) { () -> (form: Form, photo: Result<Photo?, PictureError>) in
            var form = try await self.form(of: request, session, acceptsPhoto: true)
            guard let file = form.takeFile() else { return (form, .success(nil)) }
            do { return (form, .success(try await makePhoto(file))) } catch let error as PictureError {
                return (form, .failure(error))
            }
        }
    }

    /// What is around a page. A page that follows another one leaves what is to be told to that.
    func layout(_ request: Request, _ context: VisitContext) async throws -> Layout {
        let session = try context.signedIn
        let isLive = request.headers[.live] != nil
        return Layout(session: session, notice: isLive ? nil : await sessions.takeNotice(for: session.id))
    }

    func page(_ html: HTML, status: HTTPResponse.Status = .ok) -> Response {
        Response(
            status: status, headers: [.contentType: "text/html; charset=utf-8"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: html.text)))
    }

    /// Leads to a page that tells what was done.
    func done(_ text: String, link: String? = nil, in session: Session, then path: String) async -> Response {
        await sessions.setNotice(Session.Notice(text: text, link: link), for: session.id)
        return Self.redirect(to: path)
    }

    static func redirect(to path: String) -> Response { Response(status: .seeOther, headers: [.location: path]) }
}

extension HTTPField.Name {
    static let live = Self("X-Live")!
}

extension FileHandle {
    fileprivate static func firstBytes(_ count: Int, of file: URL) throws -> Data? {
        let handle = try FileHandle(forReadingFrom: file)
        let bytes = try handle.read(upToCount: count)
        try handle.close()
        return bytes
    }
}
