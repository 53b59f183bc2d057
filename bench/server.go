package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// A server is a running svc and a client for it.
type server struct {
	process   *exec.Cmd
	client    *fasthttp.HostClient
	key       string // the master key, "" for none
	log       *bytes.Buffer
	exited    chan error
	startTime time.Duration // from the start of the process to the first answer
}

// start starts the server on its data directory and waits until it answers.
func (m *measurement) start(ctx context.Context) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	limit := max(100<<20, 2*len(m.data.payload))
	args := []string{"--db-path", m.dir, "--http-addr", address, "--log-level", "WARN", "--no-analytics", "--http-payload-size-limit", strconv.Itoa(limit)}
	args = append(args, m.arguments...)
	if m.Profiles != "" {
		args = append(args, "--pprof")
	}
	if m.masterKey != "" {
		args = append(args, "--master-key", m.masterKey)
	}
	command := append(append([]string(nil), m.under...), m.binary)
	command = append(command, args...)
	s := &server{
		key:     m.masterKey,
		process: exec.CommandContext(ctx, command[0], command[1:]...),
		client:  &fasthttp.HostClient{Addr: address, MaxConns: 2 * mostAtOnce, MaxConnWaitTimeout: 10 * time.Minute, ReadTimeout: 10 * time.Minute, MaxIdleConnDuration: time.Minute},
		log:     new(bytes.Buffer),
		exited:  make(chan error, 1),
	}
	s.process.Stderr = s.log
	s.process.Env = append(os.Environ(), m.environment...)
	began := time.Now()
	if err := startOn(m.processors, s.process); err != nil {
		return nil, fmt.Errorf("cannot start the server: %w", err)
	}
	go func() { s.exited <- s.process.Wait() }()
	for {
		if _, err := s.do(fasthttp.MethodGet, "/health", "", nil); err == nil {
			s.startTime = time.Since(began)
			return s, nil
		}
		select {
		case err := <-s.exited:
			return nil, fmt.Errorf("the server stopped at its start: %v\n%s", err, s.log)
		case <-time.After(time.Millisecond):
		}
		if time.Since(began) > time.Minute {
			s.kill()
			return nil, fmt.Errorf("the server does not answer\n%s", s.log)
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// stop ends the server in an orderly way.
func (s *server) stop() error {
	s.client.CloseIdleConnections()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("cannot stop the server: %w", err)
	}
	select {
	case err := <-s.exited:
		s.exited <- nil
		if err != nil {
			return fmt.Errorf("the server ended with %w\n%s", err, s.log)
		}
		return nil
	case <-time.After(time.Minute):
		return errors.New("the server does not stop")
	}
}

// kill ends the server if it still runs.
func (s *server) kill() {
	select {
	case <-s.exited:
	default:
		_ = s.process.Process.Kill()
		<-s.exited
	}
	s.exited <- nil
}

// do sends a request and returns the body of the answer; a status of 400 and more is an error.
func (s *server) do(method, path, contentType string, body []byte) ([]byte, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(method)
	req.SetRequestURI("http://" + s.client.Addr + path)
	if s.key != "" {
		req.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+s.key)
	}
	if contentType != "" {
		req.Header.SetContentType(contentType)
	}
	req.SetBodyRaw(body)
	if err := s.client.Do(req, resp); err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode() >= 400 {
		return nil, fmt.Errorf("%s %s: status %d: %s", method, path, resp.StatusCode(), resp.Body())
	}
	return bytes.Clone(resp.Body()), nil
}

func (s *server) post(path, contentType string, body []byte) ([]byte, error) {
	return s.do(fasthttp.MethodPost, path, contentType, body)
}

func (s *server) put(path string, body []byte) ([]byte, error) {
	return s.do(fasthttp.MethodPut, path, "application/json", body)
}

func (s *server) patch(path string, body []byte) ([]byte, error) {
	return s.do(fasthttp.MethodPatch, path, "application/json", body)
}

// finish waits until the task of an answer is finished.
func (s *server) finish(answer []byte, err error) error {
	if err != nil {
		return err
	}
	var task struct {
		TaskUID int             `json:"taskUid"`
		Status  string          `json:"status"`
		Error   json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(answer, &task); err != nil {
		return fmt.Errorf("cannot read the answer %.200s: %w", answer, err)
	}
	path := "/tasks/" + strconv.Itoa(task.TaskUID)
	// Wait a tenth of the time so far: this times quick tasks well, and does not disturb long ones.
	for began := time.Now(); ; time.Sleep(min(time.Since(began)/10+100*time.Microsecond, 50*time.Millisecond)) {
		answer, err := s.do(fasthttp.MethodGet, path, "", nil)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(answer, &task); err != nil {
			return fmt.Errorf("cannot read the task %.200s: %w", answer, err)
		}
		switch task.Status {
		case "succeeded":
			return nil
		case "failed", "canceled":
			return fmt.Errorf("task %d %s: %s", task.TaskUID, task.Status, task.Error)
		}
	}
}

// memory is what /proc says of the server's memory, in bytes.
type memory struct {
	resident, anonymous, peak int64
}

func (s *server) memory() memory {
	var m memory
	status, err := os.ReadFile(s.proc("status"))
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			m.resident = kib << 10
		case "RssAnon:":
			m.anonymous = kib << 10
		case "VmHWM:":
			m.peak = kib << 10
		}
	}
	return m
}

// written returns how many bytes the server has written to files so far, or 0 if the system does not report it.
func (s *server) written() int64 {
	io, err := os.ReadFile(s.proc("io"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(io)) {
		if n, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			bytes, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return bytes
		}
	}
	return 0
}

// resetPeak resets the peak of memory.
func (s *server) resetPeak() {
	_ = os.WriteFile(s.proc("clear_refs"), []byte("5"), 0) // where it is not allowed the peak counts from the start
}

// cpuSeconds is the CPU time of the server so far, or 0 if the system does not report it.
func (s *server) cpuSeconds() float64 { return cpuTime(s.process.Process.Pid).Seconds() }

func (s *server) proc(file string) string {
	return filepath.Join("/proc", strconv.Itoa(s.process.Process.Pid), file)
}

// diskBytes is the size of all files below dir.
func diskBytes(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // compaction removes files
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot measure the data directory: %w", err)
	}
	return n, nil
}
