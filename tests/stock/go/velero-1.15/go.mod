// The Velero 1.15 server, client and built-in plugins.
module velero-plugins/stock/velero-1.15

go 1.26.0

tool github.com/vmware-tanzu/velero/cmd/velero

require github.com/vmware-tanzu/velero v1.15.2

replace github.com/kopia/kopia => github.com/project-velero/kopia v0.0.0-20241016073907-939dae5f9001
