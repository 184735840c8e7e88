//! Documents to install elsewhere: completions, the manual page, JSON Schemas.

use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionsArgs, Document, SchemaArgs};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// Completions for a shell.
pub(crate) fn completions(arguments: &CompletionsArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "karat", &mut script);
    terminal.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Pass)
}

/// The manual page: the program, then each of its commands.
pub(crate) fn man(terminal: &Terminal) -> Result<Exit, Stop> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let man =
            clap_mangen::Man::new(sub.clone().display_name(format!("karat {}", sub.get_name())));
        page.extend_from_slice(
            format!(".SH \"KARAT {}\"\n", sub.get_name().to_uppercase()).as_bytes(),
        );
        man.render_description_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    terminal.print(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Pass)
}

/// The JSON Schema of a document.
pub(crate) fn schema(arguments: &SchemaArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let schema = match arguments.document {
        Document::Report => karat_core::report::report_schema(),
        Document::Check => karat_core::report::check_schema(),
    };
    terminal.print_json(&schema)?;
    Ok(Exit::Pass)
}
