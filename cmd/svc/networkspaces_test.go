package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

var networkNamespaces = flag.Bool("network-namespaces", false, "run TestNetworkOfNamespaces, for -network-rounds rounds; it takes root and iproute2")

// namespace is a network namespace of Linux with two links: one to the bridge of the others, and one to the test. A nil namespace is
// that of the test.
type namespace struct {
	t       *testing.T
	name    string
	ip      string // address for the others
	inside  string // link to the bridge
	port    string // end of that link at the bridge
	address string // at which the others reach its listeners
	direct  string // at which the test reaches them
}

// iproute runs a command of iproute2.
func iproute(t *testing.T, program string, words ...string) error {
	t.Helper()
	out, err := exec.Command(program, words...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(words, " "), err, out)
	}
	return nil
}

// ownNetwork is set in a test that inOwnNetwork runs.
const ownNetwork = "TEST_IN_OWN_NETWORK"

// inOwnNetwork runs the test in another process that has a network namespace of its own, and returns true when it has ended. It returns
// false in that process, and where no namespace can be created. Links that a test creates in the namespace of the machine would disturb
// other tests: browsers drop their requests when the network changes.
func inOwnNetwork(t *testing.T) bool {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 || os.Getenv(ownNetwork) != "" {
		return false
	}
	name := fmt.Sprintf("sv%d-own", os.Getpid())
	if err := iproute(t, "ip", "netns", "add", name); err != nil {
		t.Logf("no network namespace: %v", err)
		return false
	}
	t.Cleanup(func() { _ = iproute(t, "ip", "netns", "del", name) })
	if err := iproute(t, "ip", "-n", name, "link", "set", "lo", "up"); err != nil {
		t.Fatal(err)
	}
	words := []string{"netns", "exec", name, os.Args[0], "-test.v", "-test.count=1", "-test.run=^" + t.Name() + "$"}
	if end, ok := t.Deadline(); ok {
		words = append(words, "-test.timeout="+(time.Until(end)-5*time.Second).String()) // so that this process can report it
	}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			words = append(words, "-"+f.Name+"="+f.Value.String())
		}
	})
	cmd := exec.Command("ip", words...)
	cmd.Env = append(os.Environ(), ownNetwork+"=1")
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case err != nil:
		t.Errorf("%v:\n%s", err, text)
	case strings.Contains(text, "--- SKIP"):
		t.Skip(text)
	default:
		t.Log(text)
	}
	return true
}

// newNamespaces creates namespaces and the bridge between them, in a test that inOwnNetwork runs.
func newNamespaces(t *testing.T, n int) ([]*namespace, error) {
	t.Helper()
	if os.Getenv(ownNetwork) == "" {
		return nil, errors.New("network namespaces need root on Linux, and iproute2")
	}
	const direct = "10.64.0."
	tag := fmt.Sprintf("sv%d", os.Getpid()%100_000) // names of namespaces are those of the whole machine
	bridge := tag + "br"
	var failed error
	do := func(words ...string) {
		if failed == nil {
			failed = iproute(t, "ip", words...)
		}
	}
	t.Cleanup(func() { _ = iproute(t, "ip", "link", "del", bridge) })
	do("link", "add", bridge, "type", "bridge")
	do("link", "set", bridge, "up")
	var all []*namespace
	for i := range n {
		in := &namespace{t: t, name: fmt.Sprintf("%s-%d", tag, i), ip: fmt.Sprintf("10.213.7.%d", i+1), port: fmt.Sprintf("%sp%d", tag, i), direct: fmt.Sprintf("%s%d:7700", direct, 4*i+2)}
		in.inside, in.address = in.port+"i", in.ip+":7700"
		own, there := fmt.Sprintf("%st%d", tag, i), fmt.Sprintf("%su%d", tag, i)
		t.Cleanup(func() {
			_ = iproute(t, "ip", "link", "del", in.port)
			_ = iproute(t, "ip", "link", "del", own)
			_ = iproute(t, "ip", "netns", "del", in.name)
		})
		do("netns", "add", in.name)
		do("link", "add", in.port, "type", "veth", "peer", "name", in.inside)
		do("link", "set", in.port, "master", bridge, "up")
		do("link", "set", in.inside, "netns", in.name)
		do("link", "add", own, "type", "veth", "peer", "name", there)
		do("link", "set", there, "netns", in.name)
		do("addr", "add", fmt.Sprintf("%s%d/30", direct, 4*i+1), "dev", own)
		do("link", "set", own, "up")
		for _, words := range []string{
			"addr add " + in.ip + "/24 dev " + in.inside, fmt.Sprintf("addr add %s%d/30 dev %s", direct, 4*i+2, there),
			"link set " + in.inside + " up", "link set " + there + " up", "link set lo up",
		} {
			do(append([]string{"-n", in.name}, strings.Fields(words)...)...)
		}
		all = append(all, in)
	}
	return all, failed
}

// listens returns the address at which an instance in the namespace must listen to be reached by the test.
func (n *namespace) listens() string {
	if n == nil {
		return ""
	}
	return n.direct
}

// command returns a command that runs a program in the namespace.
func (n *namespace) command(program string, arguments ...string) *exec.Cmd {
	if n == nil {
		return exec.Command(program, arguments...)
	}
	// A program that is reached at two addresses listens on all.
	for i := range arguments {
		if arguments[i] == n.direct {
			arguments[i] = "0.0.0.0:7700"
		}
	}
	return exec.Command("ip", append([]string{"netns", "exec", n.name, program}, arguments...)...)
}

// cut drops packets from and to the others, or stops doing so.
func (n *namespace) cut(off bool) {
	n.t.Helper()
	state := "up"
	if off {
		state = "down"
	}
	if err := iproute(n.t, "ip", "link", "set", n.port, state); err != nil {
		n.t.Fatal(err)
	}
}

// mute drops packets from this namespace to another one, or stops doing so. The other direction works.
func (n *namespace) mute(to *namespace, off bool) {
	n.t.Helper()
	words := []string{"-n", n.name, "neigh", "del", to.ip, "dev", n.inside}
	if off { // there is no such neighbour entry
		words = []string{"-n", n.name, "neigh", "replace", to.ip, "lladdr", "02:00:00:00:00:01", "nud", "permanent", "dev", n.inside}
	}
	if err := iproute(n.t, "ip", words...); err != nil {
		n.t.Fatal(err)
	}
}

// netem delays packets to the namespace and loses some; "" ends that. It reports whether the kernel supports it.
func (n *namespace) netem(words string) bool {
	if words == "" {
		return iproute(n.t, "tc", "qdisc", "del", "dev", n.port, "root") == nil
	}
	return iproute(n.t, "tc", append(strings.Fields("qdisc add dev "+n.port+" root netem"), strings.Fields(words)...)...) == nil
}

// TestNetworkOfNamespaces is TestNetworkKeepsItsPromises over links of the kernel: a cut link is silent, its connections stay open, and
// with netem, packets come late or not at all.
func TestNetworkOfNamespaces(t *testing.T) {
	if !*networkNamespaces {
		t.Skip("the long form of make network-test runs it")
	}
	needCommands(t, "ip", "tc")
	if inOwnNetwork(t) {
		return
	}
	rooms, err := newNamespaces(t, 3)
	if err != nil {
		t.Skip(err)
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	var all []*member
	for i, room := range rooms {
		in := &member{t: t, name: string(rune('a' + i)), data: filepath.Join(t.TempDir(), "data"), room: room,
			options: []string{"--experimental-proxy-backoff-timeout-seconds", "1", "--experimental-proxy-request-timeout-seconds", "2"}}
		in.start()
		t.Cleanup(in.kill)
		all = append(all, in)
	}
	joined(all)
	netem := all[0].room.netem("delay 1ms") && all[0].room.netem("")
	t.Logf("seed %d, %d rounds, netem: %v", seed, *networkRounds, netem)
	w := &writer{random: random, docs: map[int]*written{}}
	w.steps(all[0], 5)
	cuts, kills, delays := 0, 0, 0
	for round := range *networkRounds {
		in := all[random.IntN(len(all))]
		switch k := random.IntN(3); {
		case k == 0 && netem:
			delays++
			in.room.netem(fmt.Sprintf("delay %dms 20ms loss %d%%", 1+random.IntN(100), random.IntN(20)))
			w.steps(all[0], random.IntN(5))
			in.room.netem("")
		case k == 1:
			kills++
			in.kill()
			if in != all[0] {
				w.steps(all[0], random.IntN(3))
			}
			in.start()
		default:
			cuts++
			in.room.cut(true)
			w.steps(all[0], random.IntN(5))
			if random.IntN(3) == 0 {
				_, _, _ = all[0].ask("PATCH", "/network", `{"shards":`+shapes[random.IntN(len(shapes))]+`}`, nil)
			}
			in.room.cut(false)
		}
		w.steps(all[0], random.IntN(5))
		if round%8 == 7 || round == *networkRounds-1 {
			settled(t, all, peace)
			all[0].change(`{}`)
			w.check(t, all)
			if t.Failed() {
				for _, in := range all {
					t.Logf("%s:\n%s", in.name, in.log.String())
				}
				t.FailNow()
			}
		}
	}
	t.Logf("%d cuts, %d kills, %d times of delay and loss", cuts, kills, delays)
}
