// Measures plugins through Velero's own client: the code with which the server starts a plugin's process and calls it.
//
// Reads one job as JSON from standard input, writes what it saw as JSON to standard output. The tables are made by the
// program that starts this one.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/sirupsen/logrus"
)

// A job is exactly one of these.
type job struct {
	Starts   *startsJob   `json:"starts"`
	Execute  *executeJob  `json:"execute"`
	Progress *progressJob `json:"progress"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	var j job
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&j); err != nil {
		return fmt.Errorf("the job on standard input is not understood: %w", err)
	}
	go endWithParent(decoder)
	result, err := j.do()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// endWithParent ends the plugin and this process when standard input is closed, that is when whoever gave the job is
// gone, or when that one asks for it. An interrupt of the terminal is left to it: plugins ignore theirs, too.
func endWithParent(input *json.Decoder) {
	signal.Ignore(os.Interrupt)
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, io.MultiReader(input.Buffered(), os.Stdin))
		close(closed)
	}()
	select {
	case <-terminated:
	case <-closed:
	}
	stopRunning()
	os.Exit(1)
}

func (j *job) do() (any, error) {
	switch {
	case j.Starts != nil:
		return j.Starts.do()
	case j.Execute != nil:
		return j.Execute.do()
	case j.Progress != nil:
		return j.Progress.do()
	}
	return nil, fmt.Errorf("the job is empty")
}

// quiet is the logger of the client. It formats what the plugins log, as the server does, and writes it nowhere.
func quiet() logrus.FieldLogger {
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	return logger
}
