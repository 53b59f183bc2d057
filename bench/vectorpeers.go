package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// peers is a Python process that holds the indexes of other libraries and measures them on command, so that rounds of theirs and ours
// alternate.
type peers struct {
	cmd     *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Reader
	list    []peer
}

type peer struct{ Name, Version string }

//go:embed peers.py
var peersProgram []byte

type peerCommand struct {
	Do      string `json:"do"`
	Peer    string `json:"peer,omitempty"`
	Effort  int    `json:"effort,omitempty"`
	Threads int    `json:"threads,omitempty"`
}

type peerAnswer struct {
	Peers   []peer
	Seconds float64
	Grown   int64 // bytes, by building
	Found   [][]int
}

// startPeers hands the vectors to a process of the Python interpreter.
func startPeers(ctx context.Context, python, dir string, s *vectorSet) (*peers, error) {
	program, base, queries := filepath.Join(dir, "peers.py"), filepath.Join(dir, "base.npy"), filepath.Join(dir, "queries.npy")
	if err := os.WriteFile(program, peersProgram, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the program for the peers: %w", err)
	}
	if err := s.base.writeNPY(base); err != nil {
		return nil, err
	}
	if err := s.queries.writeNPY(queries); err != nil {
		return nil, err
	}
	p := &peers{cmd: exec.CommandContext(ctx, python, program, base, queries)}
	p.cmd.Stderr = os.Stderr
	ask, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", python, err)
	}
	answers, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", python, err)
	}
	p.ask, p.answers = ask, bufio.NewReader(answers)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", python, err)
	}
	a, err := p.do(peerCommand{Do: "peers"})
	if err != nil {
		p.stop()
		return nil, err
	}
	p.list = a.Peers
	return p, nil
}

func (p *peers) do(c peerCommand) (a peerAnswer, err error) {
	line, err := json.Marshal(c)
	if err == nil {
		_, err = p.ask.Write(append(line, '\n'))
	}
	if err == nil {
		line, err = p.answers.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		return a, fmt.Errorf("cannot ask the peers (is numpy there, and one of hnswlib, faiss-cpu, usearch?): %w", err)
	}
	return a, nil
}

// stop ends the process by the end of its input.
func (p *peers) stop() {
	p.ask.Close()
	p.cmd.Wait()
}
