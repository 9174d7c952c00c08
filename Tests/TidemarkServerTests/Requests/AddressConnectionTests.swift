import TestSupport
import Testing

@testable import TidemarkServer

/// Goal: one address gets a limited share of all connections. Method: the counter as a value, and real connections.
@Suite(.timeLimit(.minutes(30))) struct AddressConnectionTests {
    private func ask(_ connection: RawConnection) async throws {
        try await connection.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        try await connection.receive("ok\n")
    }

    @Test func `a network of IPv6 has one name, however its addresses are written`() {
        for (address, network) in [
            ("2001:db8:1::5", "2001:db8:1:0::"), ("2001:db8:1:0:2:3:4:5", "2001:db8:1:0::"),
            ("2001:db8:1:0:2::5", "2001:db8:1:0::"), ("2001:db8:0:1::5", "2001:db8:0:1::"),
            ("2001:db8:0:1:2:3:4:5", "2001:db8:0:1::"), ("2001::1:2:3:4:5", "2001:0:0:1::"),
            ("::1", "::1"), ("::ffff:192.0.2.7", "192.0.2.7"), ("::FFFF:c000:207", "192.0.2.7"), ("192.0.2.7", "192.0.2.7"),
            ("unknown", "unknown"),
        ] {
            #expect(CloudResponder.network(address) == network)
        }
    }

    @Test func `connections are counted by their address until they are closed`() {
        let connections = AddressConnections(most: 3)
        for _ in 0..<3 { #expect(connections.open("a")) }
        #expect(!connections.open("a") && connections.open("b"))
        connections.close("a")
        #expect(connections.open("a") && !connections.open("a"))
        connections.lower(to: 2)
        connections.close("a")
        #expect(!connections.open("a"))
        connections.close("a")
        #expect(connections.open("a"))
        // An address always has room for one connection, and lowering adds no limit if there is none.
        connections.lower(to: 0)
        #expect(connections.open("c") && !connections.open("c"))
        let all = AddressConnections(most: 0)
        all.lower(to: 1)
        for _ in 0..<3 { #expect(all.open("a")) }
    }

    @Test func `an address with the most connections gets no more, and keeps those it has`() async throws {
        var limits = ServerLimits()
        limits.connectionsOfAddress = 2
        try await StubbedServer.with(limits: limits) { server in
            let kept = [try await RawConnection(port: server.port), try await RawConnection(port: server.port)]
            for connection in kept { try await ask(connection) }
            let third = try await RawConnection(port: server.port)
            #expect(try await third.closed() == "")
            for connection in kept { try await ask(connection) }
            #expect(server.server.metrics.text(bodies: 0).contains("\ntidemark_connections_turned_away_total 1\n"))
            // A connection that ends makes room.
            try await kept[0].close()
            #expect(try await eventually { server.server.metrics.openConnections == 1 })
            let fourth = try await RawConnection(port: server.port)
            try await ask(fourth)
            for connection in [kept[1], fourth] { try await connection.close() }
        }
    }

    @Test func `behind a proxy all connections have one address, and are not limited`() async throws {
        var limits = ServerLimits()
        limits.connectionsOfAddress = 1
        try await StubbedServer.with(limits: limits, trustsProxy: true) { server in
            let connections = [try await RawConnection(port: server.port), try await RawConnection(port: server.port)]
            for connection in connections { try await ask(connection) }
            for connection in connections { try await connection.close() }
        }
    }
}
