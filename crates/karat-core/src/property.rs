//! The properties that evaluations write and others look up.

macro_rules! properties {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A property of items or of slices that is looked up by name somewhere: the writer and the reader
        /// both have the name from here. Datasets and traces bring further ones.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Property {
            $($(#[$doc])* $variant,)*
        }

        impl Property {
            /// The name in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Property::$variant => $name,)*
                }
            }
        }
    };
}

properties! {
    /// A detector, by the entries that no other one flags.
    Adds = "adds",
    /// Two detectors.
    Agreement = "agreement",
    /// An attack, by its id.
    Attack = "attack",
    /// A call of a load.
    Call = "call",
    /// The category of an entry of a threat corpus.
    Category = "category",
    /// The class of an attack, of a case, or of a failed call.
    Class = "class",
    /// A tool that was called instead of another one.
    Confusion = "confusion",
    /// The defence in front of an agent.
    Defence = "defence",
    /// A detector.
    Detector = "detector",
    /// A detector on the entries of one category.
    DetectorCategory = "detector/category",
    /// The goal of an attacker.
    Goal = "goal",
    /// The kind of a query, or of an item of a load.
    Kind = "kind",
    /// The label of an entry of a threat corpus.
    Label = "label",
    /// The language of an entry of a threat corpus.
    Language = "language",
    /// The model of an agent.
    Model = "model",
    /// The category of attacks that a hard negative resembles.
    Resembles = "resembles",
    /// The server of the right tools.
    Server = "server",
    /// The split of a dataset.
    Split = "split",
    /// The suite of a task.
    Suite = "suite",
    /// The place of the text of an attack.
    Surface = "surface",
    /// One of the tags of a case.
    Tag = "tag",
    /// All tags of a case, in one line.
    Tags = "tags",
    /// The severity from which findings count.
    Tier = "tier",
    /// A tool of a server.
    Tool = "tool",
    /// The number of turns of a task.
    Turns = "turns",
}

impl From<Property> for String {
    fn from(property: Property) -> String {
        property.name().to_owned()
    }
}
