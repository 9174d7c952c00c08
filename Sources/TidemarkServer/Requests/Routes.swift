import HTTPTypes
import TidemarkModel

/// Finds the operation of a path.
struct Routes: Sendable {
    /// The result of matching a path.
    enum Match {
        case operation(Int, Parameters)
        /// The path has operations for other methods.
        case otherMethods([HTTPRequest.Method])
        /// A part of the path is not allowed.
        case refused(String)
        case none
    }

    /// The parameters of a path.
    struct Parameters {
        var container = ""
        var environment = StoreEnvironment.development
        var scope: DatabaseScope?
        var others: [String: String] = [:]
    }

    private struct Node: Sendable {
        var literals: [(name: [UInt8], node: Int)] = []
        var parameter: (name: String, node: Int)?
        var operations: [(method: HTTPRequest.Method, index: Int)] = []
    }

    private var nodes = [Node()]

    init(_ operations: [Operation]) {
        for (index, operation) in operations.enumerated() {
            var at = 0
            for piece in operation.path.split(separator: "/") { at = node(of: piece, at) }
            nodes[at].operations.append((operation.method, index))
        }
    }

    private mutating func node(of piece: Substring, _ at: Int) -> Int {
        if piece.hasPrefix("{") {
            if let known = nodes[at].parameter {
                // A parameter has the same name in all paths in which it has the same place.
                precondition(known.name == piece.dropFirst().dropLast(), "two names for a parameter of a path: \(piece)")
                return known.node
            }
            nodes.append(Node())
            nodes[at].parameter = (String(piece.dropFirst().dropLast()), nodes.count - 1)
        } else {
            if let known = nodes[at].literals.first(where: { $0.name.elementsEqual(piece.utf8) }) { return known.node }
            nodes.append(Node())
            nodes[at].literals.append((Array(piece.utf8), nodes.count - 1))
        }
        return nodes.count - 1
    }

    /// - Parameter path: The path as it was received, without its query.
    func match(_ path: Substring, _ method: HTTPRequest.Method) -> Match {
        guard path.utf8.first == UInt8(ascii: "/") else { return .none }
        var at = 0
        var found: [(name: String, piece: Substring)] = []
        let pieces = path.dropFirst().utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for piece in path == "/" ? [] : pieces {
            if let literal = nodes[at].literals.first(where: { $0.name.elementsEqual(piece) }) {
                at = literal.node
            } else if let parameter = nodes[at].parameter {
                found.append((parameter.name, Substring(piece)))
                at = parameter.node
            } else {
                return .none
            }
        }
        let operations = nodes[at].operations
        guard !operations.isEmpty else { return .none }
        guard let index = Self.index(of: method, in: operations) else {
            var methods = operations.map(\.method)
            if methods.contains(.get), !methods.contains(.head) { methods.append(.head) }
            return .otherMethods(methods + [.options])
        }
        var parameters = Parameters()
        for (name, piece) in found {
            guard let text = Self.text(piece) else { return .refused("the address has a part that can't be") }
            switch name {
            case "container": parameters.container = text
            case "environment":
                guard let environment = StoreEnvironment(rawValue: text) else {
                    return .refused("the environment is either development or production")
                }
                parameters.environment = environment
            case "database":
                guard let scope = DatabaseScope.allCases.first(where: { $0.name == text }) else {
                    return .refused("the database is one of public, private, shared")
                }
                parameters.scope = scope
            default: parameters.others[name] = text
            }
        }
        return .operation(index, parameters)
    }

    private static func index(
        of method: HTTPRequest.Method, in operations: [(method: HTTPRequest.Method, index: Int)]
    ) -> Int? {
        if let operation = operations.first(where: { $0.method == method }) { return operation.index }
        // A HEAD request gets the headers of the GET request.
        return method == .head ? operations.first { $0.method == .get }?.index : nil
    }

    /// Decodes a part of a path; `nil` for a text that could have a meaning in a file system.
    private static func text(_ piece: Substring) -> String? {
        guard let text = PercentCoding.decoded(piece), (1...1_024).contains(text.utf8.count), text != ".", text != "..",
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "/") && $0 != 0x7f })
        else { return nil }
        return text
    }
}
