package fastapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"svc/internal/publish"
)

// Publisher is what a server knows of the publication of its data directory.
type Publisher interface {
	Status() publish.Status
}

var (
	publishLag     = describe("publish_lag_seconds", "How long the data directory has had changes that are not in the bucket yet.")
	publishBytes   = describe("publish_sent_bytes_total", "Bytes of objects sent to the bucket.")
	publishObjects = describe("publish_objects_total", "Objects made in and removed from the bucket.", "action")
	publishErrors  = describe("publish_errors_total", "Requests to the bucket that failed. They are tried again.")
	publishFails   = describe("publish_failing", "1 while the data directory cannot be published.")
)

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
	fails := 0.0
	if st.Problem != "" {
		fails = 1
	}
	gauge(publishFails, fails)
}
