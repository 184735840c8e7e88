//! Documents to install elsewhere: completions and the manual page.

use clap::{Command, CommandFactory as _};

use crate::cli::{Cli, CompletionsArgs};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Completions for a shell.
pub(crate) fn completions(arguments: &CompletionsArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "karat", &mut script);
    terminal.print_bytes(&script)?;
    Ok(Exit::Pass)
}

/// The manual page: the program, then each of its commands.
pub(crate) fn man(terminal: &Terminal) -> Result<Exit, Stop> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    // Hidden commands are earlier spellings.
    let shown = |sub: &&Command| sub.get_name() != "help" && !sub.is_hide_set();
    for sub in command.get_subcommands().filter(shown) {
        let man =
            clap_mangen::Man::new(sub.clone().display_name(format!("karat {}", sub.get_name())));
        page.extend_from_slice(
            format!(".SH \"KARAT {}\"\n", sub.get_name().to_uppercase()).as_bytes(),
        );
        man.render_description_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    terminal.print_bytes(&page)?;
    Ok(Exit::Pass)
}
