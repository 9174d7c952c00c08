import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkModel

/// The part of the page on notifications of devices.
extension ActivityPage {
    /// The last notifications, and the subscriptions of an account.
    func notifications() async throws -> ConsoleReply {
        let administration = context.administration
        let isWhole = administration.isOperator && context.value("all") != nil
        let container = isWhole ? nil : try context.demandContainer()
        let account = context.value("account")
        var rows: [HTML] = []
        for delivery in (figures?.deliveries(of: container) ?? []).prefix(Self.most) {
            rows.append(
                Layout.row([
                    Layout.time(delivery.at), HTML(delivery.event), "<code>\(delivery.subscription)</code>",
                    HTML("\(delivery.delivered) of \(delivery.devices)"),
                    HTML(try await name(of: delivery.account, in: delivery.container)),
                    HTML("\(delivery.container) (\(delivery.environment))"),
                ]))
        }
        let table: HTML =
            rows.isEmpty
            ? "<div class=\"card empty\">This server has notified nobody since it has started.</div>"
            : Layout.table("Notifications", ["When", "Of a record's", "Subscription", "Devices", "Account", "Where"], rows)
        let asked: HTML = if let account { try await subscriptions(of: account) } else { .none }
        return Layout.page(
            context, .activity, title: "Notifications", isLive: account == nil,
            kept: [("show", "notifications"), ("account", account), ("all", isWhole ? "1" : nil)],
            """
            \(tabs("notifications"))
            <form class="card" method="get" action="\(Address(["activity"]))"><input type="hidden" name="show" value="notifications">
            \(place)
            <div class="row"><div class="field"><label for="account">Account <span class="hint">whose subscriptions are shown</span></label>
            <input id="account" name="account" autocomplete="off" maxlength="255" value="\(account ?? "")"></div>
            <div class="field"><button>Filter</button></div></div></form>
            \(asked)
            <h2>The last notifications</h2>
            \(live(table))
            <p class="quiet-text">The last 500 that this server has put into the boxes of devices, which fetch them from there. Times in UTC.</p>
            """)
    }

    private func subscriptions(of name: String) async throws -> HTML {
        let container = try context.demandContainer()
        let account = try await context.administration.accountForReading(
            name, in: container, context.environment, what: "subscriptions")
        guard let found = try await figures?.notifications(of: account.id, in: container, context.environment) else {
            return .none
        }
        let rows = found.subscriptions.map { subscription in
            Layout.row([
                "<code>\(subscription.id)</code>", HTML(subscription.scope.name),
                HTML(subscription.isOfZone ? "all changes" : subscription.recordType ?? ""),
                HTML(subscription.zone ?? "all zones"), HTML(subscription.events.joined(separator: ", ")),
                HTML(
                    [subscription.hasFilters ? "with filters" : nil, subscription.firesOnce ? "fires once" : nil]
                        .compactMap(\.self).joined(separator: ", ")),
            ])
        }
        let devices = "\(found.devices) \(found.devices == 1 ? "device is" : "devices are")"
        return """
            <h2>Subscriptions of \(HTML(try await self.name(of: account.id, in: container)))</h2>
            <p>\(devices) registered in \(container) (\(context.environment.rawValue)).\(found.devices == 0 ? " Without one, nothing is delivered." : "")</p>
            \(rows.isEmpty ? "<div class=\"card empty\">The account has subscribed to nothing there.</div>" : Layout.table("Subscriptions", ["Subscription", "Database", "To", "Zone", "Of", ""], rows))
            """
    }

    /// Hidden fields for the container and the environment.
    var place: HTML {
        """
        <input type="hidden" name="c" value="\(context.container ?? "")"><input type="hidden" name="e" value="\(context.environment.rawValue)">
        """
    }

    /// The fields that choose an account, or the whole server.
    func ofAccount(_ account: String?, _ isWhole: Bool) -> HTML {
        """
        <div class="field"><label for="account">Account <span class="hint">its address</span></label>
        <input id="account" name="account" autocomplete="off" maxlength="255" value="\(account ?? "")"></div>
        <div class="field"><label class="choice"><input type="checkbox" name="all" value="1"\(HTML.when(isWhole, " checked"))>The whole server</label></div>
        """
    }
}
