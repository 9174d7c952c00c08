import Testing
import TidemarkModel

/// Goal: the names of field types can be written and read again. Method: every type.
@Suite(.timeLimit(.minutes(30))) struct FieldTypeTests {
    @Test(arguments: FieldType.Scalar.allCases)
    func `every type's name reads back as the type`(scalar: FieldType.Scalar) {
        for type in [FieldType(scalar), .list(of: scalar)] { #expect(FieldType(type.description) == type) }
    }

    @Test(arguments: ["", "String", "list<>", "list<list<string>>", "list<string", "text"])
    func `other text is not a type's name`(name: String) {
        #expect(FieldType(name) == nil)
    }
}

/// Goal: times are written in the form of RFC 3339. Method: known times.
@Suite(.timeLimit(.minutes(30))) struct TimestampTests {
    @Test(arguments: [
        (0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59.999999Z"), (951_782_400_000_000, "2000-02-29T00:00:00Z"),
        (1_714_566_600_123_000, "2024-05-01T12:30:00.123Z"), (1_714_566_600_123_456, "2024-05-01T12:30:00.123456Z"),
        (253_402_300_799_000_000, "9999-12-31T23:59:59Z"), (-62_167_219_200_000_000, "0000-01-01T00:00:00Z"),
    ])
    func `a time is written with as many decimals as it needs`(microseconds: Int64, text: String) {
        #expect(Timestamp.text(microseconds: microseconds) == text)
    }
}
