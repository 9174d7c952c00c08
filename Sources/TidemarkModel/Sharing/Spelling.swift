import Foundation

extension String {
    /// The same text in the normal form C of Unicode. In this form, texts that are equal in Swift have the same bytes.
    package var composed: String { utf8.allSatisfy { $0 < 0x80 } ? self : precomposedStringWithCanonicalMapping }

    /// Whether the text is in the normal form C of Unicode.
    package var isComposed: Bool {
        utf8.allSatisfy { $0 < 0x80 } || utf8.elementsEqual(precomposedStringWithCanonicalMapping.utf8)
    }
}
