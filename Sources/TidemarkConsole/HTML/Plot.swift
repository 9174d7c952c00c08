import TidemarkModel

/// Small plots, drawn on the server.
enum Plot {
    /// Bars of a series, with a part of each in another colour.
    ///
    /// - Parameters:
    ///   - title: The name of the series.
    ///   - summary: The values in words and numbers, for people who do not see the plot.
    ///   - values: The height of each bar, and of its part.
    static func bars(_ title: String, _ summary: String, _ values: [(value: Double, part: Double)]) -> HTML {
        let most = values.reduce(0.0) { max($0, $1.value) }
        let width = 240.0 / Double(max(values.count, 1))
        let bars = values.enumerated().html { number, bar in
            guard bar.value > 0, most > 0 else { return .none }
            // A bar with a value is visible, however small the value is.
            let height = max(1, bar.value / most * 56)
            let part = bar.part > 0 ? max(1, bar.part / most * 56) : 0
            let (x, wide) = (Self.text(Double(number) * width), Self.text(max(width - 0.5, 0.5)))
            return """
                <rect class="bar" x="\(x)" y="\(Self.text(60 - height))" width="\(wide)" height="\(Self.text(height))"></rect>\
                \(HTML.when(part > 0, "<rect class=\"part\" x=\"\(x)\" y=\"\(Self.text(60 - part))\" width=\"\(wide)\" height=\"\(Self.text(part))\"></rect>"))
                """
        }
        return """
            <figure class="plot"><figcaption>\(title)</figcaption>
            <svg viewBox="0 0 240 60" preserveAspectRatio="none" role="img" aria-label="\(summary)">\
            <line x1="0" y1="59.5" x2="240" y2="59.5"></line>\(bars)</svg>
            <p class="hint">\(summary)</p></figure>
            """
    }

    /// A number with two decimals at the most.
    private static func text(_ number: Double) -> String {
        let hundredths = Int((number * 100).rounded())
        let rest = hundredths % 100
        return rest == 0 ? "\(hundredths / 100)" : "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}
