import Foundation
import Tidemark

/// A person who shows places to travellers.
public struct Guide: Record, Identifiable, Equatable {
    public var id = UUID()
    public var name: String

    public init(_ name: String) { self.name = name }
}
