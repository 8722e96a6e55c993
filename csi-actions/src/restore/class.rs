//! The class of a restored content: a driver that needs credentials takes them from there.

use serde_json::Value;
use velero_plugin::Backup;

use crate::class_choice::{Choice, SNAPSHOT_KEYS};
use crate::object::{name, text};

/// The class of `driver` in this cluster: the `archived` one if there is one of that name, else as a backup would choose
/// it, else the first. `None` where the driver has none, which is fine for most.
pub(super) fn choose<'a>(classes: &'a [Value], driver: &str, archived: Option<&str>) -> Option<&'a Value> {
    let mut of_driver = classes.iter().filter(|class| text(class, &["driver"]) == Some(driver));
    if let Some(same) = of_driver.clone().find(|class| archived == Some(name(class))) {
        return Some(same);
    }
    let (claim, backup) = (Value::Null, Backup::from(Value::Null));
    let chosen =
        Choice { keys: &SNAPSHOT_KEYS, classes, driver, provisioner: None, claim: &claim, backup: &backup }
            .make()
            .ok();
    match chosen {
        Some(chosen) => of_driver.find(|class| name(class) == chosen),
        None => of_driver.next(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;

    const RBD: &str = "rbd.csi.ceph.com";

    fn class(name: &str, driver: &str, labels: Value) -> Value {
        json!({"metadata": {"name": name, "labels": labels}, "driver": driver})
    }

    fn chosen(classes: &[Value], archived: Option<&str>) -> Option<String> {
        choose(classes, RBD, archived).map(|class| name(class).to_owned())
    }

    #[test]
    fn i48_the_class_is_chosen_as_at_backup_and_not_by_its_place_in_the_list() {
        let labelled = json!({"velero.io/csi-volumesnapshot-class": "true"});
        let classes = [
            class("aa", RBD, json!({})),
            class("other", "nfs.csi", labelled.clone()),
            class("zz", RBD, labelled),
        ];
        assert_eq!(chosen(&classes, None).as_deref(), Some("zz"));
        assert_eq!(chosen(&classes, Some("aa")).as_deref(), Some("aa"), "the archived one goes first");
        assert_eq!(chosen(&classes, Some("other")).as_deref(), Some("zz"), "but not of another driver");
        assert_eq!(chosen(&classes, Some("gone")).as_deref(), Some("zz"));
    }

    #[test]
    fn where_nothing_tells_the_classes_apart_the_first_is_taken_and_without_one_none() {
        let classes = [class("b", RBD, json!({})), class("a", RBD, json!({}))];
        assert_eq!(chosen(&classes, None).as_deref(), Some("b"));
        assert_eq!(chosen(&[class("x", "nfs.csi", json!({}))], None), None);
        assert_eq!(chosen(&[], Some("a")), None);
    }
}
