package powercut

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Recorder follows a process and all its threads, and writes down what they do to files below one directory.
type Recorder struct {
	log  *Log
	tree int
	root string // absolute
	ends func() bool
	pid  int
	mem  *os.File // of the process

	threads map[int]*call
	paths   map[string]int  // of existing files and directories below root; "" is root itself
	nodes   int             // given out
	files   map[int]*opened // by descriptor
	sizes   map[int]int64   // of files, by node, for appending
}

// opened is a descriptor that is open.
type opened struct {
	node   int
	offset int64
	append bool
}

// call is the system call that a thread is in.
type call struct {
	inside bool
	regs   syscall.PtraceRegs // at its beginning
	since  int
}

// Supported reports whether programs can be followed here.
func Supported() bool { return true }

// Run starts a program and records what it does below a directory until it ends. Existing content is recorded as durable. started
// gets the process, and runs meanwhile. cmd's output may be connected. The error is one of the recording, not of the program. Several
// programs may be recorded at once, even in one log: an event is in the log before another program can learn of it.
func Run(cmd *exec.Cmd, o Options, started func(*os.Process)) error {
	runtime.LockOSThread() // ptrace takes orders from one thread
	defer runtime.UnlockOSThread()
	root, err := filepath.EvalSymlinks(o.Root)
	if err != nil {
		return err
	}
	r := &Recorder{log: o.Log, tree: o.Tree, root: root, ends: o.Ends, threads: map[int]*call{}, paths: map[string]int{"": 0}, nodes: 1, files: map[int]*opened{}, sizes: map[int]int64{}}
	if err := r.adopt(); err != nil {
		return err
	}
	if o.Adopted != nil {
		o.Adopted()
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.pid = cmd.Process.Pid
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(r.pid, &ws, 0, nil); err != nil || !ws.Stopped() {
		return fmt.Errorf("%s does not stop at its start: %w", cmd.Path, err)
	}
	if r.mem, err = os.Open(fmt.Sprintf("/proc/%d/mem", r.pid)); err != nil {
		return err
	}
	defer r.mem.Close()
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := syscall.PtraceSetOptions(r.pid, options); err != nil {
		return err
	}
	if err := syscall.PtraceSyscall(r.pid, 0); err != nil {
		return err
	}
	go started(cmd.Process)
	err = r.follow()
	_ = cmd.Wait() // already waited for: this only releases the connected output
	return err
}

// adopt records the existing content below root.
func (r *Recorder) adopt() error {
	return filepath.WalkDir(r.root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == r.root {
			return err
		}
		name, _ := strings.CutPrefix(at, r.root+"/")
		kind := Create
		if d.IsDir() {
			kind = Mkdir
		}
		node := r.make(kind, name)
		if !d.IsDir() {
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			r.write(node, 0, data)
			r.add(Event{Kind: Sync, Node: node, Since: r.log.length()})
		}
		dir, _ := r.parent(name)
		r.add(Event{Kind: Sync, Node: dir, Since: r.log.length()})
		return nil
	})
}

// add adds an event. If requested, it kills the process with this event, and the thread does not continue.
func (r *Recorder) add(e Event) {
	e.Tree = r.tree
	r.log.add(e)
	if r.pid > 0 && r.ends != nil && r.ends() {
		_ = syscall.Kill(r.pid, syscall.SIGKILL)
	}
}

// follow lets the threads run from system call to system call until the process ends.
func (r *Recorder) follow() error {
	for {
		var ws syscall.WaitStatus
		tid, err := syscall.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil) // other threads record other programs
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if ws.Exited() || ws.Signaled() {
			delete(r.threads, tid)
			if tid == r.pid {
				return nil
			}
			continue
		}
		signal := 0
		switch stop := ws.StopSignal(); {
		case stop == syscall.SIGTRAP|0x80:
			if err := r.stopped(tid); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		case stop == syscall.SIGTRAP: // a clone
		case stop == syscall.SIGSTOP && r.threads[tid] == nil: // a new thread
			r.threads[tid] = &call{}
		default:
			signal = int(stop)
		}
		if err := syscall.PtraceSyscall(tid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
}

// stopped takes up a thread at the beginning or the end of a system call.
func (r *Recorder) stopped(tid int) error {
	c := r.threads[tid]
	if c == nil {
		c = &call{}
		r.threads[tid] = c
	}
	if c.inside = !c.inside; c.inside {
		c.since = r.log.length()
		err := syscall.PtraceGetRegs(tid, &c.regs)
		if err == nil && c.regs.Orig_rax == unix.SYS_CLOSE {
			delete(r.files, int(c.regs.Rdi)) // before another thread can get the number
		}
		return err
	}
	switch c.regs.Orig_rax {
	case unix.SYS_OPENAT, unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_LSEEK, unix.SYS_READ, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
		unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE, unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_LINKAT,
		unix.SYS_COPY_FILE_RANGE, unix.SYS_SENDFILE, unix.SYS_SPLICE, unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_FALLOCATE, unix.SYS_SYMLINKAT,
		unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_CREAT, unix.SYS_OPEN, unix.SYS_UNLINK, unix.SYS_RMDIR, unix.SYS_MKDIR, unix.SYS_LINK:
	default:
		return nil
	}
	var end syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &end); err != nil {
		return err
	}
	result := int64(end.Rax)
	if result < 0 {
		return nil // it failed, and did nothing
	}
	return r.done(c, result)
}

// done records a system call that succeeded.
func (r *Recorder) done(c *call, result int64) error {
	a := c.regs
	switch a.Orig_rax {
	case unix.SYS_OPENAT:
		return r.open(int(int32(a.Rdi)), a.Rsi, int(a.Rdx), int(result))
	case unix.SYS_READ:
		if f := r.files[int(a.Rdi)]; f != nil {
			f.offset += result
		}
	case unix.SYS_LSEEK:
		if f := r.files[int(a.Rdi)]; f != nil {
			f.offset = result
		}
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		f := r.files[int(a.Rdi)]
		if f == nil {
			return nil
		}
		data := make([]byte, result)
		if _, err := r.mem.ReadAt(data, int64(a.Rsi)); err != nil {
			return fmt.Errorf("cannot read what was written: %w", err)
		}
		at := int64(a.R10)
		if a.Orig_rax == unix.SYS_WRITE {
			if f.append {
				f.offset = r.sizes[f.node]
			}
			at = f.offset
			f.offset += result
		}
		r.write(f.node, at, data)
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		if f := r.files[int(a.Rdi)]; f != nil {
			r.add(Event{Kind: Sync, Node: f.node, Since: c.since})
		}
	case unix.SYS_FTRUNCATE:
		if f := r.files[int(a.Rdi)]; f != nil {
			r.truncate(f.node, int64(a.Rsi))
		}
	case unix.SYS_COPY_FILE_RANGE:
		return r.copied(&a, result)
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return r.renamed(&a, Rename)
	case unix.SYS_LINKAT:
		return r.renamed(&a, Link)
	case unix.SYS_MKDIRAT:
		name, ok, err := r.path(int(int32(a.Rdi)), a.Rsi)
		if err == nil && ok {
			r.make(Mkdir, name)
		}
		return err
	case unix.SYS_UNLINKAT:
		name, ok, err := r.path(int(int32(a.Rdi)), a.Rsi)
		if err == nil && ok {
			r.forget(name)
			dir, base := r.parent(name)
			r.add(Event{Kind: Unlink, Dir: dir, Name: base})
		}
		return err
	default:
		return r.unknown(&a)
	}
	return nil
}

// unknown fails for calls that Go programs do not make today, where they concern a file that is followed.
func (r *Recorder) unknown(a *syscall.PtraceRegs) error {
	concerns := r.files[int(a.Rdi)] != nil
	switch a.Orig_rax {
	case unix.SYS_TRUNCATE, unix.SYS_RENAME, unix.SYS_SYMLINKAT, unix.SYS_CREAT, unix.SYS_OPEN, unix.SYS_UNLINK, unix.SYS_RMDIR, unix.SYS_MKDIR, unix.SYS_LINK:
		concerns = true
	case unix.SYS_SPLICE:
		concerns = r.files[int(a.Rdx)] != nil
	}
	if concerns {
		return fmt.Errorf("the program makes system call %d, which is not followed", a.Orig_rax)
	}
	return nil
}

func (r *Recorder) open(dir int, at uint64, flags, fd int) error {
	name, ok, err := r.path(dir, at)
	if err != nil || !ok {
		delete(r.files, fd)
		return err
	}
	node, there := r.paths[name]
	if !there {
		if flags&unix.O_CREAT == 0 {
			return fmt.Errorf("%s was opened, and nobody had made it", name)
		}
		node = r.make(Create, name)
	} else if flags&unix.O_TRUNC != 0 {
		r.truncate(node, 0)
	}
	r.files[fd] = &opened{node: node, append: flags&unix.O_APPEND != 0}
	return nil
}

func (r *Recorder) write(node int, at int64, data []byte) {
	r.sizes[node] = max(r.sizes[node], at+int64(len(data)))
	r.add(Event{Kind: Write, Node: node, Offset: at, Data: data})
}

func (r *Recorder) truncate(node int, size int64) {
	r.sizes[node] = size
	r.add(Event{Kind: Truncate, Node: node, Offset: size})
}

// copied records copy_file_range(2). It reads the bytes from the target file.
func (r *Recorder) copied(a *syscall.PtraceRegs, n int64) error {
	from, to := r.files[int(a.Rdi)], r.files[int(a.Rdx)]
	if to == nil || n == 0 {
		return nil
	}
	if a.Rsi != 0 || a.R10 != 0 {
		return errors.New("the program copies at offsets of its own, which is not followed")
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/fd/%d", r.pid, a.Rdx))
	if err != nil {
		return err
	}
	defer f.Close()
	data := make([]byte, n)
	if _, err := f.ReadAt(data, to.offset); err != nil && err != io.EOF {
		return err
	}
	r.write(to.node, to.offset, data)
	to.offset += n
	if from != nil {
		from.offset += n
	}
	return nil
}

func (r *Recorder) renamed(a *syscall.PtraceRegs, kind Kind) error {
	from, ok, err := r.path(int(int32(a.Rdi)), a.Rsi)
	if err != nil {
		return err
	}
	to, ok2, err := r.path(int(int32(a.Rdx)), a.R10)
	if err != nil || !ok && !ok2 {
		return err
	}
	if !ok || !ok2 {
		return fmt.Errorf("%s is moved to or from %s, across the edge of what is followed", from, to)
	}
	node := r.paths[from]
	dir, base := r.parent(from)
	toDir, toBase := r.parent(to)
	r.add(Event{Kind: kind, Node: node, Dir: dir, Name: base, ToDir: toDir, To: toBase})
	below := map[string]int{}
	for p, n := range r.paths {
		if p == from || strings.HasPrefix(p, from+"/") {
			below[to+p[len(from):]] = n
		}
	}
	if kind == Rename {
		r.forget(from)
	}
	for p, n := range below {
		r.paths[p] = n
	}
	return nil
}

func (r *Recorder) make(kind Kind, name string) int {
	node := r.nodes
	r.nodes++
	dir, base := r.parent(name)
	r.paths[name] = node
	r.add(Event{Kind: kind, Node: node, Dir: dir, Name: base})
	return node
}

func (r *Recorder) forget(name string) {
	for p := range r.paths {
		if p == name || strings.HasPrefix(p, name+"/") {
			delete(r.paths, p)
		}
	}
}

func (r *Recorder) parent(name string) (dir int, base string) {
	at := strings.LastIndexByte(name, '/')
	return r.paths[name[:max(at, 0)]], name[at+1:]
}

// path reads a path from the process's memory; ok says that it is below root, and name then is what follows.
func (r *Recorder) path(dir int, at uint64) (name string, ok bool, err error) {
	var b [4096]byte
	n, err := r.mem.ReadAt(b[:], int64(at))
	end := strings.IndexByte(string(b[:n]), 0)
	if end < 0 {
		return "", false, fmt.Errorf("cannot read a path: %w", err)
	}
	full := string(b[:end])
	if !filepath.IsAbs(full) {
		base := "cwd"
		if dir != unix.AT_FDCWD {
			base = fmt.Sprintf("fd/%d", dir)
		}
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", r.pid, base))
		if err != nil {
			return "", false, nil // closed since: nothing below root is opened relative to a removed directory
		}
		full = filepath.Join(link, full)
	}
	full = filepath.Clean(full)
	if full == r.root {
		return "", true, nil
	}
	name, ok = strings.CutPrefix(full, r.root+"/")
	return name, ok, nil
}
