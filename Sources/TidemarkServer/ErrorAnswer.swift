import Foundation
import TidemarkCloud

/// The JSON of an error that is the answer to a whole request.
enum ErrorAnswer {
    static func body(of error: CloudError, name: String, uuid: String, isExtended: Bool, redirectURL: String?) -> [UInt8] {
        var text = "{\"uuid\":\(quoted(uuid)),\"serverErrorCode\":\(quoted(name)),\"reason\":\(quoted(error.reason))"
        if let retryAfter = error.retryAfter { text += ",\"retryAfter\":\(max(0, retryAfter.components.seconds))" }
        if let redirectURL { text += ",\"redirectURL\":\(quoted(redirectURL))" }
        if isExtended {
            text += ",\"tidemark\":{\"code\":\(quoted(error.code.rawValue))"
            if let denial = error.denial {
                text += ",\"denial\":{\"operation\":\(quoted("\(denial.operation)")),\"rule\":\(quoted("\(denial.rule)"))}"
            }
            text += "}"
        }
        return Array((text + "}").utf8)
    }

    static func quoted(_ text: String) -> String {
        var result = "\""
        for character in text.unicodeScalars {
            switch character {
            case "\"", "\\":
                result += "\\"
                result.unicodeScalars.append(character)
            case _ where character.value < 0x20:
                let digits = String(character.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(character)
            }
        }
        return result + "\""
    }
}
