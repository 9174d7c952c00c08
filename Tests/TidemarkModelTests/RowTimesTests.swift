import Testing
import TidemarkModel

/// Goal: the text of a row's times gives, for each field, the local time and the cloud's. Method: times and their texts alone.
@Suite(.timeLimit(.minutes(30))) struct RowTimesTests {
    private static let fields = ["caption", "rating"]

    private func time(_ microseconds: Int64, _ device: String = "here") -> EditTime {
        EditTime(microseconds: microseconds, device: device)
    }

    @Test func `a field that was edited here has the local time and the cloud's, and both are read as written`() {
        var times = RowTimes(cloud: EditTimes(otherwise: time(1, "a"), fields: ["rating": time(2, "b")]))
        times.set(time(8), of: "caption")
        times.set(time(9), of: "rating")
        times.set(time(10), of: "caption")
        #expect(times.here["caption"] == time(10) && times.here["rating"] == time(9) && times.here["note"] == time(1, "a"))
        #expect(times.cloud("caption") == time(1, "a") && times.cloud("rating") == time(2, "b"))
        #expect(times.cloud("note") == time(1, "a"))
        #expect(times.description == "1@a;caption=10@here;rating=9@here;caption<1@a;rating<2@b")
        #expect(RowTimes(times.description) == times)
        // The cloud's time is the local time again.
        times.set(time(1, "a"), of: "caption")
        #expect(times.cloud("caption") == time(1, "a"))
        #expect(times.description == "1@a;rating=9@here;rating<2@b")
        times.set(nil, of: "rating")
        #expect(times.description == "1@a;rating=9@here;rating<2@b")
    }

    @Test func `the cloud's time of a field is read even if no other time is known, and invalid text is ignored`() {
        let times = RowTimes(";caption<5@b")
        #expect(times.cloud("caption") == time(5, "b"))
        #expect(times.here == EditTimes())
        for rubbish in ["", ";", ";;", ";<5@b", ";caption", "caption<5@b"] {
            #expect(RowTimes(rubbish) == RowTimes(cloud: EditTimes()), "\(rubbish)")
        }
    }

    @Test func `a record counts as lost if the cloud has none of the fields with times`() {
        let lost = RowTimes.lost(EditTimes(fields: ["caption": time(5)]), fields: Self.fields)
        #expect(lost.isLost(fields: Self.fields) && lost.cloud("caption") == nil)
        #expect(lost.description == ";caption=5@here;caption<")
        #expect(RowTimes(lost.description) == lost)
        // No field has a known time.
        #expect(!RowTimes(cloud: EditTimes()).isLost(fields: Self.fields))
        // The cloud has an earlier version of the field, or another field.
        var edited = RowTimes(cloud: EditTimes(fields: ["caption": time(1, "a")]))
        edited.set(time(5), of: "caption")
        #expect(!edited.isLost(fields: Self.fields))
        var added = RowTimes(cloud: EditTimes(fields: ["rating": time(1, "a")]))
        added.set(time(5), of: "caption")
        #expect(!added.isLost(fields: Self.fields))
    }

    @Test func `a record counts as moved if the time of its move differs from the cloud's`() {
        var times = RowTimes(cloud: EditTimes(otherwise: time(1, "a")))
        times.set(time(5), of: "caption")
        #expect(!times.isMoved)
        times.set(time(6), of: EditTimes.move)
        #expect(times.isMoved && RowTimes(times.description).isMoved)
        #expect(!RowTimes(cloud: times.here).isMoved)
    }

    @Test func `separators in names of devices and fields are not read as times of the cloud`() {
        let received = EditTimes("5@a<b;_zone<=7@b;caption<x=7@b;rating=8@c<d")
        #expect(received == EditTimes(otherwise: time(5, "a<b"), fields: ["rating": time(8, "c<d")]))
        var times = RowTimes(RowTimes(cloud: received).description)
        #expect(times == RowTimes(cloud: received) && !times.isMoved)
        times.set(time(9), of: "rating")
        times.set(time(9, "e=7@f"), of: "caption")
        #expect(RowTimes(times.description) == times)
        #expect(times.cloud("rating") == time(8, "c<d") && times.cloud("caption") == time(5, "a<b"))
    }
}
