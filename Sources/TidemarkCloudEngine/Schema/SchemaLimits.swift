import TidemarkCloud

/// Limits for a development schema, which grows with what is saved.
struct SchemaLimits: Hashable, Sendable {
    /// Of a container, by all accounts together.
    var all = CloudSchema.Use(types: 1_000, fields: 20_000, bytes: 2_000_000)
    /// Of a container, by one account.
    var own = CloudSchema.Use(types: 250, fields: 5_000, bytes: 500_000)

    /// - Throws: `CloudError` `limitExceeded` where there is more.
    func check(_ all: CloudSchema.Use, _ own: CloudSchema.Use) throws(CloudError) {
        if let what = own.firstBeyond(self.own) { throw Self.exceeded("this account has added", what) }
        if let what = all.firstBeyond(self.all) { throw Self.exceeded("the container has", what) }
    }

    private static func exceeded(_ who: String, _ what: String) -> CloudError {
        CloudError(
            .limitExceeded,
            "\(who) \(what) in its development schema, and can't have more. An administrator of the cloud can remove types "
                + "and fields that are not needed: tidemark admin schema remove")
    }
}

extension CloudSchema {
    /// The size of a schema, or of a part of it.
    struct Use: Hashable, Sendable {
        var types = 0
        var fields = 0
        /// The bytes of the names and of what is stored with them, approximately.
        var bytes = 0

        static func += (left: inout Use, right: Use) { left = left + right }

        static func + (left: Use, right: Use) -> Use {
            Use(types: left.types + right.types, fields: left.fields + right.fields, bytes: left.bytes + right.bytes)
        }

        static func - (left: Use, right: Use) -> Use {
            Use(types: left.types - right.types, fields: left.fields - right.fields, bytes: left.bytes - right.bytes)
        }

        /// The first number that is greater than a limit's, in words.
        fileprivate func firstBeyond(_ limit: Use) -> String? {
            if types > limit.types { return "\(limit.types) record types" }
            if fields > limit.fields { return "\(limit.fields) fields" }
            return bytes > limit.bytes ? "\(limit.bytes) bytes of names" : nil
        }
    }

    /// The bytes that are stored with a name.
    private static let overhead = 64

    /// Returns what an account has added; for `nil`, what all accounts have added.
    func use(by user: String?) -> Use { types.keys.reduce(into: Use()) { $0 += use(of: $1, by: user) } }

    /// Returns what an account, or for `nil` all accounts, have added to one type.
    func use(of name: String, by user: String?) -> Use {
        guard let type = types[name] else { return Use() }
        var use = Use()
        if user == nil || type.addedBy == user { use += Use(types: 1, bytes: name.utf8.count + Self.overhead) }
        for (name, field) in type.fields where user == nil || field.addedBy == user {
            use += Use(fields: 1, bytes: name.utf8.count + Self.overhead)
        }
        return use
    }
}
