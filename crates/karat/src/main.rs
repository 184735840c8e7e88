//! The program.

use std::process::ExitCode;

fn main() -> ExitCode {
    karat_cli::main()
}
