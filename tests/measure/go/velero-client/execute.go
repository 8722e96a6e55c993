package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	velerov1api "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	biav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/backupitemaction/v2"
)

// executeJob calls a backup action's Execute for a while.
type executeJob struct {
	Plugin plugin `json:"plugin"`
	// Action to call; the first that applies to Resource where it is empty.
	Action   string             `json:"action"`
	Resource string             `json:"resource"`
	Item     map[string]any     `json:"item"`
	Backup   velerov1api.Backup `json:"backup"`
	// Callers at once.
	Callers int `json:"callers"`
	// Calls before the clock starts.
	WarmUp int `json:"warmUp"`
	// Calls in all.
	Calls int `json:"calls"`
}

// executed is what was seen; without an action nothing was called.
type executed struct {
	Action   string          `json:"action"`
	Calls    int             `json:"calls"`
	Duration time.Duration   `json:"duration"`
	Each     []time.Duration `json:"each"`
}

func (j *executeJob) do() (any, error) {
	started, err := j.Plugin.start()
	if err != nil {
		return nil, err
	}
	defer started.Stop()
	action, err := backupAction(started, j.Action, j.Resource)
	if err != nil || action == nil {
		return executed{}, err
	}
	if _, err := j.call(action, j.WarmUp, 1); err != nil {
		return nil, err
	}
	began := time.Now()
	each, err := j.call(action, j.Calls, j.Callers)
	if err != nil {
		return nil, err
	}
	return executed{Action: action.Name(), Calls: len(each), Duration: time.Since(began), Each: each}, nil
}

// call calls Execute so many times and gives back how long each call took.
func (j *executeJob) call(action biav2.BackupItemAction, calls, callers int) ([]time.Duration, error) {
	var (
		wait   sync.WaitGroup
		next   atomic.Int64
		each   = make([]time.Duration, calls)
		failed = make([]error, callers)
	)
	for caller := range callers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			item := &unstructured.Unstructured{Object: j.Item}
			for failed[caller] == nil {
				index := int(next.Add(1)) - 1
				if index >= calls {
					return
				}
				began := time.Now()
				_, _, _, _, err := action.Execute(item.DeepCopy(), &j.Backup)
				each[index] = time.Since(began)
				failed[caller] = err
			}
		}()
	}
	wait.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", action.Name(), err)
		}
	}
	return each, nil
}
