//! The arguments of `karat init`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args)]
#[command(
    after_help = "Without --for, asks on the terminal. Never changes existing files: writes either \
                        all files or none."
)]
pub(crate) struct InitArgs {
    /// The folder of the new project
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// The kind of project
    #[arg(long = "for", value_name = "USER")]
    pub(crate) user: Option<User>,
    /// The CI system; repeatable, or separated by commas [default: github]
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) ci: Vec<Ci>,
    /// The repository from which CI clones Karat: https://…, ssh://… or git@HOST:PATH, with #REF for a tag,
    /// branch or commit [default: the source of this installation]
    #[arg(long, value_name = "URL[#REF]")]
    pub(crate) karat_from: Option<String>,
    /// The URL of your server or search [default: the built-in one]
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// An environment variable for the command; repeatable. Secrets are refused: write KEY='${NAME}'
    #[arg(short = 'e', long = "env", value_name = "KEY=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// A header of each request to the URL; repeatable. Secrets are refused: write 'NAME: ${NAME}'
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// The working folder of the server; karat.toml gets its path from the project
    #[arg(long, value_name = "DIR", requires = "command")]
    pub(crate) cwd: Option<PathBuf>,
    /// The command that starts your server, search or scanner [default: the built-in one]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum User {
    /// An MCP server
    Server,
    /// A proxy or gateway with tool search
    Proxy,
    /// A scanner of tool definitions
    Scanner,
    /// An agent that calls tools
    Agent,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Ci {
    /// A GitHub Actions workflow
    Github,
    /// A GitLab CI job
    Gitlab,
    /// A pre-commit hook
    PreCommit,
    /// None
    None,
}
