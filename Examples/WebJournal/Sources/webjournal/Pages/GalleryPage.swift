import Foundation
import Tidemark

/// All destinations, newest first.
struct GalleryPage {
    let cards: [Card]
    let layout: Layout

    var html: HTML {
        layout.document(
            "Places", isLive: true,
            """
            <div class="heading"><h1>Places</h1><a class="button" href="/destinations/new">Add a place</a></div>
            <div id="gallery" data-live>\(cards.isEmpty ? Self.empty : grid)</div>
            """)
    }

    private var grid: HTML {
        "<ul class=\"grid\">\(cards.map(Self.card))</ul>"
    }

    private static let empty: HTML = """
        <div class="empty"><svg viewBox="0 0 120 80" aria-hidden="true"><path d="M8 70 42 22l18 26 12-16 40 38z"/><circle cx="86" cy="20" r="9"/></svg>
        <h2>Nothing here yet</h2>
        <p>Add a photo of a place that you have been to. It is on all of your devices, and with the people you share it with.</p>
        <p><a class="button" href="/destinations/new">Add the first place</a></p></div>
        """

    private static func card(_ card: Card) -> HTML {
        let it = card.destination
        return """
            <li id="\(it.recordName)"><a class="card" href="\(Path.destination(it))">
            <img src="\(Path.picture(it, isThumbnail: true))" alt="" width="480" height="320" loading="lazy">
            <span class="caption">\(it.caption)</span>
            <span class="facts">\(Layout.day(it.createdAt))\(badge(card))</span></a></li>
            """
    }

    private static func badge(_ card: Card) -> HTML {
        if let owner = card.owner { return " <span class=\"badge\">from \(owner)</span>" }
        return card.isShared ? " <span class=\"badge\">shared</span>" : .none
    }
}
