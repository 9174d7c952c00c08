/// A step of the test that runs each command of `tidemark admin` over a directory and over a database.
enum AdminStep: Sendable {
    /// A command and the status that it exits with.
    ///
    /// In its words a tilde stands for a space. `@export` is a path that does not exist yet, `@public-key` and `@schema` are
    /// files. Other words that begin with `@` stand for a value of the last answer to a command: see ``identifiers``.
    case command(String, Int32 = 0)
    /// A change without a command.
    case change(AdminChange)

    /// The command, if it succeeds.
    var succeedingCommand: String? {
        if case .command(let words, 0) = self { words } else { nil }
    }

    /// The commands whose answers have identifiers, and the member of the first line that has the identifier.
    static let identifiers: [String: (command: String, member: String)] = [
        "@token": ("token list --json", "id"), "@key": ("key list --json", "id"), "@session": ("session list --json", "id"),
        "@identity": ("account identities anna@example.org --json", "id"),
        "@share": ("links list \(zone) --json", "share"), "@link": ("links list \(zone) --json", "link"),
    ]

    /// The commands that don't do the same on both kinds of places; each has a test of its own. A database is backed up and
    /// restored by its own programs, and a move goes from one kind to the other.
    static let ofOnePlace: Set = ["backup", "restore", "move"]

    /// All steps, in their order.
    static let all: [AdminStep] = [accounts, access, schema, records, shares, contents, cloud].flatMap(\.self)

    /// The options that name the private database of anna@example.org, and its zone `Trips`.
    private static let database = "--container journal --account anna@example.org"
    private static let zone = "--container journal --account anna@example.org --zone Trips"

    private static let accounts: [AdminStep] = [
        .command("container list", 66), .command("account list", 66),
        .command("container add journal"), .command("container add journal --json"), .command("container list --json"),
        .command("account add anna@example.org --password-stdin --json"),
        .command("account add anna@example.org --no-password", 73),
        .command("account add ben@example.org --name Ben --no-password"),
        .command("account list --json"), .command("account list"),
        .command("account set anna@example.org --quota 1GB --phone +491234567 --discoverable on --json"),
        .command("account set carl@example.org --quota 1GB", 66), .command("account show anna@example.org --json"),
        .command("account password ben@example.org --password-stdin --json"),
        .command("account password ben@example.org --remove"),
        .command("account recount --json"), .command("account recount"),
        .command("account reset-link anna@example.org --url https://cloud.example.org --json"),
        .command("account reset-link carl@example.org --url https://cloud.example.org", 66),
        .command("account second-factor anna@example.org --json"), .change(.secondFactor),
        .command("account second-factor anna@example.org --json"), .command("account second-factor anna@example.org"),
        .command("account show anna@example.org"),
        .command("operator reset anna@example.org --json"), .command("account second-factor anna@example.org"),
        .command("operator reset anna@example.org"), .change(.secondFactor),
        .command("account second-factor anna@example.org --remove --json"),
        .command("account second-factor anna@example.org --remove"), .command("operator reset carl@example.org", 66),
    ]

    private static let access: [AdminStep] = [
        .command("token add --container journal --name Web --callback https://journal.example.org/in --json"),
        .command("token add --container other --name Web --callback https://journal.example.org/in", 66),
        .command("token list --json"), .command("token revoke zz", 66), .command("token revoke @token --json"),
        .command("token list --json"), .command("token list"),
        .command("key add --container journal --name Importer --public-key @public-key --json"),
        .command("key list --json"), .command("key revoke 00000000zz", 66), .command("key revoke @key --json"),
        .command("key list --json"), .command("key list"),
        .command("session list --json"), .command("session list"), .command("session end --all --json"),
        .command("session end abc", 66), .change(.session), .command("session list --json"),
        .command("session list --account anna@example.org --json"), .command("session end @session --json"),
        .command("session list --json"), .change(.session), .command("session end --account anna@example.org --json"),
        .change(.session), .command("session end --all --json"), .command("session list --json"),
        .command("account identities anna@example.org --json"), .command("account identities anna@example.org"),
        .command("account identities anna@example.org --disconnect ab", 66), .change(.identity),
        .command("account identities anna@example.org --json"), .command("account identities anna@example.org"),
        .command("account identities anna@example.org --disconnect @identity --json"),
        .command("account identities anna@example.org --json"),
    ]

    private static let schema: [AdminStep] = [
        .command("schema show --container journal --json"), .command("schema show --container other", 66),
        .command("schema export --container journal"), .command("schema export --container other", 66),
        .command("schema index --container journal --type None --field title --queryable", 66),
        .command("schema freeze --container journal --json"), .command("schema freeze --container journal --off"),
        .command("schema add --container journal --type Trip --field days --kind int64 --json"),
        .command("schema add --container journal --type Trip --field days --kind string", 64),
        .command("schema import none.json --container journal", 66),
        .command("schema import @schema --container journal --json"),
        .command("schema import @schema --container journal"), .command("schema export --container journal"),
        .command("schema index --container journal --type Trip --field title --queryable --sortable --json"),
        .command("schema remove --container journal --type None", 66),
        .command("schema remove --container journal --type Junk --field note --json"),
        .command("schema remove --container journal --type Junk"), .command("schema show --container journal"),
        .command("schema diff --container journal --json"), .command("schema diff --container journal"),
        .command("schema deploy --container journal --dry-run"), .command("schema deploy --container journal --json"),
        .command("schema diff --container journal --json"),
    ]

    private static let records: [AdminStep] = [
        .command("records set oslo title=Oslo --type City --container journal"),
        .command("records set odda title=Odda --type City --container journal --json"),
        .command("records set narvik title=Narvik --type City --container journal"),
        .command("records list --type City --container journal", 64),
        .command("schema index --container journal --type City --field recordName --queryable"),
        .command("records list --type City --container journal"),
        .command("records list --type City --container journal --sort -title", 64),
        .command("schema index --container journal --type City --field title --queryable --sortable"),
        .command("records list --type City --container journal --filter title~BEGINS_WITH~O --sort -title"),
        .command("records list --type City --container journal --filter title~BEGINS_WITH~O --sort title --json"),
        .command("records list --type City --container journal --sort title --limit 2"),
        .command("records list --type City --container journal --filter title~EQUALS~Bodø"),
        .command("records show oslo --container journal --json"),
        .command("records set oslo title=Christiania --container journal"), .command("zones --container journal --json"),
        .command("zones --container journal --scope private --account anna@example.org --json"),
        .command("shares --container journal --scope private --account anna@example.org"), .command("usage --json"),
        .command("usage --container journal"),
        .command("links list --container journal --scope private --account anna@example.org"),
        .command("links list --container journal --scope private --account anna@example.org --zone Trips --json", 66),
        .command("links revoke abc --share none --container journal --scope private --account anna@example.org --zone Trips", 66),
        .command("permissions ben@example.org --container journal --scope private --account anna@example.org --json"),
        .command("permissions nobody@example.org --container journal"),
        .command("permissions ben@example.org --container other", 66),
        .command("sync-errors"), .command("sync-errors --container other", 66),
        .command("records delete oslo --container journal --json"), .command("records show oslo --container journal", 66),
        .command("records set bergen title=Bergen --type Place --container journal"),
        .command("schema reset --container journal", 64), .command("schema reset --container journal --yes --json"),
        .command("schema reset --container other --yes", 66), .command("schema show --container journal --json"),
        .command("records show bergen --container journal", 66),
    ]

    private static let shares: [AdminStep] = [
        .change(.trips), .command("zones \(database) --json"), .command("zones \(database)"),
        .command("records list --type Trip \(zone) --filter title~BEGINS_WITH~S --sort -title --json"),
        .command("records list --type Trip \(zone) --filter title~BEGINS_WITH~S --sort title"),
        .command("records show senja \(zone)"), .command("records show senja \(zone) --json"),
        .command("records show paris \(zone)", 66), .command("shares \(database) --json"), .command("shares \(zone) --json"),
        .command("links list \(zone) --json"), .command("links list \(zone)"),
        .command("permissions ben@example.org \(zone) --json"), .command("permissions ben@example.org \(zone)"),
        .command("permissions anna@example.org \(zone) --json"),
        .command("links revoke @link --share @share \(zone) --json"), .command("links list \(zone) --json"),
        .command("usage --json"), .command("usage --container journal --json"), .command("account list --json"),
        .command("account show anna@example.org --json"), .command("account recount --json"),
        .change(.refusal), .command("sync-errors --json"), .command("sync-errors"),
        .command("sync-errors --account anna@example.org --container journal --environment development --limit 1 --json"),
        .command("sync-errors --account ben@example.org --json"), .command("sync-errors --environment production"),
        .command("sync-errors --limit 0", 64),
    ]

    private static let contents: [AdminStep] = [
        .command("account export anna@example.org --to @export --json"),
        .command("account export anna@example.org --to @export"), .command("account export ben@example.org --to @export"),
        .command("account export carl@example.org --to @export", 66),
        .command("verify --json"), .command("verify"), .change(.loss), .command("verify --json", 1), .command("verify", 1),
        .command("verify --repair", 1), .command("account export anna@example.org --to @export --json", 1), .change(.putBack),
        .command("verify --json"), .command("verify --repair"),
    ]

    private static let cloud: [AdminStep] = [
        .command("operator add anna@example.org --json"),
        .command("operator add ben@example.org --role developer --container journal"), .command("operator list --json"),
        .command("operator remove ben@example.org --json"), .command("operator remove ben@example.org", 66),
        .command("resync --json"), .command("resync"), .command("audit --json"), .command("audit --container journal"),
        .command("audit --account anna@example.org"),
        .command("secrets rotate --json"), .command("secrets rotate --grace-days 3"),
        .command("account remove ben@example.org --json"),
        .command("account remove anna@example.org --with-data --yes", 77),
        .command("operator remove anna@example.org", 64), .command("operator remove anna@example.org --yes --json"),
        .command("account remove anna@example.org", 77),
        .command("account remove anna@example.org --with-data --yes --json"), .command("verify --json"),
        .command("container remove journal --json"), .command("container list"),
    ]
}
