package main

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/bucket/s3test"
)

// TestCredentialsOfStoresStayHidden publishes to stores that fail in several ways, and restores from them. The log, answers, metrics and
// command errors must not contain the keys.
func TestCredentialsOfStoresStayHidden(t *testing.T) {
	const secret, wrong = "canary-1/secret+key", "canary-2-access-key"
	for _, x := range []struct {
		name   string
		access string
		fault  s3test.Fault
		ends   bool // the store does not exist
		want   string
	}{
		{name: "none", access: s3test.AccessKey, want: "svc_publish_failing 0"},
		{name: "refused", access: s3test.AccessKey, fault: s3test.Refused, want: "svc_publish_failing 1"},
		{name: "lost", access: s3test.AccessKey, fault: s3test.Lost, want: "svc_publish_failing 1"},
		{name: "torn", access: s3test.AccessKey, fault: s3test.Torn, want: "svc_publish_failing 1"},
		{name: "denied", access: wrong, want: "svc_publish_failing 1"},
		{name: "unreachable", access: wrong, ends: true, want: "svc_publish_failing 1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			s := s3test.New()
			s.Fault = func(*http.Request) s3test.Fault { return x.fault }
			t.Cleanup(s.Close)
			if x.ends {
				s.Close()
			}
			m := groupMember{start(t, filepath.Join(t.TempDir(), "data"), "--master-key", groupKey, "--log-level", "DEBUG", "--publish", "s3://backups/shop", "--publish-endpoint", s.URL,
				"--publish-region", "here-1", "--publish-access-key", x.access, "--publish-secret-key", secret, "--publish-interval", "10ms", "--experimental-allowed-ip-networks", "127.0.0.0/8")}
			m.ask("PATCH", "/experimental-features", `{"metrics": true}`)
			said := ""
			for deadline := time.Now().Add(time.Minute); !strings.Contains(said, x.want); time.Sleep(10 * time.Millisecond) {
				if said, _ = m.ask("GET", "/metrics", ""); time.Now().After(deadline) {
					t.Fatalf("the metrics lack %s", x.want)
				}
			}
			recent, _ := m.ask("GET", "/metrics/recent", "")
			if err := m.stop(); err != nil {
				t.Fatal(err)
			}
			said += recent + m.log.String()
			for _, c := range []restoreCommand{{List: true}, {Verify: true}, {To: filepath.Join(t.TempDir(), "to")}} {
				c.From, c.MasterKey, c.Endpoint, c.Region, c.AccessKey, c.SecretKey = "s3://backups/shop", groupKey, s.URL, "here-1", x.access, secret
				var out bytes.Buffer
				err := c.Run(program{getenv: func(string) (string, bool) { return "", false }, out: &out, err: &out})
				if err != nil {
					said += err.Error()
				}
				said += out.String()
			}
			for _, hidden := range []string{"canary", "Signature=", groupKey} {
				if at := strings.Index(said, hidden); at >= 0 {
					t.Errorf("%s is shown: %s", hidden, said[max(0, at-200):min(len(said), at+100)])
				}
			}
		})
	}
}

// TestErrorsHideSecretsOfEndpoints checks that the error for an endpoint with a password does not show the password.
func TestErrorsHideSecretsOfEndpoints(t *testing.T) {
	for _, endpoint := range []string{"https://me:canary@host", "https://me:canary@host/path", "ht tp://me:canary@host", "me:canary@host"} {
		c := restoreCommand{From: "s3://backups", List: true, Endpoint: endpoint, AccessKey: "a", SecretKey: "canary"}
		if _, err := restore(t, c); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
