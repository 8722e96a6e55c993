package main

import (
	"fmt"
	"syscall"
	"time"

	velerov1api "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
)

// progressJob is one round of polls: a new process, asked about each operation in turn, as the server's controller of
// backup operations does.
type progressJob struct {
	Plugin     plugin             `json:"plugin"`
	Action     string             `json:"action"`
	Operations []string           `json:"operations"`
	Backup     velerov1api.Backup `json:"backup"`
}

// polled is what was seen.
type polled struct {
	Calls     int `json:"calls"`
	Completed int `json:"completed"`
	// Operations that ended in a failure.
	Failed int `json:"failed"`
	// From before the start of the process until the last reply.
	Duration time.Duration `json:"duration"`
	// Processor time of the plugin's process, all of its life.
	CPU time.Duration `json:"cpu"`
}

func (j *progressJob) do() (any, error) {
	var seen polled
	began := time.Now()
	started, err := j.Plugin.start()
	if err != nil {
		return nil, err
	}
	defer started.Stop()
	action, err := backupAction(started, j.Action, "")
	if err != nil {
		return nil, err
	}
	if action == nil {
		return nil, fmt.Errorf("%s has no action %s", j.Plugin.Command, j.Action)
	}
	for _, operation := range j.Operations {
		progress, err := action.Progress(operation, &j.Backup)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", operation, err)
		}
		seen.Calls++
		if progress.Completed {
			seen.Completed++
		}
		if progress.Err != "" {
			seen.Failed++
		}
	}
	seen.Duration = time.Since(began)
	started.Stop()
	// The plugin is this process' only child, and it has been waited for.
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return nil, fmt.Errorf("the processor time of the plugin cannot be read: %w", err)
	}
	seen.CPU = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return seen, nil
}
