//! The arguments that are on the command line, also those that have a default.

use std::marker::PhantomData;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// Remembers whether any argument of `A` was given, flattened next to `A` itself. `A` must not flatten
/// anything: clap leaves the group of such a struct empty.
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
        let any = A::group_id().is_some_and(|group| matches.contains_id(group.as_str()));
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
