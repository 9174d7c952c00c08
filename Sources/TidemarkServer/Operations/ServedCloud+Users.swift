import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkWire

/// The caller and other people, in the protocol's older operations.
extension ServedCloud {
    /// Returns the caller's identity.
    private func caller(_ call: Call) async throws(CloudError) -> UserIdentity {
        let database = try await database(call, .private)
        let account = try await database.account()
        guard let user = account.userRecordName else { throw CloudError(.notAuthenticated, "no account is signed in") }
        return try await database.users(matching: [.userRecordName(user)]).first ?? UserIdentity(userRecordName: user)
    }

    func currentCaller(_ call: Call) async throws -> Reply {
        let user = try await caller(call)
        return .object {
            $0.member("userRecordName", user.userRecordName)
            if let name = user.name { $0.member("nameComponents") { name.writeMembers(&$0) } }
        }
    }

    func currentUser(_ call: Call) async throws -> Reply {
        let user = try await caller(call)
        return .object { Self.write(user, &$0) }
    }

    private static func write(_ user: UserIdentity, _ json: inout JSONWriter) {
        json.member("userRecordName", user.userRecordName)
        json.member("firstName", user.name?.givenName)
        json.member("lastName", user.name?.familyName)
        if case .emailAddress(let address) = user.lookUp { json.member("emailAddress", address) }
    }

    /// Answers with no contacts: the cloud has no address book.
    func contacts(_ call: Call) async throws -> Reply { .object { $0.list("users") { _ in } } }

    func lookupUsers(_ call: Call) async throws -> Reply {
        let wanted = try call.read { node throws(CloudError) in
            var wanted: [UserLookUp] = []
            for node in try node.required("users").asArray(most: Self.limits.operationsPerRequest) {
                wanted.append(try UserLookUp(node))
            }
            return wanted
        }
        try countLookUps(wanted.count, call)
        let database = try await database(call, .private)
        var found: [UserIdentity?] = []
        for lookUp in wanted { found.append(try await database.users(matching: [lookUp]).first) }
        let dialect = dialect(call)
        return .object {
            $0.list("users") { json in
                for (lookUp, user) in zip(wanted, found) {
                    json.object {
                        if let user {
                            Self.write(user, &$0)
                            return
                        }
                        switch lookUp {
                        case .emailAddress(let address): $0.member("emailAddress", address)
                        case .phoneNumber(let number): $0.member("phoneNumber", number)
                        case .userRecordName(let name): $0.member("userRecordName", name)
                        }
                        CloudError(.unknownItem, "no discoverable user has this name").writeMembers(&$0, dialect)
                    }
                }
            }
        }
    }
}
