//! One registered plugin of a session: what every client calls through.

use std::time::Instant;

use tokio::sync::Mutex;
use tonic::transport::Channel;

use super::error::CallError;
use crate::event::Event;
use crate::session::Process;

/// A plugin by name in a process.
#[derive(Clone)]
pub struct Plugin {
    name: String,
    process: Process,
}

impl Plugin {
    /// The plugin `name` of a process.
    pub fn new(name: impl Into<String>, process: Process) -> Self {
        Self { name: name.into(), process }
    }

    /// The name under which it is registered.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Calls `method` on a connection to the living process, and tells the observer.
    pub(crate) async fn call<T, F>(
        &self,
        method: &'static str,
        call: impl FnOnce(Channel, String) -> F,
    ) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, CallError>>,
    {
        let (channel, _) = self.process.channel().await?;
        self.process.observer().observe(&Event::Calling { plugin: &self.name, method });
        let began = Instant::now();
        let result = call(channel, self.name.clone()).await;
        if result.as_ref().is_err_and(CallError::is_broken) {
            self.process.broke().await;
        }
        let error = result.as_ref().err().map(ToString::to_string);
        let event =
            Event::Called { plugin: &self.name, method, took: began.elapsed(), error: error.as_deref() };
        self.process.observer().observe(&event);
        result
    }
}

/// Remembers which process of a plugin was initialised last, so that one that replaces it is initialised too.
#[derive(Debug, Default)]
pub(crate) struct Initialized(Mutex<Option<u64>>);

impl Initialized {
    /// Runs `init` unless the living process has seen it.
    pub(crate) async fn ensure<F>(
        &self,
        plugin: &Plugin,
        init: impl FnOnce(Plugin) -> F,
    ) -> Result<(), CallError>
    where
        F: Future<Output = Result<(), CallError>>,
    {
        let mut last = self.0.lock().await;
        let (_, generation) = plugin.process.channel().await?;
        if *last != Some(generation) {
            init(plugin.clone()).await?;
            *last = Some(generation);
        }
        Ok(())
    }
}

/// A client that takes messages of any size, as the server's does.
macro_rules! connect {
    ($client:path, $channel:expr) => {
        <$client>::new($channel)
            .max_decoding_message_size(velero_plugin::client::LARGEST_MESSAGE)
            .max_encoding_message_size(velero_plugin::client::LARGEST_MESSAGE)
    };
}
pub(crate) use connect;
