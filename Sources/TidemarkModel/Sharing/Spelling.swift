import Foundation

extension String {
    /// The same text in the normal form C of Unicode: texts that are equal in Swift have the same bytes then.
    package var composed: String { utf8.allSatisfy { $0 < 0x80 } ? self : precomposedStringWithCanonicalMapping }

    /// Whether it is in that form.
    package var isComposed: Bool {
        utf8.allSatisfy { $0 < 0x80 } || utf8.elementsEqual(precomposedStringWithCanonicalMapping.utf8)
    }
}
