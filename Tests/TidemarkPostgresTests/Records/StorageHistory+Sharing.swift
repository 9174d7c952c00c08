import Foundation
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// What accounts do with shares and assets, and what is compared at the end.
extension StorageHistory {
    func share() -> Action {
        let (account, zone) = (pick(["anna", "ben"]), CloudZoneID(pick(["Journal", "Other"])))
        let coverage: CloudShare.Coverage = number(0..<3) == 0 ? .zone : .hierarchy(root: "n\(number(0..<10))")
        let permission: ShareParticipant.Permission = pick([.none, .readOnly, .readWrite])
        return Action(kind: "shares", name: "\(account) shares \(coverage) of \(zone.zoneName)") { side in
            let database = try side.database(account, .private)
            let share = try await database.createShare(in: zone, coverage: coverage, title: "t", publicPermission: permission)
            let link = try await database.makeLink(to: share.id, for: nil)
            side.shares.append(share.id)
            side.links.append((link.id, link.token, share.id))
            return Self.describe(share, side)
        }
    }

    /// Changes a share, as its owner, as an administrator, or as somebody who may not.
    func changeShare() -> Action {
        let (owner, place) = (pick(["anna", "ben"]), number(0..<100))
        let account = number(0..<3) > 0 ? owner : pick(Self.accounts)
        let (who, participant) = (pick(Self.accounts), number(0..<4))
        let permission: ShareParticipant.Permission = pick([.none, .readOnly, .readWrite])
        let role: ShareParticipant.Role = pick([.privateUser, .privateUser, .administrator])
        let kinds = (0..<number(1..<3)).map { _ in number(0..<8) }
        let title = pick([nil, "title", "a longer title", "\u{1F993}", "with \u{0}"])
        return Action(kind: "changes a share", name: "\(account) changes a share of \(owner): \(kinds)") { side in
            guard !side.shares.isEmpty else { return "" }
            let own = side.shares[place % side.shares.count]
            let isOwn = account == owner
            let zone = isOwn ? own.zone : CloudZoneID(own.zone.zoneName, owner: side.users[owner]!)
            let (id, database) = (CloudRecordID(own.recordName, in: zone), try side.database(account, isOwn ? .private : .shared))
            let known = try await database.shares(in: zone).first { $0.id.recordName == own.recordName }?.participants ?? []
            let chosen = known.isEmpty ? "nobody" : known[participant % known.count].id
            let changes: [ShareChange] = kinds.map { kind in
                switch kind {
                case 0: .setTitle(title)
                case 1: .setPublicPermission(permission)
                case 2, 3: .invite(.emailAddress("\(who)@example.org"), role: role, permission: permission)
                case 4: .invite(.userRecordName(side.users[who]!), role: role, permission: permission)
                case 5: .setPermission(participant: chosen, permission)
                case 6: .setRole(participant: chosen, role)
                default: .remove(participant: chosen)
                }
            }
            let share = try await database.changeShare(id, changes)
            // A link for one participant alone.
            if let invited = share.participants.first(where: { $0.acceptanceStatus == .pending }) {
                let link = try await database.makeLink(to: id, for: invited.id)
                side.links.append((link.id, link.token, own))
            }
            return Self.describe(share, side)
        }
    }

    func link() -> Action {
        let (account, place, kind) = (pick(Self.accounts), number(0..<100), number(0..<6))
        return Action(kind: "links", name: "\(account) \(kind == 0 ? "looks at" : kind == 1 ? "declines" : "accepts") a link") {
            side in
            guard !side.links.isEmpty else { return "" }
            let (database, token) = (try side.database(account, .shared), side.links[place % side.links.count].token)
            switch kind {
            case 0:
                let found = try await database.resolveLink(token)
                return "\(found.scope) \(found.root ?? "") \(Self.describe(found.share, side))"
            case 1: try await database.declineLink(token)
            default: _ = try await database.acceptLink(token)
            }
            return "\(kind) \(try await database.zones().map { Self.describe($0, side) }.sorted())"
        }
    }

    func revokeLink() -> Action {
        let (account, place) = (pick(["anna", "ben"]), number(0..<100))
        return Action(kind: "revokes", name: "\(account) revokes a link") { side in
            guard !side.links.isEmpty else { return "" }
            let link = side.links[place % side.links.count]
            try await side.database(account, .private).revokeLink(link.id, to: link.share)
            return "revoked"
        }
    }

    func endShare() -> Action {
        let (account, place) = (pick(["anna", "ben"]), number(0..<100))
        return Action(kind: "ends", name: "\(account) ends a share") { side in
            guard !side.shares.isEmpty else { return "" }
            try await side.database(account, .private).deleteShare(side.shares[place % side.shares.count])
            return "ended"
        }
    }

    func leave() -> Action {
        let (account, owner, place) = (pick(Self.accounts), pick(["anna", "ben"]), number(0..<100))
        return Action(kind: "leaves", name: "\(account) leaves a share of \(owner)") { side in
            guard !side.shares.isEmpty else { return "" }
            let own = side.shares[place % side.shares.count]
            let zone = CloudZoneID(own.zone.zoneName, owner: side.users[owner]!)
            let database = try side.database(account, .shared)
            try await database.deleteShare(CloudRecordID(own.recordName, in: zone))
            return "left \(try await database.zones().map { Self.describe($0, side) }.sorted())"
        }
    }

    /// All shares that an account sees.
    func shares(_ account: String) -> Action {
        Action(kind: "sees shares", name: "\(account) looks at shares") { side in
            var told: [String] = []
            for scope in [DatabaseScope.private, .shared] {
                let database = try side.database(account, scope)
                for zone in try await database.zones().sorted(by: { "\($0)" < "\($1)" }) where !zone.isDefault {
                    told.append(Self.describe(zone, side))
                    told += try await database.shares(in: zone).map { Self.describe($0, side) }.sorted()
                }
            }
            return told.joined(separator: "; ")
        }
    }

    func audit(_ account: String) -> Action {
        Action(kind: "audits", name: "\(account) looks back at what was done to shares") { side in
            let entries = try await side.database(account, .private).shareAudit(in: CloudZoneID("Journal"), after: nil)
            return entries.map { entry in
                "\(entry.time) \(entry.kind) \(entry.userRecordName) \(entry.value ?? "") \(entry.subject == nil)"
            }.joined(separator: "; ")
        }
    }

    // Assets and what is left

    func upload() -> Action {
        let (account, owner, content) = (pick(Self.accounts), pick(["anna", "ben"]), pick(Self.contents))
        let (isPublic, isWhole) = (number(0..<4) == 0, number(0..<5) > 0)
        return Action(kind: "uploads", name: "\(account) uploads \(content.count) bytes to \(isPublic ? "all" : owner)") { side in
            let isOwn = account == owner
            let zone =
                isPublic
                ? CloudZoneID.default : isOwn ? CloudZoneID("Journal") : CloudZoneID("Journal", owner: side.users[owner]!)
            let database = try side.database(account, isPublic ? .public : isOwn ? .private : .shared)
            let asset = AssetDigest.asset(of: content)
            guard let has = try await database.missingAssets([asset], in: zone)[asset] else { return "is there" }
            let rest = content.dropFirst(Int(has))
            let count = try await database.upload(Data(isWhole ? rest : rest.prefix(50)), of: asset, at: has, in: zone)
            return "\(has) \(count)"
        }
    }

    /// Does a step of the removals that are under way.
    func goOnRemoving() -> Action {
        Action(kind: "removes", name: "the cloud goes on with removals") { side in
            let container = try await side.cloud.openedContainer(Self.container, .development)
            return "\(try await container.engine.removeNext(container.assetStorage))"
        }
    }

    /// What accounts have used, as it was counted, and as it is found in the rows.
    func usage() -> Action {
        Action(kind: "usage", name: "usage") { side in
            var used: [String] = []
            for account in Self.accounts {
                used.append("\(try await side.database(account, .private).account().used ?? -1)")
            }
            let container = try await side.cloud.openedContainer(Self.container, .development)
            let (counted, found) = try await container.engine.storage.read { rows throws(CloudError) in
                (try rows.allUsed(), try rows.countUsed())
            }
            let wrong = Set(counted.keys).union(found.keys).filter { counted[$0] ?? 0 != found[$0] ?? 0 }
            guard wrong.isEmpty else { return "\(type(of: container.engine.storage)) counted \(counted), found \(found)" }
            return used.joined(separator: ", ")
        }
    }

    /// All that devices see, from the beginning.
    func lastActions() -> [Action] {
        var actions: [Action] = []
        for account in Self.accounts {
            for owner in ["anna", "ben"] {
                for zone in ["Journal", "Other"] {
                    actions.append(changes(account, zone, of: owner, limit: number(1..<20), isFresh: false))
                    actions.append(changes(account, zone, of: owner, limit: number(1..<20), isFresh: true))
                }
            }
            actions += [databaseChanges(account, .private), databaseChanges(account, .shared), shares(account)]
            // The public database has no feed.
            actions.append(lookUp(account, .public, "what the public database has") { _ in .default })
        }
        return actions + [audit("anna"), audit("ben"), usage()]
    }

    // Words

    private static func describe(_ zone: CloudZoneID, _ side: Side) -> String { "\(zone)" }

    private static func describe(_ share: CloudShare, _ side: Side) -> String {
        func person(_ participant: ShareParticipant) -> String {
            let identity = participant.identity
            return
                "\(identity.userRecordName ?? "") \(identity.lookUp?.value ?? "") \(participant.role) \(participant.permission) \(participant.acceptanceStatus)"
        }
        return
            "\(share.id.zone.zoneName) \(share.coverage) '\(share.title ?? "")' \(share.publicPermission) \(share.participants.map(person)) \(share.currentUser.map(person) ?? "")"
    }
}
