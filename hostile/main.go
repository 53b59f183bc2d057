// Hostile attacks its own svc as a client with a public search key can, and as one with a key for documents, and reports the effect
// on another client. An attack fails the test if it
//
//   - ends the process, or takes its memory beyond the limit,
//   - slows the searches of an honest client for more than two seconds in a row: their 99th percentile in each quarter of a second is
//     above five times the quiet value, and a refused search counts as slow,
//   - leaves the memory more than 100 MiB above its initial value after 30 seconds,
//   - gives the attackers what they have no right to,
//   - leaves a search running or waiting after all clients have left, or
//   - keeps the server from ending within 10 seconds of SIGTERM.
//
// With --busy, clients send large requests to one server and to a network of three while busy loops take the processors. A request
// without an answer for five seconds fails the load, and so does a search that still runs after its clients have left.
//
// Everything stays on loopback and in a temporary directory. It runs on Linux: it reads /proc.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"
)

// limits of what an attack may do.
const (
	memoryLimit  = 2 << 30
	leftBehind   = 100 << 20
	slowdown     = 5
	slowFor      = 2 * time.Second
	calmTime     = 30 * time.Second
	stopTime     = 10 * time.Second
	quietTime    = 4 * time.Second
	attackTime   = 8 * time.Second
	beyondAttack = 2 * time.Second // after an attack has ended it may still be felt
)

func main() {
	binary := flag.String("server", "./svc", "the program to attack")
	only := flag.String("only", "", "a regular expression: attacks whose name it matches")
	out := flag.String("out", "", "a document in which to put what all attacks did, between its marks")
	long := flag.Duration("time", attackTime, "how long each attack lasts")
	busy := flag.Bool("busy", false, "send large requests beside busy loops instead of attacks; --only and --time apply to these loads")
	looping := flag.Bool("loop", false, "be a busy loop until standard input ends; the program starts itself this way")
	attacker := flag.Bool("attacker", false, "be the attackers that standard input names, until it ends: the program begins itself so")
	flag.Parse()
	if *attacker {
		if err := beAttackers(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "hostile:", err)
			os.Exit(1)
		}
		return
	}
	if *looping {
		loop(os.Stdin)
	}
	which, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile: --only:", err)
		os.Exit(2)
	}
	if *out != "" && *only != "" {
		fmt.Fprintln(os.Stderr, "hostile: --out takes a run of all attacks, without --only")
		os.Exit(2)
	}
	if *busy {
		failed, err := measureLoads(append([]string{*binary}, flag.Args()...), which, *long)
		if err != nil {
			fmt.Fprintln(os.Stderr, "hostile:", err)
			os.Exit(1)
		}
		if failed > 0 {
			fmt.Printf("%d loads failed\n", failed)
			os.Exit(1)
		}
		return
	}
	setup, failed := circumstances(), 0
	var rows []row
	fmt.Printf("%-42s %9s %9s %8s %8s %9s %7s  %s\n", "attack", "quiet p99", "worst", "slow for", "peak MiB", "left MiB", "stop", "verdict")
	for _, a := range attacks {
		if !which.MatchString(a.name) {
			continue
		}
		r, err := measure(append([]string{*binary}, flag.Args()...), a, *long)
		if err != nil {
			fmt.Fprintf(os.Stderr, "hostile: %s: %v\n", a.name, err)
			os.Exit(1)
		}
		rows = append(rows, row{a.name, r})
		verdict := r.verdict()
		if verdict != "held" {
			failed++
		}
		fmt.Printf("%-42s %6.1f ms %6.0f ms %6.1f s %8d %9d %5.1f s  %s\n", a.name, ms(r.quiet), ms(r.worst), r.slow.Seconds(), r.peak>>20, r.left>>20,
			r.stop.Seconds(), verdict)
	}
	if *out != "" {
		if err := rewrite(*out, table(rows, setup, time.Now())); err != nil {
			fmt.Fprintln(os.Stderr, "hostile:", err)
			os.Exit(1)
		}
	}
	if failed > 0 {
		fmt.Printf("%d attacks did harm\n", failed)
		os.Exit(1)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// result is what one attack did.
type result struct {
	quiet, worst time.Duration // 99th percentiles: before, and in the worst quarter of a second
	slow         time.Duration // the longest time on end above the limit
	peak, left   int64         // resident bytes: the most, and what stayed beyond those before
	stop         time.Duration // from SIGTERM, in the middle of the attack, to the end
	running      int           // searches, after all clients have left
	died         string        // why the process ended, "" when it did not
	gained       string        // what the attackers have no right to, "" for nothing
}

func (r *result) verdict() string {
	switch {
	case r.died != "":
		return "KILLED: " + r.died
	case r.gained != "":
		return "GAINED: " + r.gained
	case r.slow > slowFor:
		return "SLOW"
	case r.left > leftBehind:
		return "KEEPS MEMORY"
	case r.running > 0:
		return "KEEPS TURNS"
	case r.stop > stopTime:
		return "DOES NOT STOP"
	}
	return "held"
}

// measure runs one attack against a fresh server, then repeats it and stops the server in the middle.
func measure(program []string, a attack, long time.Duration) (*result, error) {
	s, err := start(program)
	if err != nil {
		return nil, err
	}
	defer s.remove()
	if a.prepare != nil {
		if err := a.prepare(s); err != nil {
			return nil, err
		}
	}
	r := &result{}
	honest := s.honestClient()
	time.Sleep(time.Second) // caches and connections warm up
	honest.restart()
	time.Sleep(quietTime)
	r.quiet = honest.p99()
	before := s.calm()

	honest.restart()
	watch := s.watch()
	end, err := s.begin(a)
	if err != nil {
		return nil, err
	}
	time.Sleep(long)
	end()
	time.Sleep(beyondAttack)
	honest.stop()
	if honest.why != nil {
		fmt.Fprintf(os.Stderr, "%s: the honest client was refused: %v\n", a.name, honest.why)
	}
	r.worst, r.slow = honest.harm(r.quiet * slowdown)
	if a.gains != nil {
		if r.gained, err = a.gains(s); err != nil {
			return nil, err
		}
	}
	if r.died = s.died(); r.died == "" {
		for end := time.Now().Add(calmTime); time.Now().Before(end); time.Sleep(time.Second) {
			if r.left = s.resident() - before; r.left <= leftBehind {
				break
			}
		}
		if r.running, err = s.untilIdle(); err != nil {
			return nil, err
		}
		if end, err = s.begin(a); err != nil {
			return nil, err
		}
		time.Sleep(2 * time.Second)
		r.stop = s.terminate()
		end()
		if why := s.died(); why != "" {
			r.died = why
		}
	}
	r.peak = watch()
	return r, nil
}
