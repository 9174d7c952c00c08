import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import TestSupport
import TidemarkModel

/// A mail server that keeps all letters, on a free port of this machine.
final class MailHost: Sendable {
    /// A letter as it came.
    struct Letter: Sendable {
        let sender, recipient: String
        /// The login that the client used; `nil` if it did not log in.
        let login: String?
        let isEncrypted: Bool
        let lines: [String]

        /// The text, decoded.
        var text: String {
            let body = lines.drop { !$0.isEmpty }.dropFirst().joined()
            return Data(base64Encoded: body).map { String(decoding: $0, as: UTF8.self) } ?? ""
        }
    }

    enum Encryption: Sendable { case none, offered, first }

    struct Manners: Sendable {
        var encryption = Encryption.none
        /// The required login, as `user\0password`.
        var login: String?
        /// The answer to a recipient.
        var toRecipient = "250 ok"
    }

    let port: Int
    private let channel: any Channel
    private let kept: Shared<[Letter]>

    static func started(_ manners: Manners = Manners()) async throws -> MailHost {
        let letters = Shared<[Letter]>([])
        let context: NIOSSLContext? =
            manners.encryption == .none
            ? nil
            : try NIOSSLContext(
                configuration: .makeServerConfiguration(
                    certificateChain: NIOSSLCertificate.fromPEMBytes(Array(TestCertificate.certificate.utf8))
                        .map { .certificate($0) },
                    privateKey: .privateKey(NIOSSLPrivateKey(bytes: Array(TestCertificate.key.utf8), format: .pem))))
        let channel = try await ServerBootstrap(group: NIOSingletons.posixEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if manners.encryption == .first, let context {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        Conversation(manners, context) { letter in letters.change { $0.append(letter) } })
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return MailHost(channel, letters)
    }

    private init(_ channel: any Channel, _ letters: Shared<[Letter]>) {
        (self.channel, port) = (channel, channel.localAddress?.port ?? 0)
        kept = letters
    }

    /// The letters so far, once there are so many.
    func letters(_ count: Int) async throws -> [Letter] {
        for _ in 0..<600 where kept.value.count < count { try await Task.sleep(for: .milliseconds(50)) }
        return kept.value
    }

    deinit { channel.close(promise: nil) }

    /// The state of one connection.
    private final class Conversation: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let manners: Manners
        private let tls: NIOSSLContext?
        private let keep: (Letter) -> Void
        private var bytes: [UInt8] = []
        private var isEncrypted: Bool
        private var (sender, recipient) = ("", "")
        private var login: String?
        private var letter: [String]?
        /// Whether the next line is the client's login.
        private var isAsked = false

        init(_ manners: Manners, _ tls: NIOSSLContext?, _ keep: @escaping (Letter) -> Void) {
            (self.manners, self.tls, self.keep) = (manners, tls, keep)
            isEncrypted = manners.encryption == .first
        }

        func channelActive(context: ChannelHandlerContext) {
            say("220 post.example.org", context)
            context.fireChannelActive()
        }

        private func say(_ line: String, _ context: ChannelHandlerContext) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: line + "\r\n")), promise: nil)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes += unwrapInboundIn(data).readableBytesView
            while let end = bytes.firstIndex(of: 0x0a) {
                let line = String(decoding: bytes[..<end], as: UTF8.self).trimmingCharacters(in: .newlines)
                bytes.removeSubrange(...end)
                hear(line, context)
            }
        }

        private func signIn(_ text: String, _ context: ChannelHandlerContext) {
            let given = Data(base64Encoded: text).map { String(decoding: $0, as: UTF8.self) }
            guard let given, given.hasSuffix(manners.login ?? "none") else { return say("535 wrong", context) }
            login = given
            say("235 come in", context)
        }

        private func hear(_ line: String, _ context: ChannelHandlerContext) {
            if letter != nil {
                guard line == "." else {
                    letter?.append(line)
                    return
                }
                keep(
                    Letter(
                        sender: sender, recipient: recipient, login: login, isEncrypted: isEncrypted, lines: letter ?? []))
                letter = nil
                return say("250 taken", context)
            }
            if isAsked {
                isAsked = false
                return signIn(line, context)
            }
            let words = line.split(separator: " ").map(String.init)
            switch words.first?.uppercased() {
            case "EHLO":
                say("250-post.example.org", context)
                if manners.encryption == .offered, !isEncrypted { say("250-STARTTLS", context) }
                say(manners.login == nil ? "250 8BITMIME" : "250 AUTH PLAIN", context)
            case "STARTTLS":
                guard let tls else { return say("502 no", context) }
                say("220 begin", context)
                isEncrypted = true
                do {
                    try context.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls), position: .first)
                } catch {
                    context.close(promise: nil)
                }
            case "AUTH":
                guard words.count == 3 else {
                    isAsked = true
                    return say("334 ", context)
                }
                signIn(words[2], context)
            case "MAIL":
                sender = String(line.dropFirst("MAIL FROM:".count))
                say("250 ok", context)
            case "RCPT":
                recipient = String(line.dropFirst("RCPT TO:".count))
                say(manners.toRecipient, context)
            case "DATA":
                letter = []
                say("354 go on", context)
            case "QUIT":
                say("221 good bye", context)
                context.close(promise: nil)
            default: say("500 what", context)
            }
        }
    }
}
