extension RecordTypeSchema {
    /// The record name as its source has it: without the type and a colon before it, where the type has a name field.
    ///
    /// - Complexity: O(1) in records; bytes of the type's name.
    public func shortName(of name: String) -> String {
        nameField == nil ? name : RecordName(type: self.name, name: name).shortName
    }

    /// The record name that a short name stands for: with the type and a colon before it.
    public func qualifiedName(of name: String) -> String { "\(self.name):\(name)" }
}

extension RecordName {
    /// The name without the type and a colon before it: `7` of the record `Order:7`.
    public var shortName: String {
        let (name, type) = (self.name.utf8, self.type.utf8)
        guard name.count > type.count + 1, name.starts(with: type), name.dropFirst(type.count).first == UInt8(ascii: ":") else {
            return self.name
        }
        return String(self.name.utf8.dropFirst(type.count + 1)) ?? self.name
    }

    /// The record in a message: its type, and its name without the type before it.
    package var title: String { "\(type) \(shortName)" }
}
