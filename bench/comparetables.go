package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// tables shows each figure of svc beside that of each peer, and how they stand to each other.
func (c *comparison) tables() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, %d documents.\n", c.data.title, c.data.documents)
	table := func(title string, of func(*asked) float64) {
		fmt.Fprintf(&b, "\n| %s | svc |", title)
		rule := "\n| --- | ---: |"
		for _, p := range c.programs[1:] {
			fmt.Fprintf(&b, " %s | svc ⁄ %[1]s |", p.name)
			rule += " ---: | ---: |"
		}
		b.WriteString(rule + "\n")
		for i, k := range c.kinds {
			own := of(&c.figures[i][0])
			fmt.Fprintf(&b, "| %s | %.3g |", k.name, own)
			for j := range c.programs[1:] {
				other := of(&c.figures[i][j+1])
				fmt.Fprintf(&b, " %.3g | %.2f |", other, own/other)
			}
			b.WriteByte('\n')
		}
	}
	if slices.Contains(c.measured, "first") {
		table("first queries, CPU ms", func(a *asked) float64 { return a.cpuPerFirst })
		table("first queries, p99 ms", func(a *asked) float64 { return a.first.quantile(0.99) })
		table("first queries, worst ms", func(a *asked) float64 { return a.first.quantile(1) })
		c.worst(&b)
	}
	if slices.Contains(c.measured, "between") {
		title := fmt.Sprintf("%d queries after each update, CPU ms", askedBetween)
		table(title, func(a *asked) float64 { return 1000 * a.between.searching / float64(len(a.between.took)) })
		table("the update, CPU ms", func(a *asked) float64 { return 1000 * a.between.changing / float64(a.between.updates) })
	}
	if slices.Contains(c.measured, "updates") {
		table("under updates, CPU ms", func(a *asked) float64 { return a.updating.cpu() })
		table("under updates, QPS", func(a *asked) float64 { return a.updating.qps() })
		table("under updates, p99 ms", func(a *asked) float64 { return a.updating.took.quantile(0.99) })
		table("updates, median ms", func(a *asked) float64 { return a.updating.updates.quantile(0.5) })
	}
	if slices.Contains(c.measured, "warm") {
		table("warm, CPU ms", func(a *asked) float64 { return a.warm.cpu() })
		table("warm, QPS", func(a *asked) float64 { return a.warm.qps() })
		table("warm, p99 ms", func(a *asked) float64 { return a.warm.took.quantile(0.99) })
	}
	return b.Bytes()
}

// worst names the first query of each kind that took longest.
func (c *comparison) worst(b *bytes.Buffer) {
	b.WriteString("\n| worst first query |")
	rule := "\n| --- |"
	for _, p := range c.programs {
		fmt.Fprintf(b, " %s |", p.name)
		rule += " --- |"
	}
	b.WriteString(rule + "\n")
	for i, k := range c.kinds {
		fmt.Fprintf(b, "| %s |", k.name)
		for j := range c.programs {
			f := &c.figures[i][j]
			var r request
			_ = json.Unmarshal(f.worst, &r) // it was marshaled from one
			fmt.Fprintf(b, " `%s` %.1f ms |", r.Q, f.first.quantile(1))
		}
		b.WriteByte('\n')
	}
}
