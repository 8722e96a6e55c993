//! What the words after `doctor` ask for.

use std::ffi::OsString;

use lexopt::{Arg, Parser, ValueExt as _};

/// The help.
pub(super) const HELP: &str = "\
Looks at a cluster as the actions of csi-actions would and says what a backup will meet there. It reads only.

  csi-actions doctor [OPTIONS]
  kubectl -n velero exec deploy/velero -- /plugins/csi-actions doctor

  --kubeconfig FILE            the cluster; by default that of KUBECONFIG, of the pod, or of your own kubeconfig
  --context NAME               the context in the kubeconfig
  -n, --namespace NAME         the server's namespace [velero]
  --include-namespaces A,B     look at the claims in these namespaces only
  --backup NAME                choose as this backup would, by its annotations and settings
  --as-server                  ask what the server's account may do, not your own; always so outside of a pod
  -o, --output text|json       [text]
  --print-rbac                 print a ClusterRole with all that the actions need, and look at nothing
  -h, --help

It ends with 0 where all is well, 1 where a finding will fail a backup, and 2 where it could not look.
";

/// How the report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Text,
    Json,
}

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) kubeconfig: Option<OsString>,
    pub(super) context: Option<String>,
    /// The server's.
    pub(super) namespace: String,
    /// Those of the claims; none for all.
    pub(super) include_namespaces: Vec<String>,
    pub(super) backup: Option<String>,
    pub(super) as_server: bool,
    pub(super) output: Output,
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    Examine(Order),
    Rbac,
    Help,
}

/// Reads the words.
///
/// # Errors
///
/// Names the word that means nothing.
pub(super) fn parse(words: Vec<OsString>) -> Result<Asked, lexopt::Error> {
    let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    // As Velero's own client finds it, in the server's pod too.
    let namespace = std::env::var("VELERO_NAMESPACE").ok().filter(|name| !name.is_empty());
    parse_in(words, namespace.unwrap_or_else(|| "velero".to_owned()), in_pod)
}

fn parse_in(words: Vec<OsString>, namespace: String, in_pod: bool) -> Result<Asked, lexopt::Error> {
    let mut order = Order {
        kubeconfig: None,
        context: None,
        namespace,
        include_namespaces: Vec::new(),
        backup: None,
        as_server: !in_pod,
        output: Output::Text,
    };
    let mut parser = Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            Arg::Long("kubeconfig") => order.kubeconfig = Some(parser.value()?),
            Arg::Long("context") => order.context = Some(parser.value()?.string()?),
            Arg::Short('n') | Arg::Long("namespace") => order.namespace = parser.value()?.string()?,
            Arg::Long("include-namespaces") => {
                let names = parser.value()?.string()?;
                let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
                order.include_namespaces.extend(names.map(str::to_owned));
            }
            Arg::Long("backup") => order.backup = Some(parser.value()?.string()?),
            Arg::Long("as-server") => order.as_server = true,
            Arg::Short('o') | Arg::Long("output") => {
                order.output = match parser.value()?.string()?.as_str() {
                    "text" => Output::Text,
                    "json" => Output::Json,
                    other => return Err(format!("--output {other:?} is neither text nor json").into()),
                };
            }
            Arg::Long("print-rbac") => return Ok(Asked::Rbac),
            Arg::Short('h') | Arg::Long("help") => return Ok(Asked::Help),
            other => return Err(other.unexpected()),
        }
    }
    // A kubeconfig names another account than the pod's.
    order.as_server |= order.kubeconfig.is_some();
    Ok(Asked::Examine(order))
}

impl Order {
    /// The arguments of a server that works on the same cluster.
    pub(super) fn connection(&self) -> Vec<OsString> {
        let kubeconfig = self.kubeconfig.clone().map(|path| ["--kubeconfig".into(), path]);
        let context = self.context.clone().map(|name| ["--kubecontext".into(), name.into()]);
        kubeconfig.into_iter().chain(context).flatten().collect()
    }

    /// Whether the claims of a namespace are to be looked at.
    pub(super) fn includes(&self, namespace: &str) -> bool {
        self.include_namespaces.is_empty() || self.include_namespaces.iter().any(|each| each == namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str, in_pod: bool) -> Result<Asked, lexopt::Error> {
        parse_in(line.split_whitespace().map(OsString::from).collect(), "velero".to_owned(), in_pod)
    }

    fn order(line: &str, in_pod: bool) -> Order {
        let Ok(Asked::Examine(order)) = parsed(line, in_pod) else { panic!("{line}") };
        order
    }

    #[test]
    fn options_are_read_in_the_forms_that_kubectl_takes() {
        let read =
            order("--kubeconfig=f --context c -n backup --include-namespaces a,b -o json --backup b1", true);
        assert_eq!(read.connection(), ["--kubeconfig", "f", "--kubecontext", "c"]);
        assert_eq!((read.namespace.as_str(), read.output), ("backup", Output::Json));
        assert!(read.includes("a") && read.includes("b") && !read.includes("c"));
        assert_eq!(read.backup.as_deref(), Some("b1"));
        assert!(order("", true).includes("any"));
    }

    #[test]
    fn the_rights_are_those_of_the_server_but_in_its_own_pod() {
        assert!(!order("", true).as_server);
        assert!(order("--as-server", true).as_server && order("", false).as_server);
        assert!(order("--kubeconfig f", true).as_server);
    }

    #[test]
    fn what_means_nothing_is_refused_by_name() {
        for (line, word) in
            [("--loud", "--loud"), ("now", "now"), ("-o yaml", "yaml"), ("--backup", "--backup")]
        {
            let error = parsed(line, true).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        assert!(matches!(parsed("--help --loud", true), Ok(Asked::Help)));
        assert!(matches!(parsed("--print-rbac", true), Ok(Asked::Rbac)));
    }
}
