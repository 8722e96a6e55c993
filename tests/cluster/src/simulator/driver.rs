//! A CSI driver in memory: the state, orders and log of the driver of the stock tests, without its sockets and disks.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csi_driver::call_log::{CallEnd, CallRecord};
use csi_driver::fault::{Answer, Fault, InvalidFault, Verdict};
use csi_driver::state::{
    Aliases, Change, Context, Group, NewGroup, NewSnapshot, NewVolume, Parameters, Refusal, Snapshot, State,
    Volume, object_key,
};
use jiff::Timestamp;
use orders::live::Orders;
use orders::{Cut, Log};
use tonic::{Code, Status};

/// Large enough for any test.
const POOL_BYTES: i64 = 1 << 50;

/// A driver that its sidecars call and that a test gives orders to.
#[derive(Debug)]
pub struct Driver {
    name: String,
    state: Mutex<State>,
    faults: Orders<Fault>,
    log: Mutex<Log<CallRecord>>,
}

/// A call as it arrives.
struct Call<'a> {
    method: &'static str,
    /// The id or name of the object.
    name: &'a str,
    /// The volumes beside the object.
    volumes: &'a [String],
    parameters: Parameters,
}

impl Driver {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: Mutex::default(),
            faults: Orders::default(),
            log: Mutex::default(),
        }
    }

    /// Its name in classes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Orders what happens to later calls; gives back the order's id.
    ///
    /// # Errors
    /// An order that makes no sense.
    pub fn order(&self, fault: Fault) -> Result<String, InvalidFault> {
        fault.check()?;
        Ok(self.faults.add(fault))
    }

    /// The orders in force, to look at and to remove.
    pub fn faults(&self) -> &Orders<Fault> {
        &self.faults
    }

    /// Looks at what is in storage, and at the counters of what came and went.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state())
    }

    /// Changes what is in storage, e.g. a snapshot's readiness, as the storage system itself would.
    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state())
    }

    /// The calls so far, oldest first.
    pub fn calls(&self) -> Vec<CallRecord> {
        self.log().entries().map(|entry| entry.record.clone()).collect()
    }

    /// How many calls of a method there were.
    pub fn count(&self, method: &str) -> usize {
        self.log().entries().filter(|entry| entry.record.method == method).count()
    }

    /// Puts a volume into storage that no claim asked for.
    ///
    /// # Errors
    /// A size or name that the driver doesn't take.
    pub fn add_volume(&self, name: &str, bytes: i64) -> Result<Volume, Refusal> {
        let capacity = csi_driver::state::CapacityRange { required_bytes: bytes, limit_bytes: 0 };
        let new = NewVolume { name: name.to_owned(), capacity, ..NewVolume::default() };
        Ok(self.state().create_volume(new, &context())?.reply)
    }

    pub(super) async fn create_snapshot(
        &self,
        new: NewSnapshot,
        within: Duration,
    ) -> Result<Snapshot, Status> {
        let (name, volumes) = (new.name.clone(), [new.volume_id.clone()]);
        let call = Call {
            method: "CreateSnapshot",
            name: &name,
            volumes: &volumes,
            parameters: new.parameters.clone(),
        };
        self.serve(call, within, |state, context, verdict| {
            state.create_snapshot(new, verdict.shape(context.now), context)
        })
        .await
    }

    pub(super) async fn delete_snapshot(&self, id: &str, within: Duration) -> Result<(), Status> {
        let call = Call { method: "DeleteSnapshot", name: id, volumes: &[], parameters: Parameters::new() };
        self.serve(call, within, |state, _, _| state.delete_snapshot(id)).await
    }

    /// The snapshot of that id, or none.
    pub(super) async fn list_snapshot(&self, id: &str, within: Duration) -> Result<Option<Snapshot>, Status> {
        let call = Call { method: "ListSnapshots", name: id, volumes: &[], parameters: Parameters::new() };
        self.serve(call, within, |state, _, _| {
            Ok(Change { reply: state.snapshots.get(id).cloned(), work: Vec::new() })
        })
        .await
    }

    /// Takes a group snapshot; gives back its members too.
    pub(super) async fn create_group(
        &self,
        new: NewGroup,
        within: Duration,
    ) -> Result<(Group, Vec<Snapshot>), Status> {
        let name = new.name.clone();
        let volumes = new.volume_ids.clone();
        let call = Call {
            method: "CreateVolumeGroupSnapshot",
            name: &name,
            volumes: &volumes,
            parameters: new.parameters.clone(),
        };
        self.serve(call, within, |state, context, verdict| {
            let Change { reply: group, work } =
                state.create_group(new, verdict.shape(context.now), context)?;
            let members = state.members(&group).cloned().collect();
            Ok(Change { reply: (group, members), work })
        })
        .await
    }

    pub(super) async fn delete_group(
        &self,
        id: &str,
        members: &[String],
        within: Duration,
    ) -> Result<(), Status> {
        let call = Call {
            method: "DeleteVolumeGroupSnapshot",
            name: id,
            volumes: &[],
            parameters: Parameters::new(),
        };
        self.serve(call, within, |state, _, _| state.delete_group(id, members)).await
    }

    /// The group of that id and whether all its members are ready.
    pub(super) async fn get_group(
        &self,
        id: &str,
        members: &[String],
        within: Duration,
    ) -> Result<(Group, bool), Status> {
        let call =
            Call { method: "GetVolumeGroupSnapshot", name: id, volumes: &[], parameters: Parameters::new() };
        self.serve(call, within, |state, context, _| {
            let group = state.group(id, members)?.clone();
            let ready = state.members(&group).all(|member| member.ready.at(context.now));
            Ok(Change { reply: (group, ready), work: Vec::new() })
        })
        .await
    }

    pub(super) async fn create_volume(&self, new: NewVolume, within: Duration) -> Result<Volume, Status> {
        let name = new.name.clone();
        let volumes = [name.clone()];
        let call = Call {
            method: "CreateVolume",
            name: &name,
            volumes: &volumes,
            parameters: new.parameters.clone(),
        };
        self.serve(call, within, |state, context, _| state.create_volume(new, context)).await
    }

    pub(super) async fn delete_volume(&self, id: &str, within: Duration) -> Result<(), Status> {
        let volumes = [id.to_owned()];
        let call =
            Call { method: "DeleteVolume", name: id, volumes: &volumes, parameters: Parameters::new() };
        self.serve(call, within, |state, _, _| state.delete_volume(id)).await
    }

    /// Serves one call as ordered, within the caller's time.
    async fn serve<T>(
        &self,
        call: Call<'_>,
        within: Duration,
        effect: impl FnOnce(&mut State, &Context, &Verdict) -> Result<Change<T>, Refusal>,
    ) -> Result<T, Status> {
        let aliases = self.aliases(&call);
        let verdict = Verdict::of(&self.faults.hit(|fault| fault.selects(call.method, &aliases)));
        let number = self.log().begin(CallRecord {
            method: call.method.to_owned(),
            names: aliases.names,
            volumes: aliases.volumes,
            parameters: call.parameters.clone(),
            secrets: Vec::new(),
            faults: verdict.faults.clone(),
            started: Timestamp::now(),
            end: None,
        });
        let mut done = false;
        let served = tokio::time::timeout(within, self.run(&verdict, effect, &mut done)).await;
        let result =
            served.unwrap_or_else(|_| Err(Status::new(Code::DeadlineExceeded, "context deadline exceeded")));
        let (code, message) = match &result {
            Ok(_) => (Code::Ok, ""),
            Err(status) => (status.code(), status.message()),
        };
        let end =
            CallEnd { at: Timestamp::now(), code: code.into(), message: message.to_owned(), effect: done };
        self.log().update(number, |record| record.end = Some(end));
        result
    }

    async fn run<T>(
        &self,
        verdict: &Verdict,
        effect: impl FnOnce(&mut State, &Context, &Verdict) -> Result<Change<T>, Refusal>,
        done: &mut bool,
    ) -> Result<T, Status> {
        tokio::time::sleep(verdict.latency).await;
        self.fail(verdict, Cut::BeforeEffect).await?;
        let change = effect(&mut self.state(), &context(), verdict)
            .map_err(|refusal| Status::new(refusal.code(), refusal.to_string()))?;
        *done = true;
        self.fail(verdict, Cut::AfterEffect).await?;
        Ok(change.reply)
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

    fn aliases(&self, call: &Call<'_>) -> Aliases {
        let mut aliases = self.state().aliases(&[call.name.to_owned()], call.volumes);
        // The object of a creating call is not in the state yet: its key is in the request.
        let claim = object_key(&call.parameters, "pvc");
        aliases.volumes.extend(claim.clone());
        aliases.names.extend(claim.into_iter().chain(object_key(&call.parameters, "volumesnapshot")));
        aliases
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> MutexGuard<'_, Log<CallRecord>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn context() -> Context {
    // Version 7: ids sort by their age.
    Context {
        now: Timestamp::now(),
        unique: uuid::Uuid::now_v7().simple().to_string(),
        pool_bytes: POOL_BYTES,
    }
}
