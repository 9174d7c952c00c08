import CCurl
import Foundation

/// A request that libcurl sends, and the part of its answer that has arrived.
///
/// `@unchecked Sendable`: until the transfer is submitted, only its caller uses it; afterwards only the thread of its loop. The
/// loop's lock guards ``isCancelled``.
final class CurlTransfer: @unchecked Sendable {
    typealias Instant = SuspendingClock.Instant

    /// The most bytes of all headers of an answer, including interim answers and trailers.
    private static let headerSizeMax = 128 << 10

    let request: HTTPRequest
    /// Called with the answer, on the thread of the loop. If the transfer can't be submitted, it is called on the caller's
    /// thread.
    var completion: ((Result<HTTPAnswer, TransportFailure>) -> Void)?
    var isCancelled = false
    private(set) var easy: UnsafeMutableRawPointer?
    private(set) var deadline: Instant

    private let clock = SuspendingClock()
    private var lines: UnsafeMutablePointer<curl_slist>?
    /// libcurl's message for an error. It is not shown, because it could contain a header.
    private let message: UnsafeMutablePointer<CChar>
    /// The last time at which bytes were sent or received.
    private var moved: Instant
    /// Whether there was a connection, so that the TLS handshake could begin.
    private var isConnected = false
    /// Whether libcurl has begun to send the request.
    private var isSent = false
    /// The bytes of the body that libcurl has read.
    private var sentCount = 0
    private var headerSize = 0
    private var isHeaderDone = false
    private var headers = HTTPFields()
    private var body: [UInt8] = []
    /// The reason why the transfer was ended early.
    private var abort: TransportFailure?

    init(_ request: HTTPRequest) {
        self.request = request
        message = .allocate(capacity: Int(CURL_ERROR_SIZE))
        message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        moved = clock.now
        deadline = moved
    }

    /// Frees the handle, which must no longer be in use.
    func dispose() {
        if let easy { curl_easy_cleanup(easy) }
        easy = nil
    }

    deinit {
        dispose()
        curl_slist_free_all(lines)
        message.deallocate()
    }

    func began(_ now: Instant) { deadline = now + request.times.total }

    // Time

    private var silence: Duration {
        sentCount < request.body?.count ?? 0 ? request.times.sendingSilence : request.times.receivingSilence
    }

    var nextDeadline: Instant {
        // Before the request is sent, libcurl's own timeout for connecting applies.
        isSent ? min(deadline, moved + silence) : deadline
    }

    func failure(at now: Instant) -> TransportFailure? {
        if now >= deadline { return .late }
        return isSent && now >= moved + silence ? .silent(silence) : nil
    }

    // Beginning

    /// Returns the handle that sends the request; `nil` if there is not enough memory.
    func prepare(_ setup: CurlLoop.Setup, _ clock: SuspendingClock) -> UnsafeMutableRawPointer? {
        guard let easy = curl_easy_init() else { return nil }
        self.easy = easy
        moved = clock.now
        var isSet = true
        func set(_ code: CURLcode) { isSet = isSet && code == CURLE_OK }
        let context = Unmanaged.passUnretained(self).toOpaque()

        set(tide_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, message))
        set(tide_curl_set_text(easy, CURLOPT_URL, request.url))
        set(tide_curl_set_scheme(easy, setup.isSecure ? 1 : 0))
        set(tide_curl_set_number(easy, CURLOPT_PATH_AS_IS, 1))
        set(tide_curl_set_number(easy, CURLOPT_FOLLOWLOCATION, 0))
        // No proxy is used, even if the environment names one.
        set(tide_curl_set_text(easy, CURLOPT_PROXY, ""))
        set(tide_curl_set_number(easy, CURLOPT_NOSIGNAL, 1))
        set(tide_curl_set_quick_exit(easy))
        set(tide_curl_set_open_socket(easy))
        set(tide_curl_set_number(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS)))
        set(tide_curl_set_number(easy, CURLOPT_PIPEWAIT, 1))
        set(tide_curl_set_number(easy, CURLOPT_CONNECTTIMEOUT_MS, request.times.connecting.milliseconds))
        set(tide_curl_set_number(easy, CURLOPT_MAXAGE_CONN, Int(CurlLoop.idleTime.components.seconds)))
        set(tide_curl_set_number(easy, CURLOPT_BUFFERSIZE, 1 << 17))
        if setup.isSecure { setTLS(easy, context, setup.authorities, set) }

        set(tide_curl_set_pointer(easy, CURLOPT_WRITEDATA, context))
        set(
            tide_curl_set_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
                CurlTransfer.of(context).receive(bytes, size * count)
            })
        set(tide_curl_set_pointer(easy, CURLOPT_HEADERDATA, context))
        set(
            tide_curl_set_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
                CurlTransfer.of(context).receiveHeader(bytes, size * count)
            })
        set(tide_curl_set_pointer(easy, CURLOPT_PREREQDATA, context))
        set(tide_curl_set_before_request(easy) { context, _, _, _, _ in CurlTransfer.of(context).beginRequest() })
        setRequest(easy, context, set)
        return isSet ? easy : nil
    }

    private func setTLS(
        _ easy: UnsafeMutableRawPointer, _ context: UnsafeMutableRawPointer, _ authorities: [UInt8]?, _ set: (CURLcode) -> Void
    ) {
        tide_curl_set_pointer(easy, CURLOPT_SSL_CTX_DATA, context)
        tide_curl_set_before_handshake(easy) { _, _, context in
            CurlTransfer.of(context).isConnected = true
            return CURLE_OK
        }
        set(tide_curl_set_number(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)))
        #if os(Linux)
            // For TLS 1.2, only ciphers with forward secrecy. All ciphers of TLS 1.3 have it.
            set(tide_curl_set_text(easy, CURLOPT_SSL_CIPHER_LIST, "ECDHE+AESGCM:ECDHE+CHACHA20"))
        #endif
        if let authorities {
            authorities.withUnsafeBytes { set(tide_curl_set_authorities(easy, $0.baseAddress!, $0.count)) }
        }
    }

    private func setRequest(
        _ easy: UnsafeMutableRawPointer, _ context: UnsafeMutableRawPointer, _ set: (CURLcode) -> Void
    ) {
        var texts = request.headers.map { "\($0): \($1)" }
        if let signature = request.signature {
            // libcurl signs all headers that it is given, also those with an empty value, which are removed. So there must be
            // none of these.
            set(tide_curl_set_text(easy, CURLOPT_AWS_SIGV4, "aws:amz:\(signature.region):\(signature.service)"))
            set(tide_curl_set_text(easy, CURLOPT_USERNAME, signature.keyID))
            set(tide_curl_set_text(easy, CURLOPT_PASSWORD, signature.secret))
            // The body is sent at once, without waiting for the server's status 100.
            set(tide_curl_set_number(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, 1))
        } else {
            // An empty value removes a header that libcurl would add.
            texts += ["Expect:", "Accept:"]
        }
        if let body = request.body {
            switch request.method {
            case .put:
                set(tide_curl_set_number(easy, CURLOPT_UPLOAD, 1))
                set(tide_curl_set_size(easy, CURLOPT_INFILESIZE_LARGE, Int64(body.count)))
            case .get, .post, .head, .delete:
                set(tide_curl_set_number(easy, CURLOPT_POST, 1))
                set(tide_curl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, Int64(body.count)))
            }
            set(tide_curl_set_pointer(easy, CURLOPT_READDATA, context))
            set(
                tide_curl_set_callback(easy, CURLOPT_READFUNCTION) { bytes, size, count, context in
                    CurlTransfer.of(context).fill(bytes, size * count)
                })
            set(tide_curl_set_pointer(easy, CURLOPT_SEEKDATA, context))
            set(tide_curl_set_seek(easy) { context, offset, _ in CurlTransfer.of(context).seek(Int64(offset)) })
            set(tide_curl_set_number(easy, CURLOPT_UPLOAD_BUFFERSIZE, 1 << 16))
            if request.signature == nil, !request.headers.contains(where: { $0.0.lowercased() == "content-type" }) {
                texts.append("Content-Type:")
            }
        } else {
            set(tide_curl_set_number(easy, CURLOPT_HTTPGET, 1))
            if request.method == .head { set(tide_curl_set_number(easy, CURLOPT_NOBODY, 1)) }
            if request.method == .delete { set(tide_curl_set_text(easy, CURLOPT_CUSTOMREQUEST, "DELETE")) }
        }
        if request.acceptsPacked { set(tide_curl_set_text(easy, CURLOPT_ACCEPT_ENCODING, "gzip")) }
        for text in texts {
            // A text that could end the line is not a valid header.
            guard !text.utf8.contains(where: { $0 == 0 || $0 == 10 || $0 == 13 }), let longer = curl_slist_append(lines, text)
            else {
                return set(CURLE_BAD_FUNCTION_ARGUMENT)
            }
            lines = longer
        }
        set(tide_curl_set_list(easy, CURLOPT_HTTPHEADER, lines))
    }

    // What libcurl calls back

    private static func of(_ context: UnsafeMutableRawPointer?) -> CurlTransfer {
        Unmanaged<CurlTransfer>.fromOpaque(context!).takeUnretainedValue()
    }

    private func beginRequest() -> Int32 {
        moved = clock.now
        // libcurl is about to send the body again, although a part of it may have arrived.
        guard sentCount == 0 else {
            abort = .broken
            return CURL_PREREQFUNC_ABORT
        }
        isSent = true
        return CURL_PREREQFUNC_OK
    }

    private func fill(_ bytes: UnsafeMutablePointer<CChar>?, _ room: Int) -> Int {
        guard let bytes, let body = request.body else { return 0 }
        let count = min(room, body.count - sentCount)
        body.withUnsafeBytes { whole in
            guard count > 0 else { return }
            UnsafeMutableRawPointer(bytes).copyMemory(from: whole.baseAddress! + sentCount, byteCount: count)
        }
        sentCount += count
        moved = clock.now
        return count
    }

    private func seek(_ offset: Int64) -> Int32 {
        offset == 0 && sentCount == 0 ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
    }

    private func receiveHeader(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
        moved = clock.now
        headerSize += count
        guard headerSize <= Self.headerSizeMax, let bytes else {
            abort = .tooLarge
            return 0
        }
        // Trailers after the body are ignored.
        if isHeaderDone { return count }
        let line = String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
        if line.hasPrefix("HTTP/") {
            headers = HTTPFields()
        } else if let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) {
            headers.append(
                line[..<colon].trimmingCharacters(in: .whitespaces),
                line[line.index(after: colon)...].trimmingCharacters(in: .whitespacesAndNewlines))
        } else if line.utf8.allSatisfy({ $0 == 10 || $0 == 13 }), let easy, tide_curl_number(easy, CURLINFO_RESPONSE_CODE) >= 200
        {
            isHeaderDone = true
            guard announced <= request.answerSizeMax || request.method == .head else {
                abort = .tooLarge
                return 0
            }
        }
        return count
    }

    private var announced: Int { headers.first(name: "Content-Length").map { Int($0) ?? .max } ?? 0 }

    private func receive(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
        moved = clock.now
        guard count > 0 else { return 0 }
        guard body.count + count <= request.answerSizeMax, let bytes else {
            abort = .tooLarge
            return 0
        }
        // The array grows once.
        if body.isEmpty { body.reserveCapacity(max(count, min(announced, request.answerSizeMax))) }
        body.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count))
        return count
    }

    // Ending

    func end(_ result: Result<HTTPAnswer, TransportFailure>) {
        completion?(result)
        completion = nil
    }

    func result(_ code: CURLcode) -> Result<HTTPAnswer, TransportFailure> {
        guard let easy else { return .failure(.outOfMemory) }
        if code == CURLE_OK {
            let status = HTTPStatus(code: tide_curl_number(easy, CURLINFO_RESPONSE_CODE))
            return .success(HTTPAnswer(status: status, headers: headers, body: body))
        }
        if let abort { return .failure(abort) }
        return .failure(isSent ? failure(code) : failureBefore(code, easy))
    }

    /// Returns the failure of a request that may have been done.
    private func failure(_ code: CURLcode) -> TransportFailure {
        switch code {
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: .malformed
        case CURLE_BAD_CONTENT_ENCODING: .notUnpackable
        case CURLE_OPERATION_TIMEDOUT: .late
        case CURLE_OUT_OF_MEMORY: .outOfMemory
        case CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE, CURLE_SEND_FAIL_REWIND,
            CURLE_SSL_CONNECT_ERROR, CURLE_COULDNT_CONNECT, CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_READ_ERROR:
            .broken
        default: .other(String(cString: curl_easy_strerror(code)))
        }
    }

    /// Returns the failure of a request that was not sent, because there was no connection.
    private func failureBefore(_ code: CURLcode, _ easy: UnsafeMutableRawPointer) -> TransportFailure {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST: return .unknownHost
        case CURLE_OPERATION_TIMEDOUT: return isConnected ? .handshakeTimeout : .connectTimeout
        case CURLE_PEER_FAILED_VERIFICATION:
            // The numbers of X509_V_ERR_…. libcurl compares the host before it asks for the result, which is 1 (unspecified) until then.
            switch tide_curl_number(easy, CURLINFO_SSL_VERIFYRESULT) {
            case 0, 1, 62, 64: return .untrusted(.otherHost)
            case 9: return .untrusted(.notYetValid)
            case 10: return .untrusted(.expired)
            default: return .untrusted(.authority)
            }
        case CURLE_SSL_CACERT_BADFILE: return .untrusted(.noAuthorities)
        case CURLE_SSL_CONNECT_ERROR: return handshake
        case CURLE_OUT_OF_MEMORY: return .outOfMemory
        default: return .refused(Int32(truncatingIfNeeded: tide_curl_number(easy, CURLINFO_OS_ERRNO)))
        }
    }

    private var handshake: TransportFailure {
        // libcurl has one code for all of these failures. The text is OpenSSL's.
        let text = errorText.lowercased()
        if text.contains("wrong version number") || text.contains("packet length too long") { return .noTLS }
        if text.contains("protocol version") || text.contains("unsupported protocol") { return .oldTLS }
        return .handshakeFailed
    }

    private var errorText: String {
        String(decoding: UnsafeRawBufferPointer(start: message, count: strnlen(message, Int(CURL_ERROR_SIZE))), as: UTF8.self)
    }
}

extension Duration {
    /// The duration in whole milliseconds; at least 1.
    fileprivate var milliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(clamping: max(1, seconds * 1000 + attoseconds / 1_000_000_000_000_000))
    }
}
