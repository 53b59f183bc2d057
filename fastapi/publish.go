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
	publishLag     = describe("publish_lag_seconds", "Age of the oldest change that is not in the bucket yet, in seconds.")
	publishBytes   = describe("publish_sent_bytes_total", "Bytes uploaded to the bucket, since the start.")
	publishObjects = describe("publish_objects_total", "Objects created in and removed from the bucket, since the start.", "action")
	publishErrors  = describe("publish_errors_total", "Failed requests to the bucket, since the start. They are retried.")
	publishDamaged = describe("publish_damaged_objects_total", "Objects that were found missing or damaged in the bucket, since the start.")
	publishFails   = describe("publish_failing", "1 while the data directory cannot be published, else 0.")
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
	counter(publishDamaged, st.Damaged)
	fails := 0.0
	if st.Problem != "" {
		fails = 1
	}
	gauge(publishFails, fails)
}
