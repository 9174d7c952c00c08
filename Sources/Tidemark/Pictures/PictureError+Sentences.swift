import TidemarkModel

extension PictureError.Code {
    /// The kind of failure as a sentence; `nil` in English, where the message says more, and for a code without one.
    func sentence(in language: ErrorLanguage) -> String? {
        switch language {
        case .english: nil
        case .german: Self.german[self]
        }
    }

    /// The remedy; `nil` if none is known.
    func remedy(in language: ErrorLanguage) -> String? {
        switch language {
        case .english: Self.englishRemedies[self]
        case .german: Self.germanRemedies[self]
        }
    }

    /// The sentences of all codes except `options`, which is for programmers: its message is more useful to them.
    static let german: [PictureError.Code: String] = [
        .unreadable: "Das Bild kann nicht gelesen werden.",
        .unsupported: "Diese Art von Bild kann nicht verkleinert werden.",
        .damaged: "Das Bild ist beschädigt oder unvollständig.",
        .tooLarge: "Das Bild ist zu groß.",
        .outOfMemory: "Der Arbeitsspeicher reicht für das Bild nicht aus.",
    ]

    static let englishRemedies: [PictureError.Code: String] = [
        .unsupported: "Save the picture as a JPEG or PNG, or store it as it is.",
        .damaged: "Fetch the picture again from where it came.",
        .tooLarge: "Make the picture smaller with another program, or store it as it is.",
        .outOfMemory: "Close other programs, then try again.",
    ]

    static let germanRemedies: [PictureError.Code: String] = [
        .unsupported: "Das Bild als JPEG oder PNG speichern, oder es unverändert übernehmen.",
        .damaged: "Das Bild noch einmal von seiner Quelle holen.",
        .tooLarge: "Das Bild mit einem anderen Programm verkleinern, oder es unverändert übernehmen.",
        .outOfMemory: "Andere Programme schließen, dann erneut versuchen.",
    ]
}
