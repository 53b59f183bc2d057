package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"svc/internal/group"
	"svc/internal/logs/logstest"
)

// deployed is a member of a group as an example of deploy/ starts it.
type deployed struct {
	host string // host name in the example
	env  map[string]string
	stop time.Duration // time that it gets to stop
}

// deployFile reads a file of deploy/.
func deployFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// decodeYAML decodes all documents of a text.
func decodeYAML(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var one map[string]any
		if err := d.Decode(&one); err != nil {
			if len(all) == 0 || err.Error() != "EOF" {
				t.Fatal(err)
			}
			return all
		}
		all = append(all, one)
	}
}

// within returns the value at a path of members and indexes.
func within(t *testing.T, v any, at ...any) any {
	t.Helper()
	for _, step := range at {
		switch key := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			if m[key] == nil {
				t.Fatalf("no value at %s of %v", key, at)
			}
			v = m[key]
		case int:
			v = v.([]any)[key]
		}
	}
	return v
}

// imageEnv returns the variables that deploy/Dockerfile sets.
func imageEnv(t *testing.T) map[string]string {
	t.Helper()
	_, line, _ := strings.Cut(deployFile(t, "Dockerfile"), "\nENV ")
	line, _, _ = strings.Cut(line, "\n")
	env := map[string]string{}
	for pair := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

func composeVoters(t *testing.T) (all []deployed) {
	services := within(t, decodeYAML(t, deployFile(t, "compose-voters.yaml"))[0], "services").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(services)) {
		s := services[name]
		env := imageEnv(t)
		for key, value := range within(t, s, "environment").(map[string]any) {
			env[key] = fmt.Sprint(value)
		}
		stop, err := time.ParseDuration(within(t, s, "stop_grace_period").(string))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, deployed{within(t, s, "hostname").(string), env, stop})
	}
	return all
}

var kubernetesVariable = regexp.MustCompile(`\$\((\w+)\)`)

func kubernetesVoters(t *testing.T) (all []deployed) {
	objects := map[string]map[string]any{}
	for _, o := range decodeYAML(t, deployFile(t, "kubernetes-voters.yaml")) {
		objects[fmt.Sprint(o["kind"], " ", within(t, o, "metadata", "name"))] = o
	}
	set := objects["StatefulSet svc"]
	governing := fmt.Sprint(within(t, set, "spec", "serviceName"))
	headless := objects["Service "+governing]
	if within(t, headless, "spec", "clusterIP") != "None" || within(t, headless, "spec", "publishNotReadyAddresses") != true {
		t.Error("voters cannot find each other before they are ready")
	}
	if within(t, set, "spec", "podManagementPolicy") != "Parallel" {
		t.Error("the first voter would wait for itself")
	}
	if within(t, objects["PodDisruptionBudget svc"], "spec", "maxUnavailable") != 1 {
		t.Error("a drain of nodes may take two voters")
	}
	labels := within(t, set, "spec", "template", "metadata", "labels")
	for _, selector := range []any{
		within(t, headless, "spec", "selector"), within(t, objects["Service svc"], "spec", "selector"),
		within(t, objects["PodDisruptionBudget svc"], "spec", "selector", "matchLabels"), within(t, set, "spec", "selector", "matchLabels"),
	} {
		if fmt.Sprint(selector) != fmt.Sprint(labels) {
			t.Errorf("%v does not select %v", selector, labels)
		}
	}
	pod := within(t, set, "spec", "template", "spec")
	if within(t, pod, "enableServiceLinks") != false {
		t.Error("the cluster sets variables that svc refuses")
	}
	container := within(t, pod, "containers", 0)
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		if within(t, container, probe, "httpGet", "path") != "/health" {
			t.Errorf("the %s uses another address", probe)
		}
	}
	stop := time.Duration(within(t, pod, "terminationGracePeriodSeconds").(int)) * time.Second
	for i := range within(t, set, "spec", "replicas").(int) {
		env := imageEnv(t)
		name := fmt.Sprintf("svc-%d", i)
		for _, e := range within(t, container, "env").([]any) {
			key := within(t, e, "name").(string)
			value, _ := e.(map[string]any)["value"].(string)
			value = kubernetesVariable.ReplaceAllStringFunc(value, func(v string) string { return env[v[2:len(v)-1]] })
			switch key {
			case "POD_NAME":
				value = name
			case "POD_NAMESPACE":
				value = "default"
			case "SVC_MASTER_KEY":
				value = groupKey
			}
			env[key] = value
		}
		all = append(all, deployed{name + "." + governing + ".default.svc.cluster.local", env, stop})
	}
	return all
}

func systemdVoters(t *testing.T) (all []deployed) {
	unit, file := deployFile(t, "svc.service"), deployFile(t, "voter.env")
	own := map[string]string{}
	_, line, _ := strings.Cut(unit, "\nEnvironment=")
	line, _, _ = strings.Cut(line, "\n")
	for _, pair := range append(strings.Fields(line), strings.Split(file, "\n")...) {
		if name, value, ok := strings.Cut(pair, "="); ok && !strings.HasPrefix(name, "#") {
			own[name] = value
		}
	}
	_, seconds, _ := strings.Cut(unit, "\nTimeoutStopSec=")
	seconds, _, _ = strings.Cut(seconds, "\n")
	stop, err := time.ParseDuration(seconds + "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		env := maps.Clone(own)
		for _, name := range []string{"SVC_HTTP_ADDR", "SVC_GROUP_ADDR"} {
			env[name] = strings.Replace(env[name], "10.0.0.1", host, 1)
		}
		all = append(all, deployed{host, env, stop})
	}
	return all
}

// TestDeployedVoters starts three processes with the settings of the examples in deploy/, with addresses and directories of this machine.
// They must form a group; the leader must hand over when it is stopped, and exit. checkDeployed compares the time that it gets.
func TestDeployedVoters(t *testing.T) {
	for name, read := range map[string]func(*testing.T) []deployed{"compose": composeVoters, "kubernetes": kubernetesVoters, "systemd": systemdVoters} {
		t.Run(name, func(t *testing.T) {
			all := read(t)
			if len(all) != 3 {
				t.Fatalf("there are %d voters", len(all))
			}
			local := []string{"127.0.0.21", "127.0.0.22", "127.0.0.23"}
			port := freePort(t, 2, local...)
			var here []string // replacements, as pairs of old and new
			for i, d := range all {
				here = append(here, d.host, local[i])
			}
			here = append(here, ":7700", fmt.Sprintf(":%d", port), ":7701", fmt.Sprintf(":%d", port+1))
			g := deployedGroup{t: t}
			for i, d := range all {
				if strings.HasPrefix(d.env["SVC_MASTER_KEY"], "${SVC_MASTER_KEY:?") || d.env["SVC_MASTER_KEY"] == "" {
					d.env["SVC_MASTER_KEY"] = groupKey
				}
				checkDeployed(t, d)
				dir := t.TempDir()
				replace := strings.NewReplacer(append(here, "0.0.0.0", local[i], "/data", filepath.ToSlash(dir), "/var/lib/svc", filepath.ToSlash(dir))...)
				g.start(replace, d.env, fmt.Sprintf("http://%s:%d", local[i], port))
			}
			leader := g.leads("")
			former := slices.Index(g.urls, leader)
			if err := g.processes[former].Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			g.leads(leader)
			if err := g.processes[former].Wait(); err != nil {
				t.Errorf("the leader ends with %v: %s", err, g.logs[former].String())
			}
		})
	}
}

// checkDeployed compares the options of an example with those of the program.
func checkDeployed(t *testing.T, d deployed) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	o, err := parseServe(t, nil, d.env, "") // refuses unknown variables
	t.Chdir(dir)
	switch {
	case err != nil:
		t.Fatalf("%s: %v", d.host, err)
	case !o.Group.votes() || o.Env != "production":
		t.Errorf("%s is not a voter in production", d.host)
	case !strings.HasPrefix(o.Group.Addr, d.host+":"):
		t.Errorf("%s has the address %s", d.host, o.Group.Addr)
	case len(o.Group.Join) != 3:
		t.Errorf("%s knows %q", d.host, o.Group.Join)
	case o.Group.Drain <= 0 || o.Group.Drain+2*stopTime > d.stop:
		t.Errorf("%s drains for %v, but gets only %v to stop", d.host, o.Group.Drain, d.stop)
	}
}

// deployedGroup is the running processes of an example.
type deployedGroup struct {
	t         *testing.T
	urls      []string
	processes []*exec.Cmd
	logs      []*logstest.Buffer
}

func (g *deployedGroup) start(replace *strings.Replacer, env map[string]string, url string) {
	g.t.Helper()
	p, log := exec.Command(os.Args[0]), new(logstest.Buffer)
	p.Stdout, p.Stderr = log, log
	p.Env = []string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	for name, value := range env {
		if name == "SVC_GROUP_DRAIN" {
			value = "300ms" // the value of the example is checked instead
		}
		p.Env = append(p.Env, name+"="+replace.Replace(value))
	}
	if err := p.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	g.urls, g.processes, g.logs = append(g.urls, url), append(g.processes, p), append(g.logs, log)
}

// leads waits until three members vote and one of them, other than former, leads and is healthy. It returns its URL.
func (g *deployedGroup) leads(former string) string {
	g.t.Helper()
	client := http.Client{Timeout: 2 * time.Second}
	last := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for _, url := range g.urls {
			if url == former {
				continue
			}
			req, err := http.NewRequest("GET", url+"/group", nil)
			if err != nil {
				g.t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+groupKey)
			resp, err := client.Do(req)
			if err != nil {
				last = err.Error()
				continue
			}
			s := new(group.Status)
			err = json.NewDecoder(resp.Body).Decode(s)
			resp.Body.Close()
			last = fmt.Sprintf("%+v", s)
			votes := 0
			for _, m := range s.Members {
				if m.Votes {
					votes++
				}
			}
			if err != nil || votes != 3 || !s.Voter.Leads {
				continue
			}
			if resp, err := client.Get(url + "/health"); err == nil {
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					return url
				}
			}
		}
	}
	for _, log := range g.logs {
		g.t.Log(log.String())
	}
	g.t.Fatalf("no leader: %s", last)
	return ""
}
