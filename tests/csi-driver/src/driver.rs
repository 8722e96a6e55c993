//! One call from its arrival to its answer: faults, effect, log.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use orders::live::Orders;
use orders::{Log, Numbered};
use tonic::{Code, Response, Status};

use crate::call_log::{CallEnd, CallRecord};
use crate::fault::{Answer, Cut, Fault, InvalidFault, Verdict};
use crate::state::{Aliases, Change, Context, Parameters, Place, Refusal, State};
use crate::store::{Store, StoreError};

/// What a driver is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// The name in storage and snapshot classes.
    pub name: String,
    /// The node's name in Kubernetes.
    pub node_id: String,
    /// The size of the storage in bytes.
    pub pool_bytes: i64,
}

/// The driver behind all its services.
#[derive(Debug)]
pub struct Driver {
    config: Config,
    disk: Mutex<Disk>,
    faults: Orders<Fault>,
    log: Mutex<Log<CallRecord>>,
}

#[derive(Debug)]
struct Disk {
    store: Store,
    state: State,
}

/// A call as it arrives.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// The method without its service.
    pub method: &'static str,
    /// The name or id of the object.
    pub names: Vec<String>,
    /// The ids of the volumes that it is about beside the object.
    pub volumes: Vec<String>,
    /// The parameters in the request.
    pub parameters: Parameters,
    /// The keys of the secrets in the request.
    pub secrets: Vec<String>,
}

/// Why an effect failed without a fault being ordered.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// A rule of the protocol forbids it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The state directory can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        let code = match &error {
            CallError::Refused(refusal) => refusal.code(),
            CallError::Store(_) => Code::Internal,
        };
        Self::new(code, error.to_string())
    }
}

impl Driver {
    /// A driver over a state directory.
    ///
    /// # Errors
    ///
    /// When the directory can't be used.
    pub fn open(config: Config, state_dir: impl Into<PathBuf>) -> Result<Arc<Self>, StoreError> {
        let (store, state) = Store::open(state_dir)?;
        Ok(Arc::new(Self {
            config,
            disk: Mutex::new(Disk { store, state }),
            faults: Orders::default(),
            log: Mutex::default(),
        }))
    }

    /// What it was told at its start.
    pub fn config(&self) -> &Config {
        &self.config
    }

    // === Calls ===

    /// Serves one call: waits and fails as ordered, else does `effect` and answers with its outcome.
    ///
    /// The effect runs to its end even when the caller goes away; before it, a caller that goes away prevents it.
    ///
    /// # Errors
    ///
    /// The ordered failure, or the status of the [`CallError`].
    pub async fn serve<T: Send + 'static>(
        self: &Arc<Self>,
        call: Call,
        effect: impl FnOnce(&Self, &Verdict) -> Result<T, CallError> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let aliases = self.aliases(&call);
        let verdict = Verdict::of(&self.faults.hit(|fault| fault.selects(call.method, &aliases)));
        let mut running = Running::begin(self, call, aliases, &verdict);
        let result = self.run(effect, verdict, &mut running.effect).await;
        running.finish(result.as_ref().err());
        result.map(Response::new)
    }

    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        effect: impl FnOnce(&Self, &Verdict) -> Result<T, CallError> + Send + 'static,
        verdict: Verdict,
        done: &mut bool,
    ) -> Result<T, Status> {
        tokio::time::sleep(verdict.latency).await;
        self.fail(&verdict, Cut::BeforeEffect).await?;
        let driver = Arc::clone(self);
        let (reply, verdict) = tokio::task::spawn_blocking(move || (effect(&driver, &verdict), verdict))
            .await
            .map_err(|error| Status::internal(format!("call ended by a panic: {error}")))?;
        let reply = reply?;
        *done = true;
        self.fail(&verdict, Cut::AfterEffect).await?;
        Ok(reply)
    }

    async fn fail(&self, verdict: &Verdict, cut: Cut) -> Result<(), Status> {
        match verdict.failure.at(cut) {
            None => Ok(()),
            Some((_, Answer::Error { code, message })) => Err(Status::new(code.0, message)),
            Some((id, Answer::Hang)) => {
                self.faults.released(id).await;
                Ok(())
            }
        }
    }

    fn aliases(&self, call: &Call) -> Aliases {
        let mut aliases = self.read(|state| state.aliases(&call.names, &call.volumes));
        // The object of a creating call is not in the state yet: its key is in the request.
        let keys = ["pvc", "volumesnapshot"].map(|kind| crate::state::object_key(&call.parameters, kind));
        let [claim, snapshot] = keys;
        aliases.volumes.extend(claim.clone());
        aliases.names.extend(claim.into_iter().chain(snapshot));
        aliases
    }

    // === State ===

    /// Does a transition on disk and in memory, or nothing.
    ///
    /// # Errors
    ///
    /// The transition's refusal, or trouble on disk.
    pub fn transition<T>(
        &self,
        step: impl FnOnce(&mut State, &Context) -> Result<Change<T>, Refusal>,
    ) -> Result<T, CallError> {
        let mut disk = lock(&self.disk);
        let context = Context {
            now: Timestamp::now(),
            unique: uuid::Uuid::now_v7().simple().to_string(),
            pool_bytes: self.config.pool_bytes,
        };
        let mut next = disk.state.clone();
        let change = step(&mut next, &context)?;
        if next == disk.state && change.work.is_empty() {
            return Ok(change.reply);
        }
        if let Err(error) = disk.store.commit(&next, &change.work) {
            // The first trouble is the one to tell; what is left over now goes at the next start.
            let _ = disk.store.sweep(&disk.state);
            return Err(error.into());
        }
        disk.state = next;
        Ok(change.reply)
    }

    /// Looks at the state.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&lock(&self.disk).state)
    }

    /// Where the content of a volume or a snapshot is.
    pub fn path(&self, place: &Place) -> PathBuf {
        lock(&self.disk).store.path(place)
    }

    // === Orders and observations ===

    /// Adds an order and answers its id.
    ///
    /// # Errors
    ///
    /// See [`InvalidFault`].
    pub fn order(&self, fault: Fault) -> Result<String, InvalidFault> {
        fault.check()?;
        Ok(self.faults.add(fault))
    }

    /// The orders in force, to look at and to remove.
    pub fn faults(&self) -> &Orders<Fault> {
        &self.faults
    }

    /// The calls that `wanted` lets through.
    pub fn calls(&self, wanted: impl Fn(&CallRecord) -> bool) -> Vec<Numbered<CallRecord>> {
        lock(&self.log).entries().filter(|entry| wanted(entry)).cloned().collect()
    }

    /// Forgets all calls.
    pub fn forget_calls(&self) {
        lock(&self.log).clear();
    }
}

/// A call in the log that is not finished. When it is dropped so, its caller went away.
struct Running<'a> {
    driver: &'a Driver,
    call: Call,
    number: u64,
    effect: bool,
    finished: bool,
}

impl<'a> Running<'a> {
    fn begin(driver: &'a Driver, call: Call, aliases: Aliases, verdict: &Verdict) -> Self {
        let record = CallRecord {
            method: call.method.to_owned(),
            names: aliases.names,
            volumes: aliases.volumes,
            parameters: call.parameters.clone(),
            secrets: call.secrets.clone(),
            faults: verdict.faults.clone(),
            started: Timestamp::now(),
            end: None,
        };
        let number = lock(&driver.log).begin(record);
        Self { driver, call, number, effect: false, finished: false }
    }

    fn finish(&mut self, error: Option<&Status>) {
        let (code, message) = error.map_or((Code::Ok, ""), |status| (status.code(), status.message()));
        self.end(code, message);
    }

    fn end(&mut self, code: Code, message: &str) {
        self.finished = true;
        let end = CallEnd {
            at: Timestamp::now(),
            code: code.into(),
            message: message.to_owned(),
            effect: self.effect,
        };
        // Asked again for the ids of what the call created; what it deleted is known from before.
        let aliases = self.driver.aliases(&self.call);
        lock(&self.driver.log).update(self.number, |record| {
            merge(&mut record.names, aliases.names);
            merge(&mut record.volumes, aliases.volumes);
            record.end = Some(end);
        });
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.end(Code::Cancelled, "the caller went away");
        }
    }
}

fn merge(to: &mut Vec<String>, names: Vec<String>) {
    for name in names {
        if !to.contains(&name) {
            to.push(name);
        }
    }
}

/// A panic elsewhere does not spoil the data: each lock guards values that are replaced whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the driver listens: `unix:///path`, `unix:/path` or a path.
pub fn socket_path(endpoint: &str) -> &Path {
    let path = endpoint.strip_prefix("unix:").unwrap_or(endpoint);
    Path::new(path.strip_prefix("//").unwrap_or(path))
}
