//! Whether a claim gets a snapshot: by the volume policies that the backup names, by file-system backup, and by the backup.
//!
//! Without `EnableCSI` the server asks none of this for our action, so it is decided here as Velero decides for its own. With
//! the feature on, only a volume that a policy leaves to this plugin is ours.

mod conditions;
mod decision;
mod form;
mod parse;
mod pods;
mod word;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Mutex;
use velero_plugin::Backup;

pub use decision::{Decision, Refusal, Told};
pub use parse::PROVIDER;

use crate::cluster::resource::{CONFIG_MAPS, PODS, VOLUMES};
use crate::cluster::{ApiError, Cluster, Query};
use crate::object::{name, namespace};
use crate::settings::Mode;
use conditions::Subject;
use decision::{Facts, Verdict, quietly};
use parse::Policy;
use word::{Word, word};

/// Why it can't be decided, or must not be taken for decided.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PolicyError {
    /// The cluster does not tell.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// There is nothing to take a snapshot of, or nobody to do what was ordered.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The policies are in something unknown.
    #[error("resourcePolicy of the backup is of kind {0:?}, and only \"configmap\" is known")]
    Kind(String),
    /// The policies are not where they should be.
    #[error("the volume policies in ConfigMap {0} are not in one field: it holds {1}")]
    Fields(String, usize),
    /// The policies say something that may or may not be about this volume.
    #[error(
        "whether to take a snapshot is not clear: the volume policies in ConfigMap {config_map}, key {key}, say what this plugin does not \
         understand: {what}"
    )]
    NotUnderstood {
        /// Namespace and name.
        config_map: String,
        /// Where in it.
        key: String,
        /// What is not understood.
        what: String,
    },
}

/// The decisions of a process. What they depend on is read once for each backup.
#[derive(Debug)]
pub struct Decisions {
    cluster: Cluster,
    mode: Mode,
    /// By the UID of the backup. The lock is held while they are read, so that claims at once share the request.
    policies: Mutex<HashMap<String, Arc<Policies>>>,
    /// The lock is as above.
    copied: Mutex<Copied>,
}

/// The names of the claims that are copied, by the UID of the backup and the namespace.
type Copied = HashMap<(String, String), Arc<HashSet<String>>>;

/// The volume policies of a backup.
#[derive(Debug)]
struct Policies {
    config_map: String,
    key: String,
    /// Whether the text names this plugin at all.
    name_us: bool,
    /// Whether it may also say which resources are backed up.
    have_filters: bool,
    read: Result<Vec<Policy>, String>,
}

impl Decisions {
    /// About what is in `cluster`.
    pub fn new(cluster: Cluster, mode: Mode) -> Self {
        Self { cluster, mode, policies: Mutex::default(), copied: Mutex::default() }
    }

    /// Whether `backup` takes a snapshot of `claim`, and of which volume.
    ///
    /// # Errors
    ///
    /// When the cluster does not tell, when the policies can't be understood, and when there should be a snapshot and can't be.
    pub async fn of(&self, claim: &Value, backup: &Backup) -> Result<Decision, PolicyError> {
        if backup.phase().is_finalizing() {
            return Ok(quietly("the backup is being finalized"));
        }
        let policies = self.policies(backup).await?;
        let is_alongside = self.mode == Mode::Alongside;
        let policies = policies.filter(|policies| !is_alongside || policies.name_us);
        if policies.is_none() {
            if is_alongside {
                return Ok(quietly("it is left to Velero's own action"));
            }
            if let Some(decision) = decision::at_once(claim, backup)? {
                return Ok(decision);
            }
        }
        let volume = match decision::bound_volume(claim) {
            Some(volume) => self.cluster.find(VOLUMES, "", volume).await?,
            None => None,
        };
        let subject = Subject { claim, volume: volume.as_ref() };
        let word = policies.map_or(Ok(Word::Nothing), |policies| policies.word(subject, self.mode))?;
        match decision::decide(Facts { claim, volume: volume.as_ref(), backup, word })? {
            Verdict::Decided(decision) => Ok(decision),
            Verdict::UnlessCopied(volume) => {
                let copied = self.copied(namespace(claim), backup).await?;
                Ok(if copied.contains(name(claim)) {
                    quietly("file-system backup copies it")
                } else {
                    Decision::Take(volume)
                })
            }
        }
    }

    /// Whether the policies that `backup` names may leave out resources.
    ///
    /// # Errors
    ///
    /// When the cluster does not tell, or they are not where they should be.
    pub async fn have_filters(&self, backup: &Backup) -> Result<bool, PolicyError> {
        Ok(self.policies(backup).await?.is_some_and(|policies| policies.have_filters))
    }

    /// The policies that the backup names.
    async fn policies(&self, backup: &Backup) -> Result<Option<Arc<Policies>>, PolicyError> {
        let Some(reference) = backup.get(&["spec", "resourcePolicy"]) else { return Ok(None) };
        let text = |field| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        if !text("kind").eq_ignore_ascii_case("configmap") {
            return Err(PolicyError::Kind(text("kind").to_owned()));
        }
        let mut known = self.policies.lock().await;
        if let Some(policies) = known.get(backup.uid()) {
            return Ok(Some(Arc::clone(policies)));
        }
        let config_map = self.cluster.get(CONFIG_MAPS, backup.namespace(), text("name")).await?;
        let policies = Arc::new(Policies::of(&config_map)?);
        known.insert(backup.uid().to_owned(), Arc::clone(&policies));
        Ok(Some(policies))
    }

    /// The names of the claims in `namespace` that file-system backup copies.
    async fn copied(&self, namespace: &str, backup: &Backup) -> Result<Arc<HashSet<String>>, ApiError> {
        let key = (backup.uid().to_owned(), namespace.to_owned());
        let mut known = self.copied.lock().await;
        if let Some(copied) = known.get(&key) {
            return Ok(Arc::clone(copied));
        }
        let pods = self.cluster.list_in(PODS, namespace, &Query::default()).await?;
        let by_default = backup.get(&["spec", "defaultVolumesToFsBackup"]).and_then(Value::as_bool);
        let copied = Arc::new(pods::copied_claims(&pods, by_default.unwrap_or(false)));
        known.insert(key, Arc::clone(&copied));
        Ok(copied)
    }
}

impl Policies {
    fn of(config_map: &Value) -> Result<Self, PolicyError> {
        let place = format!("{}/{}", namespace(config_map), name(config_map));
        let fields: Vec<(&String, &Value)> = config_map["data"].as_object().into_iter().flatten().collect();
        let [(key, text)] = fields.as_slice() else { return Err(PolicyError::Fields(place, fields.len())) };
        let text = text.as_str().unwrap_or_default();
        Ok(Self {
            config_map: place,
            key: (*key).clone(),
            name_us: text.contains(PROVIDER),
            have_filters: text.contains("includeExcludePolicy"),
            read: parse::policies(text),
        })
    }

    fn word(&self, subject: Subject<'_>, mode: Mode) -> Result<Word, PolicyError> {
        let read = self.read.as_ref().map_err(String::clone);
        read.and_then(|policies| word(policies, subject, mode)).map_err(|what| PolicyError::NotUnderstood {
            config_map: self.config_map.clone(),
            key: self.key.clone(),
            what,
        })
    }
}
