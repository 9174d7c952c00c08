import TidemarkModel

/// A value for each store of a container.
struct PerScope<Value> {
    let `private`: Value
    let shared: Value

    subscript(scope: StoreScope) -> Value {
        switch scope {
        case .private: `private`
        case .shared: shared
        }
    }

    /// The values, in the order of the scopes: the private store's first.
    var all: [Value] { [`private`, shared] }

    func map<Other>(_ transform: (Value) throws -> Other) rethrows -> PerScope<Other> {
        PerScope<Other>(private: try transform(`private`), shared: try transform(shared))
    }
}

extension PerScope: Sendable where Value: Sendable {}
