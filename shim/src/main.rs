//! `quorate`: one run for one verb.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use quorate_shim::cni::{Env, Failure, output};
use quorate_shim::{about, verbs};

fn main() -> ExitCode {
    let started = Instant::now();
    if let Some(text) = about::asked(std::env::args_os().skip(1)) {
        return exit(output::text(&text), ExitCode::SUCCESS);
    }
    output::report_panics();
    let env = match Env::read(|name| std::env::var_os(name)) {
        Ok(Some(env)) => env,
        Ok(None) => {
            let told = io::stderr().write_all(about::help().as_bytes());
            return exit(told, ExitCode::SUCCESS);
        }
        Err(error) => return fail(&error.into()),
    };
    match verbs::run(env, started) {
        Ok(Some(document)) => exit(output::result(&document), ExitCode::SUCCESS),
        Ok(None) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    exit(output::failure(failure), ExitCode::FAILURE)
}

/// Whoever closed the pipe gets no document, but still an exit code.
fn exit(written: io::Result<()>, code: ExitCode) -> ExitCode {
    if written.is_ok() { code } else { ExitCode::FAILURE }
}
