package import TidemarkCloud
package import TidemarkModel

extension CloudAccount {
    package func write(_ json: inout JSONWriter) {
        json.object {
            $0.member("status", status.rawValue)
            $0.member("userRecordName", userRecordName)
            $0.member("quota", quota)
            $0.member("used", used)
        }
    }

    package init(_ node: JSONNode) throws(CloudError) {
        self.init(
            status: Status(rawValue: try node.required("status").asString()) ?? .couldNotDetermine,
            userRecordName: try node.string("userRecordName"), quota: try node.integer("quota"), used: try node.integer("used"))
    }
}

extension CloudLimits {
    package func write(_ json: inout JSONWriter) {
        json.object {
            $0.member("operationsPerRequest", Int64(operationsPerRequest))
            $0.member("bytesPerRequest", Int64(bytesPerRequest))
            $0.member("bytesPerRecord", Int64(bytesPerRecord))
            $0.member("fieldsPerType", Int64(fieldsPerType))
            $0.member("zones", Int64(zones))
            $0.member("participantsPerShare", Int64(participantsPerShare))
            $0.member("bytesPerAsset", bytesPerAsset)
            $0.member("recordsPerAnswer", Int64(recordsPerAnswer))
            $0.member("bytesPerAssetPiece", Int64(bytesPerAssetPiece))
        }
    }

    package init(_ node: JSONNode) throws(CloudError) {
        self.init()
        func number(_ name: StaticString, _ usual: Int) throws(CloudError) -> Int {
            Int(clamping: try node.integer(name) ?? Int64(usual))
        }
        operationsPerRequest = try number("operationsPerRequest", operationsPerRequest)
        bytesPerRequest = try number("bytesPerRequest", bytesPerRequest)
        bytesPerRecord = try number("bytesPerRecord", bytesPerRecord)
        fieldsPerType = try number("fieldsPerType", fieldsPerType)
        zones = try number("zones", zones)
        participantsPerShare = try number("participantsPerShare", participantsPerShare)
        bytesPerAsset = try node.integer("bytesPerAsset") ?? bytesPerAsset
        recordsPerAnswer = try number("recordsPerAnswer", recordsPerAnswer)
        bytesPerAssetPiece = try number("bytesPerAssetPiece", bytesPerAssetPiece)
    }
}
