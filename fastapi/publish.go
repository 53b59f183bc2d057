package fastapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"svc/internal/publish"
)

// Publisher is what a server knows about the publication of its data directory.
type Publisher interface {
	Status() publish.Status
}

var (
	publishLag     = describe("publish_lag_seconds", "Age of the oldest change that is not in the bucket yet, in seconds.")
	publishBytes   = describe("publish_sent_bytes_total", "Bytes uploaded to the bucket, since the start.")
	publishObjects = describe("publish_objects_total", "Objects created in and removed from the bucket, since the start.", "action")
	publishErrors  = describe("publish_errors_total", "Failed requests to the bucket, since the start. They are retried.")
	publishDamaged = describe("publish_damaged_objects_total", "Objects that were found missing or damaged in the bucket, since the start.")
	publishFails   = describe("publish_failing", "1 while the data directory cannot be published, else 0.")
)

// collectPublication collects the metrics of the publisher. A server that does not publish has none of them.
func (c state) collectPublication(to chan<- prometheus.Metric, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	if c.s.publisher == nil {
		return
	}
	counter := func(d *prometheus.Desc, n int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	st := c.s.publisher.Status()
	if st.Known {
		gauge(publishLag, st.Lag.Seconds())
	}
	counter(publishBytes, st.Bytes)
	counter(publishObjects, st.Objects, "made")
	counter(publishObjects, st.Removed, "removed")
	counter(publishErrors, st.Errors)
	counter(publishDamaged, st.Damaged)
	fails := 0.0
	if st.Problem != "" {
		fails = 1
	}
	gauge(publishFails, fails)
}

// publicationView shows the state of the publication of the data directory.
type publicationView struct {
	Store    string   `json:"store"`
	Position string   `json:"position"` // that is published; "": none
	Lag      *float64 `json:"lagSeconds"`
	Sent     int64    `json:"sentBytes"`
	Errors   int64    `json:"errors"`
	Damaged  int64    `json:"damagedObjects"`
	Problem  string   `json:"problem"` // why nothing is published now; "": nothing is wrong
}

func (s *Server) publication() *publicationView {
	if s.publisher == nil {
		return nil
	}
	st := s.publisher.Status()
	v := &publicationView{Store: st.Store, Position: st.Position, Sent: st.Bytes, Errors: st.Errors, Damaged: st.Damaged, Problem: st.Problem}
	if st.Known {
		lag := st.Lag.Seconds()
		v.Lag = &lag
	}
	return v
}
