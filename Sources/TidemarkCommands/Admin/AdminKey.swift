import ArgumentParser
import Foundation
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct AdminKey: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key", abstract: "Adds, shows and revokes the public keys of servers.",
        discussion: """
            A server signs its requests with its private key, and acts as an account of its own. It can use the public database.

            Examples:
              openssl ecparam -name prime256v1 -genkey -noout -out private.pem
              openssl ec -in private.pem -pubout -out public.pem
              tidemark admin key add --container journal --name Importer \\
                  --public-key public.pem --data ~/cloud
              tidemark admin key list --data ~/cloud
              tidemark admin key revoke 1f6b2c9a --data ~/cloud
            """,
        subcommands: [AdminKeyAdd.self, AdminKeyList.self, AdminKeyRevoke.self])
}

private struct KeyLine: Encodable {
    let id, container, environment, name, account, made: String

    init(_ key: ServerKey) {
        (id, container, environment, name) = (key.id, key.container, key.environment.rawValue, key.name)
        account = key.account
        made = Timestamp.text(microseconds: key.made)
    }
}

struct AdminKeyAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds the public key of a server, and prints its key ID.",
        discussion: """
            The key is an ECDSA key on the curve P-256 (prime256v1), as PEM.

            Examples:
              tidemark admin key add --container journal --name Importer \\
                  --public-key public.pem --data ~/cloud
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Option(help: "development or production.")
    var environment: StoreEnvironment = .development

    @Option(help: ArgumentHelp("A description of its purpose.", valueName: "text"))
    var name = ""

    @Option(help: ArgumentHelp("The file with the public key.", valueName: "file"))
    var publicKey: String

    @Flag(help: "Prints one JSON object.")
    var json = false

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let pem = try readKey()
            do {
                _ = try ServerKey.id(of: pem, container: container, environment: environment)
            } catch let error as CredentialError {
                throw ending("\(publicKey): \(error.message)", .dataError)
            }
            let key = try await place.administration().addKey(
                of: container, environment: environment, name: name, publicKeyPEM: pem)
            if json { try Output.json(KeyLine(key)) } else { try Output.line(key.id) }
        }
    }

    private func readKey() throws -> String {
        let file: FileHandle
        do {
            file = try FileHandle(forReadingFrom: try fileURL(publicKey, "the public key"))
        } catch let error as CocoaError {
            throw ending("cannot read \(publicKey): \(error.localizedDescription)", .noInput)
        }
        // One byte more than a key may have, so that the length of a longer file is refused.
        let bytes = try file.read(upToCount: 8193) ?? Data()
        return String(decoding: bytes, as: UTF8.self)
    }
}

struct AdminKeyList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows the keys of servers.",
        discussion: """
            Examples:
              tidemark admin key list --data ~/cloud
              tidemark admin key list --data ~/cloud --json
            """)

    @OptionGroup var listing: AdminListing

    func run() async throws {
        try await reportingErrors {
            try listing.show(
                try await listing.place.administration().keys().map { KeyLine($0) },
                columns: ["container", "environment", "name", "key ID"], cutsLast: false,
                none: "there is no key; add one with 'tidemark admin key add'"
            ) { [$0.container, $0.environment, $0.name, $0.id] }
        }
    }
}

struct AdminKeyRevoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Revokes a key; records that its server has written stay.",
        discussion: """
            Examples:
              tidemark admin key revoke 1f6b2c9a --data ~/cloud
            """)

    @OptionGroup var revocation: AdminRevocation

    func run() async throws {
        try await revocation.run("key", of: { try await $0.keys() }, by: { try await $0.revokeKey($1) })
    }
}
