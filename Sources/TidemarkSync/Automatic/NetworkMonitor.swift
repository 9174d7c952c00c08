@preconcurrency import Dispatch
import Foundation

#if canImport(Network)
    import Network
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Reports changes of the network: interfaces, addresses and routes that come and go.
enum NetworkMonitor {
    /// A stream with an element for each change. Changes that come before an element is read become one. The stream ends at once
    /// where the system reports no changes, as in a process without the right to ask.
    static func changes() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        #if canImport(Network)
            let monitor = NWPathMonitor()
            monitor.pathUpdateHandler = { if $0.status == .satisfied { continuation.yield() } }
            continuation.onTermination = { _ in monitor.cancel() }
            monitor.start(queue: DispatchQueue(label: "tidemark.network"))
        #else
            guard let socket = netlinkSocket() else {
                continuation.finish()
                return stream
            }
            let source = DispatchSource.makeReadSource(
                fileDescriptor: socket, queue: DispatchQueue(label: "tidemark.network"))
            source.setEventHandler {
                var buffer = [UInt8](repeating: 0, count: 8192)
                // The messages are only removed from the socket. Their contents do not matter.
                while recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT)) > 0 {}
                continuation.yield()
            }
            source.setCancelHandler { close(socket) }
            continuation.onTermination = { _ in source.cancel() }
            source.activate()
        #endif
        return stream
    }

    #if !canImport(Network)
        /// A socket on which Linux reports changes of interfaces, addresses and routes; `nil` where it refuses one. See `rtnetlink(7)`.
        private static func netlinkSocket() -> Int32? {
            // AF_NETLINK, SOCK_RAW with SOCK_CLOEXEC, NETLINK_ROUTE.
            let descriptor = socket(16, 3 | 0o2000000, 0)
            guard descriptor >= 0 else { return nil }
            // sockaddr_nl: the family, two bytes of padding, the port (0: the kernel chooses one) and the groups: RTMGRP_LINK,
            // RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR.
            var address: (UInt16, UInt16, UInt32, UInt32) = (16, 0, 0, 0x1 | 0x10 | 0x40 | 0x100)
            let result = withUnsafeBytes(of: &address) {
                bind(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
            }
            guard result == 0 else {
                close(descriptor)
                return nil
            }
            return descriptor
        }
    #endif
}
