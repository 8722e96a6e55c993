//! The embedded cluster by hand: serve it, or compare it with a real one.

#![allow(clippy::print_stdout, reason = "a command's output")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use cluster::scenario::{self, Storage};
use cluster::script::{self, Entry};
use cluster::simulator::{Settings, Simulator};
use cluster::{Cluster, Options};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// A small embedded Kubernetes API for tests and the demo.
#[derive(Parser)]
#[command(version)]
enum Command {
    /// Run the embedded API until Ctrl-C.
    Serve {
        /// Write a kubeconfig for its clients here.
        #[arg(long)]
        kubeconfig: PathBuf,
        /// The port on loopback; any free one by default.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Simulate a CSI driver of this name, with its sidecars and the controllers around it.
        #[arg(long)]
        driver: Vec<String>,
    },
    /// Run the request script on the embedded API and on a real server, and print what differs.
    Compare {
        /// The real server; it must have the snapshot resources installed.
        #[arg(long, env = "CLUSTER_SCRIPT_KUBECONFIG")]
        kubeconfig: PathBuf,
    },
    /// Play the storage scenarios on the simulator and on real sidecars, and print what differs.
    CompareStorage {
        /// The real server; snapshot-controller, csi-snapshotter and csi-provisioner (both with
        /// `--extra-create-metadata`) work on it.
        #[arg(long, env = "CLUSTER_SCRIPT_KUBECONFIG")]
        kubeconfig: PathBuf,
        /// The control address of the CSI driver behind them.
        #[arg(long)]
        control: SocketAddr,
        /// The driver's name.
        #[arg(long, default_value = "csi.velero-rs.test")]
        driver: String,
        /// Write the real outcomes down for the tests.
        #[arg(long)]
        record: Option<PathBuf>,
    },
    /// Run the request script on a real server and write its answers down for the tests.
    Record {
        /// The real server; it must have the snapshot resources installed.
        #[arg(long, env = "CLUSTER_SCRIPT_KUBECONFIG")]
        kubeconfig: PathBuf,
        /// The file to write.
        #[arg(long)]
        output: PathBuf,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    match Command::parse() {
        Command::Serve { kubeconfig, port, driver } => serve(&kubeconfig, port, &driver).await,
        Command::Compare { kubeconfig } => compare(&kubeconfig).await,
        Command::CompareStorage { kubeconfig, control, driver, record } => {
            compare_storage(&kubeconfig, control, &driver, record.as_deref()).await
        }
        Command::Record { kubeconfig, output } => {
            let entries = real(&kubeconfig).await?;
            write(&output, &entries)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn serve(kubeconfig: &Path, port: u16, drivers: &[String]) -> Result<ExitCode> {
    let cluster = Cluster::start_with(Options { port, ..Options::default() }).await?;
    cluster.kubeconfig(kubeconfig).with_context(|| format!("cannot write {}", kubeconfig.display()))?;
    let names: Vec<&str> = drivers.iter().map(String::as_str).collect();
    let _simulator = Simulator::start(&cluster, Settings::default(), &names);
    println!("{}", cluster.url());
    tokio::signal::ctrl_c().await?;
    Ok(ExitCode::SUCCESS)
}

async fn compare(kubeconfig: &Path) -> Result<ExitCode> {
    let theirs = real(kubeconfig).await?;
    let cluster = Cluster::start().await?;
    let ours = script::run(&client(&cluster)?, "script-embedded").await?;
    Ok(told(&ours, &theirs))
}

async fn compare_storage(
    kubeconfig: &Path,
    control: SocketAddr,
    driver: &str,
    record: Option<&Path>,
) -> Result<ExitCode> {
    let storage = Storage::Real(csi_driver::control::Client::new(control)?);
    let prefix = format!("scenario-{}", std::process::id());
    let theirs = scenario::play(&connect(kubeconfig).await?, &storage, driver, &prefix).await?;
    if let Some(output) = record {
        write(output, &theirs)?;
    }
    let cluster = Cluster::start().await?;
    let simulator = Simulator::start(&cluster, Settings::default(), &[driver]);
    let storage = Storage::Simulated(simulator.driver(driver).clone());
    let ours = scenario::play(&client(&cluster)?, &storage, driver, "scenario").await?;
    Ok(told(&ours, &theirs))
}

/// Prints what differs.
fn told(ours: &[Entry], theirs: &[Entry]) -> ExitCode {
    let differences = script::differences(ours, theirs);
    for (what, pointer, ours, theirs) in &differences {
        println!("{what}: {pointer}\n  embedded: {ours}\n  real:     {theirs}");
    }
    println!("{} answers, {} differences", theirs.len(), differences.len());
    if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write(output: &Path, entries: &[Entry]) -> Result<()> {
    std::fs::write(output, serde_json::to_string_pretty(entries)? + "\n")
        .with_context(|| format!("cannot write {}", output.display()))?;
    println!("{} answers written to {}", entries.len(), output.display());
    Ok(())
}

async fn real(kubeconfig: &Path) -> Result<Vec<Entry>> {
    let namespace = format!("script-{}", std::process::id());
    Ok(script::run(&connect(kubeconfig).await?, &namespace).await?)
}

async fn connect(kubeconfig: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

fn client(cluster: &Cluster) -> Result<Client> {
    Ok(Client::try_from(Config::new(cluster.url().parse()?))?)
}
