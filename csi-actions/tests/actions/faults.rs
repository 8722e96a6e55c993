//! A client whose requests fail to order, before they reach the API server or on the way back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use csi_actions::environment::Environment;
use csi_actions::settings::Mode;
use http::{Method, Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use tower::{BoxError, ServiceExt as _, service_fn};

use crate::bed::{Bed, settings};

/// How a request fails.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// This status, without a body.
    Answer(u16),
    /// The API server does it, and the answer is lost.
    LostAnswer,
}

/// Which requests fail, and how often.
#[derive(Clone)]
pub(crate) struct Rule {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) times: usize,
    pub(crate) fault: Fault,
}

/// An environment whose client fails by `rules`, and the number of requests that did.
pub(crate) fn environment(bed: &Bed, rules: Vec<Rule>) -> (Arc<Environment>, Arc<AtomicUsize>) {
    let failed = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&failed);
    let left: Arc<Vec<(Rule, AtomicUsize)>> =
        Arc::new(rules.into_iter().map(|rule| (rule.clone(), AtomicUsize::new(rule.times))).collect());
    let client = Client::try_from(Config::new(bed.cluster.url().parse().unwrap())).unwrap();
    let service = service_fn(move |request: Request<Body>| {
        let hit = left.iter().find(|(rule, left)| {
            rule.method == request.method()
                && request.uri().path().contains(rule.path)
                && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        });
        let fault = hit.map(|(rule, _)| rule.fault);
        if fault.is_some() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        let client = client.clone();
        async move {
            match fault {
                Some(Fault::Answer(code)) => {
                    Ok::<_, BoxError>(Response::builder().status(code).body(Body::empty())?)
                }
                Some(Fault::LostAnswer) => {
                    client.send(request).await?;
                    Err("connection reset by peer".into())
                }
                None => Ok(client.send(request).await?),
            }
        }
    });
    let client = Client::new(service.boxed_clone(), "default");
    (Arc::new(Environment { settings: settings(Mode::Standalone), cluster: client.into() }), failed)
}
