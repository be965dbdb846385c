//! The verbs, each top to bottom in a file of its own, and what they share: one invocation, with
//! one budget.

mod add;
mod check;
mod del;
mod gc;
mod sight;
mod status;
mod version;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::attachment::Attachment;
use crate::cni::{Code, Env, Failure, Verb};
use crate::config::Network;
use crate::statedir::{self, StateDir};
use crate::{kernel, log, node, stdin};

/// Budgets where nobody says otherwise (DESIGN 5.3); of GC and STATUS they are fixed.
const ADD_BUDGET: Duration = Duration::from_secs(10);
const DEL_BUDGET: Duration = Duration::from_secs(5);
const CHECK_BUDGET: Duration = Duration::from_secs(5);
const GC_BUDGET: Duration = Duration::from_secs(10);
const STATUS_BUDGET: Duration = Duration::from_secs(1);
/// What is kept of a budget for durable writes after the last call.
const RESERVE: Duration = Duration::from_millis(300);

/// One run of the plugin.
#[derive(Debug)]
pub struct Invocation {
    /// When the process began.
    pub started: Instant,
    /// Boot time then, in nanoseconds: the time of the invocation's stamp.
    pub boot_ns: u64,
    /// What the runtime says.
    pub env: Env,
    /// What the operator says.
    pub network: Network,
}

impl Invocation {
    /// The attachment that the environment names, without its node.
    pub fn attachment(&self) -> Attachment {
        Attachment {
            network: self.network.name.clone(),
            container_id: self.env.container_id.clone(),
            ifname: self.env.ifname.clone(),
            ..Attachment::default()
        }
    }

    fn node_file(&self) -> PathBuf {
        self.network.node_file.clone().unwrap_or_else(|| Path::new(node::DEFAULT).to_owned())
    }

    /// Where to spool when the node file cannot be read.
    fn fallback_dir(&self) -> StateDir {
        let path = self.network.fallback_state_dir.clone();
        StateDir::new(path.unwrap_or_else(|| PathBuf::from(statedir::DEFAULT)))
    }

    /// When calls must have ended, so that there is time left to write what came of them.
    pub(crate) fn deadline(&self, budget: Duration) -> Instant {
        self.started + budget - RESERVE.min(budget / 5)
    }
}

/// Carries out the verb. `Ok(None)` prints nothing.
///
/// # Errors
/// What stdout is to say.
pub fn run(env: Env, started: Instant) -> Result<Option<Value>, Failure> {
    let boot_ns = kernel::boot_ns();
    let verb = env.verb;
    if verb == Verb::Version {
        // Whatever is on stdin, the question can be answered.
        return Ok(Some(version::document(&stdin::read(STATUS_BUDGET).unwrap_or_default())));
    }
    let within = match verb {
        Verb::Add | Verb::Gc | Verb::Version => ADD_BUDGET,
        Verb::Del | Verb::Check => DEL_BUDGET,
        Verb::Status => STATUS_BUDGET,
    };
    let network = Network::parse(verb, &stdin::read(within / 2)?)?;
    log::open(&network);
    let mut invocation = Invocation { started, boot_ns, env, network };
    // Many runs share a log file: each line says whose it is.
    let env = &invocation.env;
    let (container, ifname) = (&env.container_id, &env.ifname);
    let run = tracing::error_span!("run", verb = verb.as_str(), container, ifname).entered();
    log::warnings(&mut invocation.network);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::TryAgain, format!("no runtime: {error}")))?;
    let outcome = runtime.block_on(async {
        match verb {
            Verb::Add => add::run(&mut invocation).await.map(Some),
            Verb::Del => {
                del::run(&mut invocation).await;
                Ok(None)
            }
            Verb::Check => check::run(&mut invocation).await.map(|()| None),
            Verb::Gc => gc::run(&mut invocation).await.map(|()| None),
            Verb::Status => status::run(&invocation).await.map(|()| None),
            Verb::Version => Ok(None),
        }
    });
    // What a resolver may still be doing is not waited for.
    runtime.shutdown_background();
    drop(run);
    outcome
}
