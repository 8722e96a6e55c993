//! Whether the account may do what the actions do.

use std::collections::BTreeMap;

use super::facts::{Facts, Missing};
use super::report::{Finding, Level, Section};

/// The findings.
pub(super) fn section(facts: &Facts) -> Section {
    let findings = match &facts.missing {
        Ok(missing) if missing.is_empty() => {
            vec![Finding::new(Level::Ok, "", format!("{} may do all that the actions need", facts.account))]
        }
        Ok(missing) => findings(missing, &facts.account),
        Err(error) => vec![Finding::new(Level::Unknown, "", error.as_str())],
    };
    Section { title: "Rights", findings }
}

/// One finding for each resource.
fn findings(missing: &[Missing], account: &str) -> Vec<Finding> {
    let mut by_resource: BTreeMap<(&str, String), Vec<&Missing>> = BTreeMap::new();
    for each in missing {
        by_resource.entry((each.0.resource.group, each.0.resource_name())).or_default().push(each);
    }
    let mut findings: Vec<Finding> = by_resource
        .into_iter()
        .map(|((group, resource), missing)| {
            let verbs: Vec<&str> = missing.iter().map(|(_, verb)| *verb).collect();
            // What fails a backup is told first.
            let worst = missing.iter().map(|(permission, _)| permission).max_by_key(|each| each.fails_backup);
            let (fails, without) = worst.map_or((false, ""), |each| (each.fails_backup, each.without));
            let subject = if group.is_empty() { resource } else { format!("{resource}.{group}") };
            let level = if fails { Level::Failing } else { Level::Warning };
            let what = format!("may not {}: {without}", verbs.join(", "));
            Finding::new(level, subject, what)
        })
        .collect();
    if let Some(last) = findings.last_mut() {
        last.hint = Some(format!("bind {account} to the role that `csi-actions doctor --print-rbac` prints"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::permissions::PERMISSIONS;

    #[test]
    fn what_is_missing_is_told_by_resource_and_by_what_fails_without_it() {
        let of = |plural: &str, subresource: &str| {
            PERMISSIONS
                .iter()
                .find(|each| each.resource.plural == plural && each.subresource == subresource)
                .unwrap()
        };
        let missing = [
            (of("events", ""), "create"),
            (of("volumesnapshots", ""), "create"),
            (of("volumesnapshots", ""), "watch"),
            (of("volumesnapshotcontents", "status"), "patch"),
        ];
        let found = findings(&missing, "the account");
        let told: Vec<(Level, &str)> =
            found.iter().map(|found| (found.level, found.subject.as_str())).collect();
        assert_eq!(
            told,
            [
                (Level::Warning, "events"),
                (Level::Warning, "volumesnapshotcontents/status.snapshot.storage.k8s.io"),
                (Level::Failing, "volumesnapshots.snapshot.storage.k8s.io"),
            ]
        );
        assert!(found[2].text.contains("may not create, watch: no snapshot can be taken"), "{found:?}");
        assert!(found[2].hint.as_ref().unwrap().contains("--print-rbac"));
    }
}
