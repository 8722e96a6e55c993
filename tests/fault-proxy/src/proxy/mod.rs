//! The proxy in this process: listeners, rules and the request log.

mod body;
mod exchange;
mod listener;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::config::Kubeconfig;
use orders::live::Orders;
use orders::{Log, Numbered};
use tokio::task::JoinSet;

pub use self::listener::Listen;
use self::listener::Listener;
use crate::kubeconfig;
use crate::record::{Count, RequestRecord, count};
use crate::rules::{InvalidRule, Rule};
use crate::tls::TlsError;
use crate::upstream::Upstream;

/// A proxy that serves until it is dropped; then its connections are closed.
#[derive(Debug)]
pub struct Proxy {
    core: Arc<Core>,
    ends: BTreeMap<String, End>,
    _serving: JoinSet<()>,
}

/// Where clients connect to.
#[derive(Debug)]
struct End {
    address: SocketAddr,
    authority: Option<String>,
}

/// What all listeners share.
#[derive(Debug)]
struct Core {
    upstream: Upstream,
    rules: Orders<Rule>,
    log: Mutex<Log<RequestRecord>>,
}

/// The proxy can't be started or asked for something.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// A listener can't listen.
    #[error("proxy can't listen on {address} for {client}: {source}")]
    Listen {
        /// The listener's name.
        client: String,
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A listener can't have TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Two listeners have one name.
    #[error("proxy has two listeners {0}, give each its own name")]
    Twice(String),
    /// There is no listener of this name.
    #[error("proxy has no listener {0}")]
    Unknown(String),
    /// A kubeconfig can't be written.
    #[error("kubeconfig {path} can't be written: {source}", path = path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Proxy {
    /// Starts a proxy before `upstream` with these listeners, one for each client that is to be told apart.
    ///
    /// # Errors
    ///
    /// When one of them can't listen.
    pub async fn start(
        upstream: Upstream,
        listeners: impl IntoIterator<Item = Listen>,
    ) -> Result<Self, ProxyError> {
        let core = Arc::new(Core { upstream, rules: Orders::default(), log: Mutex::default() });
        let mut ends = BTreeMap::new();
        let mut serving = JoinSet::new();
        for listen in listeners {
            let client = listen.client.clone();
            let listener = Listener::bind(listen).await?;
            let end = End { address: listener.address, authority: listener.authority() };
            if ends.insert(client.clone(), end).is_some() {
                return Err(ProxyError::Twice(client));
            }
            serving.spawn(listener.serve(Arc::clone(&core)));
        }
        Ok(Self { core, ends, _serving: serving })
    }

    /// The names of the listeners and where they listen.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        self.ends.iter().map(|(client, end)| (client.as_str(), end.address))
    }

    /// The address of a listener as a URL.
    ///
    /// # Errors
    ///
    /// When there is none of this name.
    pub fn url(&self, client: &str) -> Result<String, ProxyError> {
        let end = self.end(client)?;
        let scheme = if end.authority.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}", end.address))
    }

    /// A kubeconfig for the client of a listener, with the user of the upstream's kubeconfig.
    ///
    /// # Errors
    ///
    /// When there is no such listener.
    pub fn kubeconfig(&self, client: &str) -> Result<Kubeconfig, ProxyError> {
        let authority = self.end(client)?.authority.as_deref();
        Ok(kubeconfig::through(&self.url(client)?, authority, self.core.upstream.kubeconfig()))
    }

    /// Writes [`Proxy::kubeconfig`] to a file.
    ///
    /// # Errors
    ///
    /// When there is no such listener or the file can't be written.
    pub fn write_kubeconfig(&self, client: &str, path: &Path) -> Result<(), ProxyError> {
        let kubeconfig = self.kubeconfig(client)?;
        // JSON is YAML.
        let json = serde_json::to_vec_pretty(&kubeconfig).map_err(io::Error::from);
        json.and_then(|json| std::fs::write(path, json))
            .map_err(|source| ProxyError::Kubeconfig { path: path.to_owned(), source })
    }

    fn end(&self, client: &str) -> Result<&End, ProxyError> {
        self.ends.get(client).ok_or_else(|| ProxyError::Unknown(client.to_owned()))
    }

    /// Adds a rule and answers its id.
    ///
    /// # Errors
    ///
    /// When the rule makes no sense.
    pub fn order(&self, rule: Rule) -> Result<String, InvalidRule> {
        rule.check()?;
        Ok(self.core.rules.add(rule))
    }

    /// The rules in force, to look at and to remove.
    pub fn rules(&self) -> &Orders<Rule> {
        &self.core.rules
    }

    /// The requests that `wanted` lets through, in the order of their arrival.
    pub fn requests(&self, wanted: impl Fn(&RequestRecord) -> bool) -> Vec<Numbered<RequestRecord>> {
        self.core.log().entries().filter(|entry| wanted(entry)).cloned().collect()
    }

    /// How many requests came from the client whose User-Agent begins so, and how many of them failed: without an answer,
    /// or with one of 500 and above.
    pub fn tally(&self, user_agent: &str) -> (usize, usize) {
        let requests = self.requests(|record| record.user_agent.starts_with(user_agent));
        let failed = |record: &RequestRecord| {
            record.status.is_some_and(|status| status >= 500)
                || (record.status.is_none() && record.ended.is_some())
        };
        (requests.len(), requests.iter().filter(|entry| failed(&entry.record)).count())
    }

    /// How many requests each client made.
    pub fn counts(&self) -> Vec<Count> {
        count(self.core.log().entries().map(|entry| &entry.record))
    }

    /// Forgets all requests.
    pub fn forget_requests(&self) {
        self.core.log().clear();
    }
}

impl Core {
    fn log(&self) -> MutexGuard<'_, Log<RequestRecord>> {
        // A panic elsewhere does not spoil the log.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
