// The control plane of the tests as one program: the name it is called by,
// or else its first argument, chooses the part. One link instead of five.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	part := filepath.Base(os.Args[0])
	if !known(part) && len(os.Args) > 1 {
		part = os.Args[1]
		os.Args = os.Args[1:]
	}
	switch part {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(newScheduler()))
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
	default:
		fmt.Fprintf(os.Stderr, "no part is called %q: use etcd, kube-apiserver, kube-controller-manager, kube-scheduler or kubectl\n", part)
		os.Exit(2)
	}
}

func newScheduler() *cobra.Command { return scheduler.NewSchedulerCommand() }

func known(part string) bool {
	switch part {
	case "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl":
		return true
	}
	return false
}
