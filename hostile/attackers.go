package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// Attackers would be on other machines. Here they are a separate process that the scheduler ranks below all others, so that their own
// work does not count as harm.

// orders tell a process of attackers what to do.
type orders struct {
	Attack      string
	Address     string
	SearchKey   string
	DataKey     string
	TemplateKey string
	Remote      string
	Leader      string
	Version     string
}

// begin starts an attack. end stops it and waits until all attackers have ended.
func (s *server) begin(a attack) (end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command("nice", "-n", "19", self, "--attacker")
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(in).Encode(orders{a.name, s.address, s.searchKey, s.dataKey, s.templateKey, s.remote, s.leader, s.version}); err != nil {
		return nil, fmt.Errorf("the attackers do not take their orders: %w", err)
	}
	return func() { in.Close(); c.Wait() }, nil
}

// beAttackers carries out the orders that in begins with, and stops at its end.
func beAttackers(in io.Reader) error {
	var o orders
	rest := json.NewDecoder(in)
	if err := rest.Decode(&o); err != nil {
		return err
	}
	s := &server{address: o.Address, searchKey: o.SearchKey, dataKey: o.DataKey, templateKey: o.TemplateKey, remote: o.Remote, leader: o.Leader, version: o.Version}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for _, a := range attacks {
		if a.name != o.Attack {
			continue
		}
		if a.remote != nil {
			close, err := s.beRemote(a.remote())
			if err != nil {
				return err
			}
			defer close()
		}
		for i := range a.at {
			group.Go(func() { a.run(s, i, stop) })
		}
	}
	io.Copy(io.Discard, in)
	close(stop)
	group.Wait()
	return nil
}
