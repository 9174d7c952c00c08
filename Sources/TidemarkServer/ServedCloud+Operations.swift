/// All that can be asked for.
extension ServedCloud {
    var operations: [Operation] { [] }
}
