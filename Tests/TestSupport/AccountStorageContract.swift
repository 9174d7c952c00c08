import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// The checks of what every ``AccountStorage`` does.
package enum AccountStorageContract {
    /// Makes another server's storage of the same accounts. At first there are no accounts.
    package typealias Subject = @Sendable () async throws -> any AccountStorage

    private static func account(
        _ number: Int, phone: String? = nil, name: PersonName? = nil, quota: Int64 = 1_000
    ) -> StoredAccount {
        StoredAccount(
            id: "00000000-0000-4000-8000-\(String(100_000_000_000 + number))", email: "person\(number)@example.org", phone: phone,
            name: name, quota: quota, status: .available)
    }

    /// All checks.
    package static let checks: [StorageCheck<Subject>] = [
        StorageCheck("an account is found by its identifier, address and number, in all servers") { open in
            let (storage, other) = (try await open(), try await open())
            try require(try await storage.isEmpty(), "there are accounts at first")
            let anna = account(
                1, phone: "+4915112345678", name: PersonName(givenName: "Anna\0", familyName: "Ångström"), quota: .max)
            try requireEqual(try await storage.add(anna), anna, "added")
            for storage in [storage, other] {
                try requireEqual(try await storage.account(id: anna.id), anna, "by identifier")
                try requireEqual(try await storage.account(email: anna.email), anna, "by address")
                try requireEqual(try await storage.account(phone: "+4915112345678"), anna, "by number")
                try require(try await !storage.isEmpty(), "it is empty")
                for text in ["", "x", "a\0b", "'", anna.id.uppercased() + "x"] {
                    try requireEqual(try await storage.account(id: text), nil, "by another identifier")
                    try requireEqual(try await storage.account(email: text), nil, "by another address")
                    try requireEqual(try await storage.account(phone: text), nil, "by another number")
                }
            }
        },
        StorageCheck("an address has one account, even if it is added twice at once") { open in
            let (storage, other) = (try await open(), try await open())
            let anna = try await storage.add(account(1))
            var again = account(2)
            again = StoredAccount(id: again.id, email: anna.email, phone: "+491", quota: 5, status: .available)
            try requireEqual(try await other.add(again), anna, "added again")
            try requireEqual(try await other.account(id: again.id), nil, "the second")
            try requireEqual(try await other.account(phone: "+491"), nil, "the second's number")
            // All at once.
            let ids = try await withThrowingTaskGroup(of: String.self) { group in
                for number in 10..<30 {
                    group.addTask {
                        let one = account(number)
                        return try await (number % 2 == 0 ? storage : other).add(
                            StoredAccount(id: one.id, email: "same@example.org", quota: 1, status: .available)
                        ).id
                    }
                }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            try requireEqual(ids.count, 1, "accounts of one address")
            try requireEqual(try await storage.accounts().count, 2, "accounts")
        },
        StorageCheck("a number belongs to one account, and is free again when the account has another") { open in
            let storage = try await open()
            var anna = try await storage.add(account(1, phone: "+491"))
            try await requireError(.invalidArguments, "adding a number that is taken") {
                _ = try await storage.add(account(2, phone: "+491"))
            }
            try requireEqual(try await storage.account(email: account(2).email), nil, "an account that was refused")
            var ben = try await storage.add(account(2))
            ben.phone = "+491"
            try await requireError(.invalidArguments, "taking a number") { try await storage.update(ben) }
            // An account may be written again with its own number.
            try await storage.update(anna)
            anna.phone = nil
            try await storage.update(anna)
            try await storage.update(ben)
            try requireEqual(try await storage.account(phone: "+491")?.id, ben.id, "whose the number is")
        },
        StorageCheck("an address is changed to an unused one, and the former one is free") { open in
            let (storage, other) = (try await open(), try await open())
            var (anna, ben) = (try await storage.add(account(1)), try await storage.add(account(2)))
            _ = try await other.account(id: anna.id)
            try require(try await !storage.setAddress(ben.email, of: anna.id), "it took another's address")
            try requireEqual(try await other.account(id: anna.id), anna, "after that")
            try require(try await storage.setAddress(anna.email, of: anna.id), "its own was refused")
            let before = anna.email
            try require(try await storage.setAddress("new@example.org", of: anna.id), "a free one was refused")
            anna.email = "new@example.org"
            try requireEqual(try await other.account(id: anna.id), anna, "by its identifier")
            try requireEqual(try await other.account(email: "new@example.org"), anna, "by its address")
            try requireEqual(try await other.account(email: before), nil, "by the one before")
            try require(try await other.setAddress(before, of: ben.id), "the one before is not free")
            ben.email = before
            try requireEqual(try await storage.account(email: before), ben, "whose it is now")
            _ = try await storage.setAddress("gone@example.org", of: "nobody")
            try requireEqual(try await storage.account(email: "gone@example.org"), nil, "of nobody")
        },
        StorageCheck("a change counts in all servers when it returns") { open in
            let (storage, other) = (try await open(), try await open())
            var anna = try await storage.add(account(1))
            for round in 0..<20 {
                anna.quota = Int64(round)
                anna.status = round % 2 == 0 ? .restricted : .available
                anna.isDiscoverable = round % 3 == 0
                anna.name = PersonName(givenName: "\(round)", familyName: nil)
                try await (round % 2 == 0 ? storage : other).update(anna)
                try requireEqual(try await storage.account(id: anna.id), anna, "here in round \(round)")
                try requireEqual(try await other.account(id: anna.id), anna, "there in round \(round)")
            }
            try await storage.remove(anna.id)
            try requireEqual(try await other.account(id: anna.id), nil, "removed")
            try await storage.remove(anna.id)
            try await storage.update(anna)
            try requireEqual(try await other.account(id: anna.id), nil, "a change of what is removed")
            try await storage.remove("\0")
        },
        StorageCheck("an account that was changed meanwhile is not overwritten") { open in
            let (storage, other) = (try await open(), try await open())
            let anna = try await storage.add(account(1))
            var (shut, named) = (anna, anna)
            shut.status = .restricted
            named.name = PersonName(givenName: "Anna", familyName: nil)
            try require(try await other.update(shut, from: anna), "a change of what it still is")
            try require(try await !storage.update(named, from: anna), "it was overwritten")
            try requireEqual(try await storage.account(id: anna.id), shut, "after that")
            // The address is no part of it.
            try require(try await storage.setAddress("new@example.org", of: anna.id), "another address")
            named.status = .restricted
            try require(try await storage.update(named, from: shut), "with another address")
            named.email = "new@example.org"
            try requireEqual(try await other.account(id: anna.id), named, "at the end")
            try await storage.remove(anna.id)
            try require(try await !storage.update(named, from: named), "a removed one was changed")
            // The engine's loop keeps what both change.
            let accounts = Accounts(storage)
            let ben = try await storage.add(account(2))
            let changed = try await accounts.update(id: ben.id) { $0.quota = 7 }
            try requireEqual(changed?.after.quota, 7, "by the loop")
            try require(try await accounts.update(id: anna.id) { $0.quota = 7 } == nil, "a removed one by the loop")
        },
        StorageCheck("a user record name of a container leads to its account, for earlier and later accounts") { open in
            let (storage, other) = (try await open(), try await open())
            let early = try await storage.add(account(1))
            @Sendable func name(_ account: StoredAccount, _ container: String = "iCloud.org.example.journal") -> String {
                StoredAccount.userRecordName(of: account.id, in: container)
            }
            @Sendable func found(_ account: StoredAccount, _ container: String = "iCloud.org.example.journal") async throws {
                for storage in [storage, other] {
                    try requireEqual(
                        try await storage.account(userRecordName: name(account, container), in: container)?.id, account.id,
                        "the account of a name in \(container)")
                }
            }
            try await found(early)
            let late = try await other.add(account(2))
            try await found(late)
            try await found(early, "iCloud.org.example.other")
            try await found(late, "iCloud.org.example.other")
            try requireEqual(
                try await storage.account(userRecordName: name(late), in: "iCloud.org.example.other"), nil, "another container's")
            for text in ["", "_", "x\0"] {
                try requireEqual(
                    try await storage.account(userRecordName: text, in: "iCloud.org.example.journal"), nil, "no name")
            }
            try await storage.remove(late.id)
            try requireEqual(
                try await other.account(userRecordName: name(late), in: "iCloud.org.example.journal"), nil, "one that is gone")
            // While accounts come, containers are asked about for the first time.
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<10 {
                    group.addTask {
                        let added = try await (number % 2 == 0 ? storage : other).add(account(100 + number))
                        let container = "iCloud.org.example.c\(number / 2)"
                        try requireEqual(
                            try await (number % 3 == 0 ? storage : other).account(
                                userRecordName: name(added, container), in: container)?.id, added.id, "of a new container")
                    }
                }
                try await group.waitForAll()
            }
        },
        StorageCheck("accounts are listed by the bytes of their addresses") { open in
            let storage = try await open()
            let emails = ["b@example.org", "a@example.org", "ä@example.org", "_@example.org", "a-@example.org", "z@example.org"]
            for (number, email) in emails.enumerated() {
                _ = try await storage.add(
                    StoredAccount(id: account(number).id, email: email, quota: 1, status: .available))
            }
            try requireEqual(
                try await storage.accounts().map(\.email),
                ["_@example.org", "a-@example.org", "a@example.org", "b@example.org", "z@example.org", "ä@example.org"], "order")
        },
        StorageCheck("simultaneous requests each get their own account") { open in
            let storage = try await open()
            for number in 0..<20 { _ = try await storage.add(account(number)) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<400 {
                    group.addTask {
                        let wanted = account(number % 25)
                        try requireEqual(
                            try await storage.account(id: wanted.id)?.email, number % 25 < 20 ? wanted.email : nil, "account")
                    }
                }
                try await group.waitForAll()
            }
        },
    ]
}
