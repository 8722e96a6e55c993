//! Asks plugins what they are, as the server does once at its start.

use std::sync::Arc;
use std::time::Instant;

use velero_plugin::client::proto::generated::Empty;
use velero_plugin::client::proto::generated::plugin_lister_client::PluginListerClient;

use super::validate::{Refusal, Registry};
use crate::client::CallError;
use crate::event::Event;
use crate::minor::Minor;
use crate::session::{Journal, Session, SessionError, Start};

/// Why the server does not start with a plugin.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// It did not start.
    #[error("{command}: {source}")]
    Start {
        /// The binary.
        command: String,
        /// Why not.
        source: SessionError,
    },
    /// It did not say what it is.
    #[error("{command}: {source}")]
    List {
        /// The binary.
        command: String,
        /// Why not.
        source: CallError,
    },
    /// It is refused.
    #[error("{command}: {source}")]
    Refused {
        /// The binary.
        command: String,
        /// Why.
        source: Refusal,
    },
}

/// Starts the binaries one after the other, each for its list alone.
///
/// # Errors
///
/// At the first that a server would not start with.
pub async fn list(
    commands: &[String],
    minor: Minor,
    start: &Arc<dyn Start>,
    journal: &Arc<Journal>,
) -> Result<Registry, ListError> {
    let mut registry = Registry::new(minor);
    for command in commands {
        let session = Session::new(start.clone(), journal.clone());
        let listed = one(command, &session, &mut registry).await;
        session.end().await;
        listed?;
    }
    Ok(registry)
}

async fn one(command: &str, session: &Session, registry: &mut Registry) -> Result<(), ListError> {
    let start = |source| ListError::Start { command: command.to_owned(), source };
    let process = session.process(command).await.map_err(start)?;
    // A process that ends before it said what it is isn't started again.
    let channel = process.channel_as_it_is().await.map_err(start)?;
    let (observer, method) = (process.observer(), "ListPlugins");
    observer.observe(&Event::Calling { plugin: command, method });
    let began = Instant::now();
    let reply = PluginListerClient::new(channel).list_plugins(Empty {}).await.map_err(CallError::from);
    let error = reply.as_ref().err().map(ToString::to_string);
    observer.observe(&Event::Called {
        plugin: command,
        method,
        took: began.elapsed(),
        error: error.as_deref(),
    });
    let failed = |source| ListError::List { command: command.to_owned(), source };
    for plugin in reply.map_err(failed)?.into_inner().plugins {
        registry
            .register(command, &plugin.command, &plugin.kind, &plugin.name)
            .map_err(|source| ListError::Refused { command: command.to_owned(), source })?;
    }
    Ok(())
}
