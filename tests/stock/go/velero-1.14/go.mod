// The Velero 1.14 server, client and built-in plugins.
module velero-plugins/stock/velero-1.14

go 1.26.0

tool github.com/vmware-tanzu/velero/cmd/velero

require github.com/vmware-tanzu/velero v1.14.0

replace github.com/kopia/kopia => github.com/project-velero/kopia v0.0.0-20240417031915-e07d5b7de567
