import GRDB
public import TidemarkModel
public import TidemarkSQLite

/// The cloud and the account of a container. They are stored in its private store, so they move with it.
public struct AccountSettings: Hashable, Sendable {
    /// Where the cloud is: the path of an embedded cloud's directory, or the address of a server. `nil` if no cloud was ever named.
    public var cloud: String?
    /// The cloud container, a name such as `iCloud.org.example.journal`.
    public var cloudContainer = "default"
    /// The account; `nil` when no account is signed in.
    public var email: String?
    /// The account's name in the cloud container, if a server has reported it. A session of another account is not used.
    public var userRecordName: String?
    /// The authorities that may sign the server's certificate, in PEM. `nil` for the authorities that the machine trusts.
    public var authority: String?
    /// The account's switch for all of its files, as iCloud Drive's; see ``AccountState/driveIsOn``.
    public var driveIsOn = true
    /// The account's switch for this container; see ``AccountState/appIsOn``.
    public var appIsOn = true
    /// The name of the merge policy.
    public var mergePolicy: String?
    /// The treatment of records that are already here when an account signs in.
    public var signIn: String?

    /// The settings of a container that was never synchronised.
    public init() {}

    /// Whether the account can be used, by these settings: signed in means that ``email`` is set.
    public var state: AccountState { AccountState(isSignedIn: email != nil, driveIsOn: driveIsOn, appIsOn: appIsOn) }

    init(_ db: Database) throws {
        for row in try Row.fetchAll(db, sql: "SELECT key, value FROM tide_account") {
            // Rows of a damaged page may have any values.
            let (key, value): (String, String?) = (try row.decode(atIndex: 0), try row.decode(atIndex: 1))
            switch key {
            case "cloud": cloud = value
            case "cloud_container": cloudContainer = value ?? cloudContainer
            case "email": email = value
            case "user_record_name": userRecordName = value
            case "authority": authority = value
            case "drive": driveIsOn = value != "off"
            case "app": appIsOn = value != "off"
            case "merge_policy": mergePolicy = value
            case "sign_in": signIn = value
            default: break
            }
        }
    }

    func store(_ db: Database) throws {
        let values: [(String, String?)] = [
            ("cloud", cloud), ("cloud_container", cloudContainer), ("email", email), ("drive", driveIsOn ? "on" : "off"),
            ("app", appIsOn ? "on" : "off"), ("merge_policy", mergePolicy), ("sign_in", signIn),
            ("user_record_name", userRecordName), ("authority", authority),
        ]
        for (key, value) in values {
            try db.execute(sql: "INSERT OR REPLACE INTO tide_account (key, value) VALUES (?, ?)", arguments: [key, value])
        }
    }
}

extension StoreReader {
    /// Reads the settings from the store, or returns the initial settings if none were ever saved.
    ///
    /// - Throws: ``StoreError`` as other reads of the store do.
    public func accountSettings() throws(StoreError) -> AccountSettings {
        try read("read the account") { try AccountSettings($0) }
    }
}

extension RecordStore {
    /// Changes the account's settings.
    @discardableResult
    public func updateAccountSettings(
        _ change: @Sendable (inout AccountSettings) -> Void
    ) throws(StoreError) -> AccountSettings {
        try connection.locked("change the account") { db in
            var settings = try AccountSettings(db)
            change(&settings)
            try settings.store(db)
            return (settings, .commit)
        }
    }
}
