//! `quorate-jepsen`: loads on the real binaries, on one machine. See the library for what it
//! is made of.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use quorate_jepsen::burst::Plan;
use quorate_jepsen::{bench, burst};
use serde::Serialize;

/// Drives real Quorate replicas and plugins on this machine.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    load: Load,
    /// How the result is printed.
    #[arg(short, long, global = true, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Subcommand)]
enum Load {
    /// Many pods at once, up and then down, through the plugin binary, beside host-local.
    ///
    /// Exits with 1 unless no call failed, no address was given twice, and none is left.
    Burst {
        /// Pods, each with one ADD and one DEL.
        #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=50_000))]
        adds: u32,
        /// Plugin processes at a time.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        concurrency: u32,
        /// Nodes that the pods are spread over.
        #[arg(long, default_value_t = 70, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        nodes: u32,
    },
    /// fdatasync of a bare loop, one allocation after another, and many at once.
    Bench {
        /// For each step.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
        seconds: u64,
        /// Numbers of clients, a step for each.
        #[arg(long, value_delimiter = ',', default_value = "1,64,256")]
        clients: Vec<usize>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Table,
    Json,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    match arguments.load {
        Load::Burst { adds, concurrency, nodes } => {
            let plan = Plan {
                adds: adds as usize,
                concurrency: concurrency as usize,
                nodes: nodes as usize,
            };
            let report = burst::run(plan).await?;
            print(arguments.output, &report, &report.table())?;
            Ok(if report.quorate.clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Load::Bench { seconds, clients } => {
            ensure!(clients.iter().all(|n| (1..=4_096).contains(n)), "1 to 4096 clients");
            let report = bench::run(Duration::from_secs(seconds), &clients).await?;
            print(arguments.output, &report, &report.table())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn print(output: Output, report: &impl Serialize, table: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match output {
        Output::Table => write!(stdout, "{table}")?,
        Output::Json => writeln!(stdout, "{}", serde_json::to_string_pretty(report)?)?,
    }
    Ok(())
}
