package import TidemarkCloud
package import TidemarkModel

/// An environment of a container that can't be read now. A person's page names it and shows the others.
package struct UnreadContainer: Sendable {
    /// What was to be read.
    package enum Part: String, Sendable {
        /// The shares of the person, and those in which the person takes part.
        case shares
        /// Whether the person has stored something there.
        case usage
    }

    package let container: String
    package let environment: StoreEnvironment
    package let part: Part
    /// Why, for the server's log: the reason may name hosts and files.
    package let error: CloudError

    /// The container and the environment, for people.
    package var place: String { "\(container) (\(environment.rawValue))" }
}
