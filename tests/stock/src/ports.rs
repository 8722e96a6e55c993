//! Which port each component listens on.

use std::net::TcpListener;

use anyhow::{Context, Result};

use crate::sandbox::Sandbox;

/// The ports of one stack, all on 127.0.0.1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peers: u16,
    pub(crate) api: u16,
    pub(crate) controllers: u16,
    pub(crate) bucket: u16,
    pub(crate) driver_control: u16,
    pub(crate) velero_metrics: u16,
    pub(crate) velero_profiler: u16,
}

impl Ports {
    pub(crate) fn choose(sandbox: Sandbox) -> Result<Self> {
        let p = match sandbox {
            Sandbox::Namespaces { .. } => [2379, 2380, 6443, 10257, 5000, 9800, 8085, 6060],
            Sandbox::Loopback => free()?,
        };
        Ok(Self {
            etcd: p[0],
            etcd_peers: p[1],
            api: p[2],
            controllers: p[3],
            bucket: p[4],
            driver_control: p[5],
            velero_metrics: p[6],
            velero_profiler: p[7],
        })
    }
}

/// Free ports, held all at once so that they differ.
fn free() -> Result<[u16; 8]> {
    let mut ports = [0; 8];
    let mut held = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot find a free port on loopback")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
