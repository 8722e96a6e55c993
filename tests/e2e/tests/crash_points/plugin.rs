//! The plugin's process, which can be killed, and after whose death calls may go on failing.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process};
use tonic::transport::Channel;
use velero_host::session::{Ended, Launch, LineSink, Processes, Running, Start};
use velero_plugin::client::StartError;

use crate::fault::After;

/// Starts processes of the plugin, one at a time.
pub(crate) struct Plugin {
    processes: Processes,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    living: Mutex<Option<u32>>,
    killed: AtomicBool,
    all_fail: AtomicBool,
}

impl Plugin {
    pub(crate) fn new(launch: Launch) -> Arc<Self> {
        Arc::new(Self { processes: Processes(launch), shared: Arc::default() })
    }

    /// Kills the process that runs.
    pub(crate) fn kill(&self, after: After) {
        self.shared.all_fail.store(after == After::AllFail, Ordering::SeqCst);
        self.shared.killed.store(true, Ordering::SeqCst);
        let id = self.shared.living.lock().unwrap().expect("a process runs");
        let id = Pid::from_raw(id.cast_signed()).expect("a process id");
        kill_process(id, Signal::KILL).expect("it is a child of this process");
    }
}

#[async_trait]
impl Start for Plugin {
    async fn start(&self, command: &str, sink: LineSink) -> Result<Box<dyn Running>, StartError> {
        let process = self.processes.start(command, sink).await?;
        *self.shared.living.lock().unwrap() = process.id();
        self.shared.killed.store(false, Ordering::SeqCst);
        Ok(Box::new(Mortal { process, shared: Arc::clone(&self.shared) }))
    }
}

struct Mortal {
    process: Box<dyn Running>,
    shared: Arc<Shared>,
}

#[async_trait]
impl Running for Mortal {
    fn channel(&self) -> Channel {
        self.process.channel()
    }

    fn id(&self) -> Option<u32> {
        self.process.id()
    }

    fn started_in(&self) -> Duration {
        self.process.started_in()
    }

    /// A host that looks too early takes the dead for living. Whether it does is chosen, and not left to chance.
    fn exited(&mut self) -> Option<ExitStatus> {
        let killed = self.shared.killed.load(Ordering::SeqCst);
        if killed && self.shared.all_fail.load(Ordering::SeqCst) {
            return None;
        }
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let status = self.process.exited();
            if status.is_some() || !killed || Instant::now() >= end {
                return status;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    async fn stop(self: Box<Self>) -> Ended {
        self.process.stop().await
    }
}
