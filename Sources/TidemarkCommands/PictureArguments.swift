import ArgumentParser
import TidemarkModel

/// The options of `import` that scale pictures.
struct PictureArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Scales JPEG and PNG pictures down to this many pixels at their longest edge, and turns them upright. Never enlarges.",
            valueName: "number"))
    var maxPixels: Int?

    @Option(
        help: ArgumentHelp("The quality of JPEG pictures, 1 to 100. (default: 80, if pictures are scaled)", valueName: "number"))
    var quality: Int?

    @Option(
        help: ArgumentHelp(
            "Makes thumbnails with this many pixels at their longest edge, in a field beside each picture's: imageThumbnail for image.",
            valueName: "number"))
    var thumbnails: Int?

    @Flag(
        help:
            "Keeps the place where a photo was taken in scaled pictures. Without it, they keep only time and colours; the field position of photos has the place."
    )
    var keepLocation = false

    func validate() throws {
        for (name, size) in [("--max-pixels", maxPixels), ("--thumbnails", thumbnails)] {
            guard let size, !PictureOptions.pixelSizes.contains(size) else { continue }
            throw ValidationError("\(name) takes a number from 1 to 65,500")
        }
        if let quality, !(1...100).contains(quality) { throw ValidationError("--quality takes a number from 1 to 100") }
        if keepLocation, maxPixels == nil, quality == nil {
            throw ValidationError("--keep-location needs --max-pixels or --quality; without them pictures stay as they are")
        }
    }

    /// The options in the import's form; `nil` if pictures are stored as they are.
    var options: PictureOptions? {
        guard maxPixels != nil || quality != nil || thumbnails != nil else { return nil }
        return PictureOptions(
            maxPixelSize: maxPixels, quality: quality.map { Double($0) / 100 }, thumbnailPixelSize: thumbnails,
            keepsLocation: keepLocation)
    }

    /// The sentence on the scaled pictures.
    static func text(_ counts: PictureCounts, isDryRun: Bool) -> String {
        let would = isDryRun ? "would be " : ""
        var parts: [String] = []
        if counts.scaled > 0 {
            parts.append(
                "\(Wording.count(counts.scaled)) \(would)scaled (\(Wording.bytes(counts.bytesBefore)) before, "
                    + "\(Wording.bytes(counts.bytesAfter)) after)")
        }
        if counts.untouched > 0 { parts.append("\(Wording.count(counts.untouched)) \(would)stored as they are") }
        if counts.thumbnails > 0 {
            parts.append("\(Wording.count(counts.thumbnails, "thumbnail")) (\(Wording.bytes(counts.thumbnailBytes)))")
        }
        return "Pictures: \(parts.isEmpty ? "none" : parts.joined(separator: ", "))."
    }
}
