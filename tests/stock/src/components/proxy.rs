//! The proxy between a server with its plugins and the API server, for scenarios that order faults.
//!
//! A server and its plugins take the same kubeconfig, so all go through it: rules tell them apart by User-Agent.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use fault_proxy::proxy::{Listen, Proxy};
use fault_proxy::rules::Rule;
use fault_proxy::upstream::Upstream;
use jiff::Timestamp;
use kube::config::Kubeconfig;

use super::api_server::Access;

/// The running proxy, inside this process.
pub(crate) struct FaultProxy {
    proxy: Proxy,
    /// Leads through the proxy, with the administrator's rights.
    pub(crate) kubeconfig: PathBuf,
}

pub(crate) async fn start(access: &Access, folder: &Path) -> Result<FaultProxy> {
    let upstream = Upstream::from_kubeconfig(Kubeconfig::read_from(&access.kubeconfig)?).await?;
    let proxy = Proxy::start(upstream, [Listen::loopback("velero").with_tls()]).await?;
    let kubeconfig = folder.join("kubeconfig-through-proxy");
    proxy.write_kubeconfig("velero", &kubeconfig)?;
    Ok(FaultProxy { proxy, kubeconfig })
}

impl FaultProxy {
    pub(crate) fn order(&self, rule: Rule) -> Result<()> {
        self.proxy.order(rule)?;
        Ok(())
    }

    /// Whether a rule has hit a request.
    pub(crate) fn has_hit(&self) -> bool {
        self.proxy.rules().list().iter().any(|status| status.hits > 0)
    }

    /// Removes all rules.
    ///
    /// # Errors
    /// When one of them hit nothing: then the scenario has not shown what it claims.
    pub(crate) fn withdraw_all(&self) -> Result<u64> {
        let rules = self.proxy.rules().list();
        self.proxy.rules().clear();
        let idle: Vec<_> =
            rules.iter().filter(|status| status.hits == 0).map(|status| &status.order).collect();
        ensure!(
            idle.is_empty(),
            "these rules hit no request: {idle:?}; requests were {:?}",
            self.proxy.counts()
        );
        Ok(rules.iter().map(|status| status.hits).sum())
    }

    /// Requests of the client whose User-Agent begins so, as `VERB RESOURCE/SUBRESOURCE`, since they were forgotten.
    pub(crate) fn requests_of(&self, user_agent: &str) -> Vec<String> {
        let records = self.proxy.requests(|record| record.user_agent.starts_with(user_agent));
        records
            .iter()
            .map(|entry| {
                let info = &entry.record.info;
                let slash = if info.subresource.is_empty() { "" } else { "/" };
                format!("{} {}{slash}{}", info.verb, info.resource, info.subresource)
            })
            .collect()
    }

    /// When each request of that client for this verb and resource arrived, by the object's name.
    pub(crate) fn arrivals(&self, user_agent: &str, verb: &str, resource: &str) -> Vec<(String, Timestamp)> {
        let records = self.proxy.requests(|record| {
            let info = &record.info;
            record.user_agent.starts_with(user_agent) && info.verb == verb && info.resource == resource
        });
        records.into_iter().map(|entry| (entry.record.info.name, entry.record.started)).collect()
    }

    /// How many requests of that client there were, and how many failed.
    pub(crate) fn tally(&self, user_agent: &str) -> (usize, usize) {
        self.proxy.tally(user_agent)
    }

    pub(crate) fn forget_requests(&self) {
        self.proxy.forget_requests();
    }
}
