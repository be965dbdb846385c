//! The one test cluster: real replicas as processes on loopback, in a temporary folder.
//!
//! Replicas are named by their position, from 0. What was started is ended, and the folder is
//! removed, when the [`Cluster`] is dropped; with `KEEP` in the environment the folder stays.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use quorate_client::{Client, Endpoint, Options};
use quorate_proto::v1::{GetStatusResponse, InitClusterRequest, InitMember, PingRequest};

use crate::binaries::Binaries;
use crate::ports;
use crate::process::{Process, Signal, tail};
use crate::wait::until;

/// Keeps the folder of a cluster, with its disks and logs.
pub const KEEP_VARIABLE: &str = "KEEP";

/// For everything that a healthy cluster does within a second or two, on a machine that may be
/// busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// One call that is a look rather than a load.
const CALL: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_secs(1);

/// What cluster to start.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many replicas; 3 unless a test is about the number.
    pub replicas: usize,
    /// Arguments that each replica gets besides its own, such as `--checkpoint-interval-ms 50`.
    pub arguments: Vec<String>,
    /// Whether it is born, or waits for `cluster init`.
    pub born: bool,
    /// Whether the ends of the logs are printed when it is dropped: what a test prints is shown
    /// only if it fails, and the folder is gone by then.
    pub show_logs: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { replicas: 3, arguments: Vec::new(), born: true, show_logs: true }
    }
}

/// A running cluster.
pub struct Cluster {
    // Before the folder, so that no process writes into what is being removed.
    replicas: Vec<Replica>,
    client: Client,
    binaries: Binaries,
    show_logs: bool,
    folder: tempfile::TempDir,
}

struct Replica {
    endpoint: Endpoint,
    http: String,
    data: PathBuf,
    log: PathBuf,
    arguments: Vec<String>,
    process: Option<Process>,
}

/// Where replicas stand that agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// All have applied this much of the log.
    pub applied_index: u64,
    /// Of the state, the same in all.
    pub digest: String,
}

impl Cluster {
    /// Starts it, and returns once it answers (or, unborn, once all replicas do).
    ///
    /// # Errors
    /// A binary is missing, or the cluster does not come up; the message ends with the logs.
    pub async fn start(config: Config) -> Result<Cluster> {
        let binaries = Binaries::find()?;
        // A port may be taken between its reservation and its use: draw again.
        for _ in 0..3 {
            let mut cluster = Cluster::lay_out(&binaries, &config)?;
            match cluster.come_up(&config).await {
                Ok(()) => return Ok(cluster),
                Err(_) if cluster.logs(50).contains("ddress already in use") => {}
                Err(error) => return Err(error.context(cluster.logs(30))),
            }
        }
        bail!("ports that were free when they were drawn were taken three times")
    }

    fn lay_out(binaries: &Binaries, config: &Config) -> Result<Cluster> {
        let mut folder = tempfile::Builder::new().prefix("quorate-cluster-").tempdir()?;
        folder.disable_cleanup(std::env::var_os(KEEP_VARIABLE).is_some());
        let ports = ports::reserve(2 * config.replicas)?;
        let (ports, http_ports) = ports.split_at(config.replicas);
        let endpoints: Vec<Endpoint> = (0..)
            .zip(ports)
            .map(|(i, port)| Endpoint {
                name: format!("quorate-{i}"),
                address: format!("127.0.0.1:{port}"),
            })
            .collect();
        let replicas = endpoints
            .iter()
            .zip(http_ports)
            .map(|(endpoint, port)| {
                Replica::lay_out(folder.path(), endpoint, *port, &endpoints, &config.arguments)
            })
            .collect();
        let client = Client::new(Options::new(endpoints))?;
        let (binaries, show_logs) = (binaries.clone(), config.show_logs);
        Ok(Cluster { replicas, client, binaries, show_logs, folder })
    }

    async fn come_up(&mut self, config: &Config) -> Result<()> {
        for i in 0..self.replicas.len() {
            self.restart(i)?;
        }
        for i in 0..self.replicas.len() {
            self.answering(i).await?;
        }
        if config.born {
            let members = self.replicas.iter().map(|replica| InitMember {
                name: replica.endpoint.name.clone(),
                address: replica.endpoint.address.clone(),
            });
            let request = InitClusterRequest { members: members.collect() };
            self.client.init_cluster(request, PATIENCE).await.context("the birth")?;
            self.ready().await?;
        }
        Ok(())
    }

    /// Its folder, for what else a test needs to put somewhere.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its binaries.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// How many replicas it has, running or not.
    pub fn size(&self) -> usize {
        self.replicas.len()
    }

    /// Where its replicas are.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.replicas.iter().map(|replica| replica.endpoint.clone()).collect()
    }

    /// Where a replica is.
    pub fn endpoint(&self, i: usize) -> &Endpoint {
        &self.replicas[i].endpoint
    }

    /// Address of a replica's HTTP server.
    pub fn http(&self, i: usize) -> &str {
        &self.replicas[i].http
    }

    /// The data folder of a replica.
    pub fn data(&self, i: usize) -> &Path {
        &self.replicas[i].data
    }

    /// The log file of a replica.
    pub fn log(&self, i: usize) -> &Path {
        &self.replicas[i].log
    }

    /// The arguments that a replica was last started with.
    pub fn arguments(&self, i: usize) -> &[String] {
        &self.replicas[i].arguments
    }

    /// A client of all replicas.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A client with connections of its own.
    ///
    /// # Errors
    /// Never in practice: these endpoints made a client before.
    pub fn new_client(&self) -> Result<Client> {
        Ok(Client::new(Options::new(self.endpoints()))?)
    }

    /// What a replica says of itself.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn status(&self, i: usize) -> Result<GetStatusResponse> {
        Ok(self.client.status_of(self.endpoint(i), LOOK).await?)
    }

    /// The replica that leads, once one does.
    ///
    /// # Errors
    /// None does within [`PATIENCE`].
    pub async fn leader(&self) -> Result<usize> {
        until("a leader", PATIENCE, async || {
            // One that was cut off or paused may take itself for the leader of an older term.
            let mut leaders = Vec::new();
            for i in self.running() {
                let Ok(status) = self.status(i).await else { continue };
                if status.role == "leader" {
                    leaders.push((status.term, i));
                }
            }
            leaders.iter().max().map(|(_, i)| *i).ok_or("none leads")
        })
        .await
    }

    /// Returns once writes are possible and every running replica knows a leader.
    ///
    /// # Errors
    /// That is not so within [`PATIENCE`].
    pub async fn ready(&self) -> Result<()> {
        until("a majority", PATIENCE, async || {
            self.client.ping(PingRequest::default(), CALL).await.map(drop)
        })
        .await?;
        for i in self.running() {
            let what = format!("{} to follow", self.endpoint(i).name);
            until(&what, PATIENCE, async || {
                let status = self.status(i).await?;
                let header = status.header.unwrap_or_default();
                ensure!(!header.leader.is_empty(), "it knows no leader");
                ensure!(status.members.len() == self.size(), "it knows {:?}", status.members);
                anyhow::Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Returns once a replica answers at all.
    ///
    /// # Errors
    /// It has ended, or does not answer within [`PATIENCE`].
    pub async fn answering(&mut self, i: usize) -> Result<()> {
        let Replica { endpoint, process, .. } = &mut self.replicas[i];
        let process = process.as_mut().context("it was not started")?;
        let what = format!("{} to answer", endpoint.name);
        let ended = until(&what, PATIENCE, async || {
            if let Some(status) = process.ended()? {
                return Ok(Some(status));
            }
            self.client.status_of(endpoint, LOOK).await?;
            anyhow::Ok(None)
        })
        .await?;
        match ended {
            Some(status) => bail!("{} ended at once: {status}", endpoint.name),
            None => Ok(()),
        }
    }

    /// Waits until all running replicas have applied the same, and compares their digests.
    ///
    /// # Errors
    /// Two digests differ at one index (told at once), or they do not come to one index.
    pub async fn agreement(&self) -> Result<Agreement> {
        let (agreement, differing) =
            until("all replicas to apply the same", PATIENCE, async || {
                let mut all = Vec::new();
                for i in self.running() {
                    let status = self.status(i).await?;
                    all.push(Agreement {
                        applied_index: status.applied_index,
                        digest: status.digest,
                    });
                }
                let first = all.first().context("no replica runs")?;
                let same_index = all.iter().all(|other| other.applied_index == first.applied_index);
                ensure!(same_index, "{all:?}");
                let differing = all.iter().any(|other| other != first).then(|| all.clone());
                Ok((first.clone(), differing))
            })
            .await?;
        match differing {
            Some(all) => bail!("the states differ: {all:?}"),
            None => Ok(agreement),
        }
    }

    /// Ends a replica by SIGKILL.
    ///
    /// # Errors
    /// It does not run.
    pub fn kill(&mut self, i: usize) -> Result<()> {
        self.take(i)?.kill()
    }

    /// Ends a replica by SIGTERM and says how it ended.
    ///
    /// # Errors
    /// It does not run, or does not end.
    pub async fn terminate(&mut self, i: usize) -> Result<ExitStatus> {
        let mut process = self.take(i)?;
        process.signal(Signal::TERM)?;
        process.end(PATIENCE).await
    }

    /// Stops the time of a replica (SIGSTOP).
    ///
    /// # Errors
    /// It does not run.
    pub fn pause(&self, i: usize) -> Result<()> {
        self.process(i)?.signal(Signal::STOP)
    }

    /// Lets a paused replica go on.
    ///
    /// # Errors
    /// It does not run.
    pub fn resume(&self, i: usize) -> Result<()> {
        self.process(i)?.signal(Signal::CONT)
    }

    /// Starts a replica again on its data, after ending it if it runs.
    ///
    /// # Errors
    /// The process could not be started; not whether it stays.
    pub fn restart(&mut self, i: usize) -> Result<()> {
        let binary = self.binaries.server();
        let replica = &mut self.replicas[i];
        replica.process = None;
        let mut command = Command::new(binary);
        command.args(&replica.arguments);
        replica.process = Some(Process::start(command, &replica.log)?);
        Ok(())
    }

    /// Waits for the end of a replica that is expected to refuse, and says how it ended.
    ///
    /// # Errors
    /// It still runs after [`PATIENCE`].
    pub async fn end(&mut self, i: usize) -> Result<ExitStatus> {
        self.take(i)?.end(PATIENCE).await
    }

    /// The replicas that run, paused ones included.
    pub fn running(&self) -> Vec<usize> {
        (0..self.size()).filter(|i| self.replicas[*i].process.is_some()).collect()
    }

    /// The last lines of every replica's log.
    pub fn logs(&self, lines: usize) -> String {
        let log = |replica: &Replica| {
            format!("--- {}\n{}\n", replica.endpoint.name, tail(&replica.log, lines))
        };
        self.replicas.iter().map(log).collect()
    }

    fn process(&self, i: usize) -> Result<&Process> {
        self.replicas[i].process.as_ref().with_context(|| format!("replica {i} does not run"))
    }

    fn take(&mut self, i: usize) -> Result<Process> {
        self.replicas[i].process.take().with_context(|| format!("replica {i} does not run"))
    }
}

impl Replica {
    fn lay_out(
        folder: &Path,
        endpoint: &Endpoint,
        http_port: u16,
        all: &[Endpoint],
        more: &[String],
    ) -> Replica {
        let data = folder.join(&endpoint.name);
        let http = format!("127.0.0.1:{http_port}");
        let mut arguments = vec!["--insecure".to_owned()];
        for (flag, value) in [
            ("--name", endpoint.name.clone()),
            ("--data-dir", data.display().to_string()),
            ("--listen", endpoint.address.clone()),
            ("--http-listen", http.clone()),
        ] {
            arguments.extend([flag.to_owned(), value]);
        }
        for peer in all {
            arguments.extend(["--peer".to_owned(), peer.to_string()]);
        }
        arguments.extend_from_slice(more);
        Replica {
            endpoint: endpoint.clone(),
            http,
            data,
            log: folder.join(format!("{}.log", endpoint.name)),
            arguments,
            process: None,
        }
    }
}

impl Drop for Cluster {
    #[expect(clippy::print_stdout, reason = "a test's output, shown if it fails")]
    fn drop(&mut self) {
        if self.show_logs {
            println!("{}", self.logs(12));
        }
    }
}
