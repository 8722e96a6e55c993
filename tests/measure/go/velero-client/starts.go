package main

import "time"

// startsJob starts each plugin in turn, lists it and ends it, as the server does when it starts.
type startsJob struct {
	Plugins []plugin `json:"plugins"`
	Rounds  int      `json:"rounds"`
}

// starts are the times of one plugin, in nanoseconds, one per round.
type starts struct {
	// Spawn until the client has taken the handshake.
	Handshake []time.Duration `json:"handshake"`
	// Spawn until the reply to ListPlugins.
	FirstReply []time.Duration `json:"firstReply"`
	// The request to end until the process is gone.
	Stop []time.Duration `json:"stop"`
	// How many plugins the last reply named.
	Listed int `json:"listed"`
}

func (j *startsJob) do() (any, error) {
	seen := make([]starts, len(j.Plugins))
	for round := range j.Rounds {
		for turn := range j.Plugins {
			// Another one goes first in each round, so that what follows on a slow start follows on each of them.
			which := (turn + round) % len(j.Plugins)
			if err := seen[which].once(&j.Plugins[which]); err != nil {
				return nil, err
			}
		}
	}
	return seen, nil
}

func (s *starts) once(p *plugin) error {
	began := time.Now()
	started, err := p.start()
	if err != nil {
		return err
	}
	handshake := time.Since(began)
	listed, err := list(started)
	firstReply := time.Since(began)
	ending := time.Now()
	started.Stop()
	if err != nil {
		return err
	}
	s.Handshake = append(s.Handshake, handshake)
	s.FirstReply = append(s.FirstReply, firstReply)
	s.Stop = append(s.Stop, time.Since(ending))
	s.Listed = len(listed)
	return nil
}
