package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// tables shows each figure of svc and of each peer, and their ratio.
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
	c.upkeepTables(&b)
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

// sizeTables shows what svc alone costs in collections of different sizes, and how that grows from the first to the last.
func sizeTables(b *bytes.Buffer, sizes []*comparison) {
	if len(sizes) == 0 {
		return
	}
	last := len(sizes) - 1
	table := func(title string, columns []string, of func(a *asked) []string, cost func(a *asked) float64) {
		fmt.Fprintf(b, "| %s |", title)
		rule := "\n| --- |"
		for _, c := range sizes {
			for _, name := range columns {
				if last > 0 {
					name += fmt.Sprintf(", %d documents", c.data.documents)
				}
				fmt.Fprintf(b, " %s |", name)
				rule += " --- |"
			}
		}
		if last > 0 {
			fmt.Fprintf(b, " CPU grows |")
			rule += " --- |"
		}
		b.WriteString(rule + "\n")
		for i, k := range sizes[0].kinds {
			fmt.Fprintf(b, "| %s |", k.name)
			for _, c := range sizes {
				for _, cell := range of(&c.figures[i][0]) {
					fmt.Fprintf(b, " %s |", cell)
				}
			}
			if last > 0 {
				fmt.Fprintf(b, " × %.1f |", cost(&sizes[last].figures[i][0])/cost(&sizes[0].figures[i][0]))
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	table("first queries, limit 20", []string{"CPU ms each", "p99 ms", "worst"}, func(a *asked) []string {
		var r request
		_ = json.Unmarshal(a.worst, &r) // it was marshaled from one
		return []string{fmt.Sprintf("%.2f", a.cpuPerFirst), fmt.Sprintf("%.1f", a.first.quantile(0.99)), fmt.Sprintf("%.1f ms `%s`", a.first.quantile(1), r.Q)}
	}, func(a *asked) float64 { return a.cpuPerFirst })
	table(fmt.Sprintf("beside 20 updates a second, %d connections", connections), []string{"QPS", "p99 ms", "CPU ms each", "an update, median ms"},
		func(a *asked) []string {
			u := &a.updating
			return []string{fmt.Sprintf("%.0f", u.qps()), fmt.Sprintf("%.1f", u.took.quantile(0.99)), fmt.Sprintf("%.2f", u.cpu()), fmt.Sprintf("%.1f", u.updates.quantile(0.5))}
		}, func(a *asked) float64 { return a.updating.cpu() })
}
