package main

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/sirupsen/logrus"

	biav2cli "github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt/backupitemaction/v2"
	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt/process"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework/common"
	biav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/backupitemaction/v2"
)

// plugin is a binary and how the server starts it.
type plugin struct {
	Command string `json:"command"`
	// Arguments of the server, which it hands on.
	Arguments []string `json:"arguments"`
	// BuiltIn says that the binary is Velero itself, whose plugins it starts with run-plugins.
	BuiltIn bool `json:"builtIn"`
}

// running is the plugin's process, for the end of this one. The lock is held while a process starts: there is no
// moment in which one runs and is not known.
var running struct {
	sync.Mutex
	process process.RestartableProcess
}

// stopRunning ends the plugin's process, if there is one, and lets no other start.
func stopRunning() {
	running.Lock()
	if running.process != nil {
		running.process.Stop()
	}
}

// start starts the plugin's process and waits for its handshake.
func (p *plugin) start() (process.RestartableProcess, error) {
	running.Lock()
	defer running.Unlock()
	// The client takes the arguments for plugins from its own, and knows its own plugins by its own name.
	self := "velero"
	if p.BuiltIn {
		self = p.Command
	}
	os.Args = append([]string{self, "server"}, p.Arguments...)
	started, err := process.NewRestartableProcessFactory().NewRestartableProcess(p.Command, quiet(), logrus.InfoLevel)
	if err != nil {
		return nil, fmt.Errorf("%s does not start: %w", p.Command, err)
	}
	running.process = started
	return started, nil
}

// list asks a started plugin what is registered in it.
func list(started process.RestartableProcess) ([]framework.PluginIdentifier, error) {
	dispensed, err := started.GetByKindAndName(process.KindAndName{Kind: common.PluginKindPluginLister})
	if err != nil {
		return nil, err
	}
	lister, ok := dispensed.(framework.PluginLister)
	if !ok {
		return nil, fmt.Errorf("%T lists no plugins", dispensed)
	}
	return lister.ListPlugins()
}

// backupAction finds the backup action to call: the one of that name, else the first that applies to the resource; nil
// where there is none. Actions of version 1 are called through Velero's own adapter.
func backupAction(started process.RestartableProcess, name, resource string) (biav2.BackupItemAction, error) {
	registered, err := list(started)
	if err != nil {
		return nil, err
	}
	for _, adapted := range biav2cli.AdaptedBackupItemActions() {
		for _, each := range registered {
			if each.Kind != adapted.Kind || (name != "" && each.Name != name) {
				continue
			}
			action := adapted.GetRestartable(each.Name, started)
			selector, err := action.AppliesTo()
			if err != nil {
				return nil, fmt.Errorf("%s says not what it applies to: %w", each.Name, err)
			}
			included := selector.IncludedResources
			if name != "" || len(included) == 0 || slices.Contains(included, resource) || slices.Contains(included, "*") {
				return action, nil
			}
		}
	}
	return nil, nil
}
