//! The arguments that are on the command line, including those whose value is the default.

use std::marker::PhantomData;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// Remembers whether any argument of `A` was given, flattened next to `A` itself.
pub(crate) struct Given<A> {
    any: bool,
    of: PhantomData<A>,
}

impl<A> Given<A> {
    /// Returns whether one was given, even if its value is the default.
    pub(crate) fn any(&self) -> bool {
        self.any
    }
}

impl<A: Args> FromArgMatches for Given<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Given<A>, Error> {
        // Not by the group of `A`: clap leaves it empty for a struct that flattens another one.
        let command = A::augment_args(Command::new(""));
        let any = command.get_arguments().any(|argument| {
            matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
        });
        Ok(Given { any, of: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Given::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<A: Args> Args for Given<A> {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
