//! The arguments on a server that commands of several groups share: the server, the connection, time limits,
//! findings and recordings.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use karat_core::evaluation::Common;
use karat_io::time::Time;
use karat_mcp::Options;

use super::times::{DAY, MILLISECOND, time};

/// The headings of the options on a server. Each option names its own: with `next_help_heading` of a struct, the
/// options after it would get the heading too.
pub(super) const SERVER: &str = "Server";
const LOGIN: &str = "Server login";
const REQUESTS: &str = "Answers to requests of the server";
const ISOLATION: &str = "Server isolation";

/// The server: a command after `--`, a URL, or a name in a config file.
#[derive(Args, Clone, Default)]
pub(crate) struct TargetArgs {
    /// The URL of a running server
    #[arg(help_heading = SERVER, long, value_name = "URL", conflicts_with_all = ["command", "config"])]
    pub(crate) url: Option<String>,
    /// A config file of MCP servers, such as .mcp.json; --server chooses one
    #[arg(help_heading = SERVER, long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) config: Option<PathBuf>,
    /// The name of the server in a config file [default: the usual config files]
    #[arg(help_heading = SERVER, long, value_name = "NAME", conflicts_with_all = ["command", "url"])]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// The command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl TargetArgs {
    /// The options on the connection that were given.
    pub(crate) fn options(&self) -> Vec<&'static str> {
        let ReachArgs {
            transport,
            protocol,
            env,
            headers,
            ca_file,
            cwd,
            login,
            policies,
            isolation,
        } = &self.reach;
        // The other options on the login require --auth.
        let AuthArgs { auth, .. } = login;
        let PolicyArgs { sampling, elicitation, roots } = policies;
        let IsolationArgs { isolate, allow_network, mounts, image, limits } = isolation;
        let options = [
            ("--transport", transport.is_some()),
            ("--protocol", protocol.is_some()),
            ("-e", !env.is_empty()),
            ("--header", !headers.is_empty()),
            ("--ca-file", ca_file.is_some()),
            ("--cwd", cwd.is_some()),
            ("--auth", auth.is_some()),
            ("--sampling", sampling.is_some()),
            ("--elicitation", elicitation.is_some()),
            ("--roots", !roots.is_empty()),
            ("--isolate", isolate.is_some()),
            ("--allow-network", *allow_network),
            ("--mount", !mounts.is_empty()),
            ("--image", image.is_some()),
            ("--limit", !limits.is_empty()),
        ];
        options.into_iter().filter_map(|(option, given)| given.then_some(option)).collect()
    }
}

/// The connection to a server, however it is named.
#[derive(Args, Clone, Default)]
pub(crate) struct ReachArgs {
    /// The transport [default: stdio for a command, streamable HTTP for a URL]
    #[arg(help_heading = SERVER, long, value_name = "KIND")]
    pub(crate) transport: Option<Transport>,
    /// The MCP protocol revision, such as 2025-06-18 [default: negotiated]
    #[arg(help_heading = SERVER, long, value_name = "REVISION")]
    pub(crate) protocol: Option<String>,
    /// An environment variable for the server; repeatable
    #[arg(help_heading = SERVER, short = 'e', long = "env", value_name = "KEY=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header of each request; repeatable. ${VAR} is read from the environment
    #[arg(help_heading = SERVER, long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Additional trusted certificates, in PEM
    #[arg(help_heading = SERVER, long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// The working folder of the server
    #[arg(help_heading = SERVER, long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) login: AuthArgs,
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    #[command(flatten)]
    pub(crate) isolation: IsolationArgs,
}

/// The login at a server that requires one.
#[derive(Args, Clone, Default)]
pub(crate) struct AuthArgs {
    /// The way to get a token if the server requires one
    #[arg(help_heading = LOGIN, long, value_name = "KIND", conflicts_with = "command")]
    pub(crate) auth: Option<Auth>,
    /// The id of a registered client [default: register one]
    #[arg(help_heading = LOGIN, long, value_name = "ID", requires = "auth")]
    pub(crate) client_id: Option<String>,
    /// The secret of the client, as a variable: '${NAME}'
    #[arg(help_heading = LOGIN, long, value_name = "${NAME}", requires = "client_id")]
    pub(crate) client_secret: Option<String>,
    /// A file with the private key of the client (PKCS#8 in PEM) instead of a secret
    #[arg(help_heading = LOGIN, long, value_name = "FILE", requires = "client_id", conflicts_with = "client_secret")]
    pub(crate) private_key: Option<PathBuf>,
    /// The https URL of a client ID metadata document, if the authorisation server supports them
    #[arg(help_heading = LOGIN, long, value_name = "URL", requires = "auth")]
    pub(crate) client_metadata: Option<String>,
    /// A scope to request; repeatable [default: the scopes that the server names]
    #[arg(help_heading = LOGIN, long = "scope", value_name = "SCOPE", requires = "auth")]
    pub(crate) scopes: Vec<String>,
    /// The only authorisation server to accept
    #[arg(help_heading = LOGIN, long, value_name = "URL", requires = "auth")]
    pub(crate) issuer: Option<String>,
    /// The token for --auth token, as a variable: '${NAME}'; `-` reads a line from stdin
    #[arg(help_heading = LOGIN, long, value_name = "${NAME}", requires = "auth")]
    pub(crate) access_token: Option<String>,
    /// A refresh token for --auth token, as a variable: '${NAME}'
    #[arg(help_heading = LOGIN, long, value_name = "${NAME}", requires = "access_token")]
    pub(crate) refresh_token: Option<String>,
    /// The port of the redirect for --auth browser [default: a free one]
    #[arg(help_heading = LOGIN, long, value_name = "PORT", requires = "auth")]
    pub(crate) redirect_port: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Auth {
    /// As a client with a secret or a private key
    ClientCredentials,
    /// As a person with a browser on this machine; the URL is printed
    Browser,
    /// As a person with a browser on any machine; the URL and a code are printed
    Device,
    /// With an existing token
    Token,
}

/// Answers to requests of the server, which are refused by default.
#[derive(Args, Clone, Default)]
pub(crate) struct PolicyArgs {
    /// Answer sampling requests with this text [default: refuse]
    #[arg(help_heading = REQUESTS, long, value_name = "TEXT")]
    pub(crate) sampling: Option<String>,
    /// Answer elicitation forms: decline, cancel, defaults, refuse, or a JSON object to fill in [default:
    /// refuse]
    #[arg(help_heading = REQUESTS, long, value_name = "ANSWER")]
    pub(crate) elicitation: Option<String>,
    /// A folder to list as a root; repeatable [default: refuse requests for roots]
    #[arg(help_heading = REQUESTS, long, value_name = "DIR")]
    pub(crate) roots: Vec<String>,
}

/// The isolation of the server.
#[derive(Args, Clone, Default)]
pub(crate) struct IsolationArgs {
    /// Sandbox the server: no network, no access to your home, limited resources
    #[arg(help_heading = ISOLATION, long, value_name = "ENGINE")]
    pub(crate) isolate: Option<Isolate>,
    /// Allow the isolated server to use the network
    #[arg(help_heading = ISOLATION, long)]
    pub(crate) allow_network: bool,
    /// A path that the isolated server may read, or write with :rw; repeatable
    #[arg(help_heading = ISOLATION, long = "mount", value_name = "PATH[:rw]")]
    pub(crate) mounts: Vec<String>,
    /// The image for --isolate docker; it must already exist locally
    #[arg(help_heading = ISOLATION, long, value_name = "NAME")]
    pub(crate) image: Option<String>,
    /// A limit of the isolated server: memory=512m, processes=64, cpu=60 (seconds), file=100m, cpus=2;
    /// repeatable
    #[arg(help_heading = ISOLATION, long = "limit", value_name = "WHAT=AMOUNT", value_delimiter = ',')]
    pub(crate) limits: Vec<String>,
}

/// The time limits of a session. Their defaults differ, and a generic struct cannot have different ones: clap keeps
/// the default in a static, which all instances share.
macro_rules! time_args {
    ($($name:ident: $default:literal,)*) => {$(
        #[derive(Args, Clone)]
        pub(crate) struct $name {
            /// The time limit for a call
            #[arg(long, value_name = "TIME", default_value = $default, value_parser = time(MILLISECOND, DAY))]
            pub(crate) timeout: Time,
            /// The time limit for the server to start
            #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time(MILLISECOND, DAY))]
            pub(crate) start_timeout: Time,
        }

        impl $name {
            pub(crate) fn limits(&self) -> TimeLimits {
                TimeLimits { call: self.timeout, start: self.start_timeout }
            }
        }
    )*};
}

time_args! {
    ScanTimes: "5s",
    DraftTimes: "10s",
    ProbeTimes: "15s",
    CallTimes: "30s",
}

/// The time limits of a session, wherever their defaults are from.
pub(crate) struct TimeLimits {
    call: Time,
    start: Time,
}

impl TimeLimits {
    /// The settings of an entry.
    pub(crate) fn common(&self, name: &str) -> Common {
        Common {
            timeout_ms: self.call.as_millis(),
            start_timeout_ms: self.start.as_millis(),
            ..Common::named(name)
        }
    }

    /// The options of a session.
    pub(crate) fn options(&self) -> Options {
        Options { call_timeout: self.call.0, start_timeout: self.start.0, ..Options::default() }
    }
}

/// The findings that count, and where they are written.
#[derive(Args)]
pub(crate) struct FindingArgs {
    /// Skip this rule; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// The minimum severity of a finding that fails (exit code 1)
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    pub(crate) fail_on: FailOn,
    /// List the rules and exit
    #[arg(long)]
    pub(crate) rules: bool,
    /// Write the findings as SARIF 2.1.0 to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
}

/// The recording of the sessions.
#[derive(Args, Clone, Default)]
pub(crate) struct RecordArgs {
    /// Write every message to this file as JSON lines; replay it with karat demo-server --replay
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Isolate {
    /// No isolation
    None,
    /// bubblewrap, with the programs of this machine
    Bwrap,
    /// A container of a local image
    Docker,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// A child process
    Stdio,
    /// Streamable HTTP
    Http,
    /// HTTP with server-sent events, revision 2024-11-05
    Sse,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Note,
    Warning,
    Error,
    Never,
}
