import Foundation
import Tidemark

/// A destination: its picture, its story, what the person may do with it, and who takes part.
struct DestinationPage {
    let detail: Detail
    let layout: Layout
    let session: Session

    private var destination: Destination { detail.destination }

    var html: HTML {
        layout.document(
            destination.caption, isLive: true,
            """
            <p class="back"><a href="/">All places</a></p>
            <article class="destination">
            <div class="photo" id="photo" data-live><img src="\(Path.picture(destination, isThumbnail: false))" alt="\(destination.caption)"></div>
            <div class="story" id="story" data-live><h1>\(destination.caption)</h1>
            <p class="facts">\(Layout.day(destination.createdAt))\(position)</p>
            \(Layout.paragraphs(destination.details))</div>
            <div class="panel" id="actions" data-live>\(actions)</div>
            <section class="panel" aria-labelledby="people-title"><h2 id="people-title">People</h2>
            <div id="people" data-live>\(people)</div>
            \(invitation)</section>
            </article>
            """)
    }

    private var position: HTML {
        guard let position = destination.position else { return .none }
        func degrees(_ value: Double, _ positive: String, _ negative: String) -> String {
            let number = abs(value).formatted(.number.precision(.fractionLength(2)).locale(Locale(identifier: "en_GB")))
            return "\(number)° \(value < 0 ? negative : positive)"
        }
        return " · \(degrees(position.latitude, "N", "S")), \(degrees(position.longitude, "E", "W"))"
    }

    // What the person may do

    private var actions: HTML {
        """
        <ul class="actions">
        <li>\(action("Edit", "edit", detail.obstacle(to: .update)))</li>
        <li>\(action("Delete", "delete", detail.obstacle(to: .delete), isDangerous: true))</li>
        </ul>
        """
    }

    /// A link to where something is done; where it is not permitted, a button that can't be pressed, with the reason below.
    private func action(_ title: String, _ part: String, _ obstacle: String?, isDangerous: Bool = false) -> HTML {
        guard let obstacle else {
            return """
                <a class="button\(isDangerous ? " danger" : " quiet")" href="\(Path.destination(destination, part))">\(title)</a>
                """
        }
        return """
            <button disabled aria-describedby="why-\(part)">\(title)</button> <span class="why" id="why-\(part)">\(obstacle)</span>
            """
    }

    // Who takes part

    private var people: HTML {
        guard let share = detail.share else {
            return "<p class=\"quiet-text\">Nobody else sees this place.</p>"
        }
        let others = share.participants.filter { $0.acceptanceStatus != .removed }
        return """
            <ul class="people">\(others.map(person))</ul>
            \(ending)
            """
    }

    private func person(_ participant: ShareParticipant) -> HTML {
        let status: HTML =
            switch (participant.role, participant.acceptanceStatus) {
            case (.owner, _): "owns it"
            case (_, .pending): "invited\(participant.permission == .readWrite ? ", may edit" : ", may look")"
            default: participant.permission == .readWrite ? "may edit" : "may look"
            }
        return """
            <li><span class="avatar" aria-hidden="true">\(String(participant.identity.title.prefix(1)).uppercased())</span>
            <span class="who"><b>\(participant.identity.title)</b><span class="quiet-text">\(status)</span></span>\(management(participant))</li>
            """
    }

    private func management(_ participant: ShareParticipant) -> HTML {
        guard participant.role != .owner, detail.obstacle(to: .changeParticipant) == nil else { return .none }
        let mayEdit = participant.permission == .readWrite
        let name = participant.identity.title
        let hidden: HTML = "\(Layout.token(session))<input type=\"hidden\" name=\"participant\" value=\"\(participant.id)\">"
        return """
            <form method="post" action="\(Path.destination(destination, "permission"))">\(hidden)
            <input type="hidden" name="may" value="\(mayEdit ? "look" : "edit")">
            <button class="plain" aria-label="\(mayEdit ? "Let \(name) only look" : "Let \(name) edit")">\(mayEdit ? "Only look" : "Let edit")</button></form>
            <form method="post" action="\(Path.destination(destination, "removal"))">\(hidden)
            <button class="plain" aria-label="Remove \(name)">Remove</button></form>
            """
    }

    private var ending: HTML {
        """
        <form method="post" action="\(Path.destination(destination, "end"))">\(Layout.token(session))
        <button class="plain">\(detail.isOwner ? "Stop sharing" : "Leave")</button></form>
        """
    }

    /// The form to invite somebody. It is none of the parts that follow the journal: what is typed stays.
    private var invitation: HTML {
        let operation: SharePolicy.Operation = detail.share == nil ? .share : .invite
        guard detail.obstacle(to: operation) == nil else { return .none }
        return """
            <form class="invite" method="post" action="\(Path.destination(destination, "invitations"))">\(Layout.token(session))
            <label class="field"><span>Share with</span>
            <input type="email" name="email" required placeholder="ben@example.org" autocomplete="off" maxlength="254"></label>
            <label class="check"><input type="checkbox" name="edits"> may edit</label>
            <button>Make a link</button></form>
            """
    }
}

/// Asks before a destination is deleted.
struct DeletionPage {
    let detail: Detail
    let layout: Layout
    let session: Session

    var html: HTML {
        let others = detail.card.isShared ? " Everybody who takes part loses it, too." : ""
        return layout.document(
            "Delete",
            """
            <div class="narrow"><h1>Delete “\(detail.destination.caption)”?</h1>
            <p>The place and its photo go from all of your devices.\(others)</p>
            <form class="row" method="post" action="\(Path.destination(detail.destination, "delete"))">\(Layout.token(session))
            <button class="danger">Delete it</button> <a class="button quiet" href="\(Path.destination(detail.destination))">Keep it</a></form></div>
            """)
    }
}
