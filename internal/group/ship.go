package group

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"svc/internal/consensus"
)

// Files go to a member before the entries that name them. A leader sends them as soon as it proposes a change, while it makes their
// names durable in its own spool. Before it sends an entry, the leader sends the files that the member still lacks, or waits for
// those that are on their way.

const (
	shipTime   = 30 * time.Second
	maxShipped = 1 << 16 // files that a member is remembered to have
	maxPushes  = 4       // proposals whose files are sent to a member ahead at a time
)

// shipments are what a leader knows about the files of one member. They are guarded by the voter's mu.
type shipments struct {
	had   map[string]bool          // files that it has, by key
	going map[string]chan struct{} // files that are on their way there; closed when they have arrived, or not
	ahead int                      // pushes that run
}

// keysOf returns the files of entries, with the last entry that names each.
func (v *Voter) keysOf(entries []consensus.Entry) (map[string]uint64, error) {
	keys := map[string]uint64{}
	for _, e := range entries {
		p, err := decodeProposal(e.Data, v.o.level)
		if err != nil {
			return nil, err
		}
		for key := range p.keys() {
			keys[key] = e.Index
		}
	}
	return keys, nil
}

// push sends the files of a proposal in the background, until the reign ends, to the voters that answer and have nearly all entries. ship
// sends other voters what they lack, before the entries that go there next.
func (v *Voter) push(r *reign, p *proposal, index uint64) {
	keys := map[string]uint64{}
	for key := range p.keys() {
		keys[key] = index
	}
	var there []consensus.Member
	last := v.node.Last()
	for _, m := range v.node.Members() {
		if at, ago, known := v.node.Matched(m.ID); known && ago <= caughtTime && at+caughtLag >= last && m.Addr != v.o.Addr {
			there = append(there, m)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed { // Close waits for those that run
		return
	}
	there = slices.DeleteFunc(there, func(m consensus.Member) bool {
		s := v.shipment(m.ID)
		if s.ahead >= maxPushes {
			return true
		}
		s.ahead++
		return false
	})
	v.running.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var sending sync.WaitGroup
		for _, m := range there {
			sending.Go(func() {
				_ = v.shipKeys(ctx, m.ID, m.Addr, keys, false) // ship tries again, and reports it
				v.mu.Lock()
				v.shipped[m.ID].ahead--
				v.mu.Unlock()
			})
		}
		sent := make(chan struct{})
		go func() {
			sending.Wait()
			close(sent)
		}()
		select {
		case <-r.over:
		case <-v.done:
		case <-sent:
		}
		cancel()
		<-sent
	})
}

// ship makes sure that a member has the files of entries.
func (v *Voter) ship(id, addr string, entries []consensus.Entry) error {
	keys, err := v.keysOf(entries)
	if err != nil {
		return err
	}
	return v.shipKeys(context.Background(), id, addr, keys, true)
}

// shipKeys sends a member the files that it lacks. keys has, by file, the last entry that names it. A file that another call is sending is
// waited for, not sent twice. final: the entries go to the member next, so files that it already has are recorded too. Otherwise only files
// that were sent are recorded, and the member is asked again about the others.
func (v *Voter) shipKeys(ctx context.Context, id, addr string, keys map[string]uint64, final bool) error {
	for {
		own, others := v.claim(id, keys)
		if len(own) > 0 {
			sent, err := v.shipOwn(ctx, addr, own)
			if final && err == nil {
				sent = slices.Collect(maps.Keys(own))
			}
			v.arrived(id, own, sent)
			if err != nil {
				return err
			}
		}
		for _, arrived := range others {
			select {
			case <-arrived:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if len(others) == 0 {
			return nil
		}
	}
}

// shipment returns what this leader knows about the files of a member. The caller holds mu.
func (v *Voter) shipment(id string) *shipments {
	s := v.shipped[id]
	if s == nil {
		s = &shipments{had: map[string]bool{}, going: map[string]chan struct{}{}}
		v.shipped[id] = s
	}
	return s
}

// claim returns the files, of those that a member may lack, that the caller has to send. It also returns channels that are closed
// when others have sent theirs.
func (v *Voter) claim(id string, keys map[string]uint64) (own map[string]uint64, others []chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.shipment(id)
	own = map[string]uint64{}
	for key, index := range keys {
		if s.had[key] {
			continue
		}
		if going := s.going[key]; going != nil {
			others = append(others, going)
			continue
		}
		own[key], s.going[key] = index, make(chan struct{})
	}
	return own, others
}

// arrived ends the claim of files. there are those that the member now has.
func (v *Voter) arrived(id string, own map[string]uint64, there []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.shipped[id]
	if len(s.had) > maxShipped {
		clear(s.had)
	}
	for _, key := range there {
		s.had[key] = true
	}
	for key := range own {
		close(s.going[key])
		delete(s.going, key)
	}
}

// shipOwn asks a member which files it lacks, and sends these.
func (v *Voter) shipOwn(ctx context.Context, addr string, keys map[string]uint64) (sent []string, err error) {
	ask, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, shipTime)
	defer cancel()
	var lacks []string
	err = v.send(asking, http.MethodPost, addr, pathLacks, nil, bytes.NewReader(ask), int64(len(ask)), func(r io.Reader) error {
		return json.NewDecoder(io.LimitReader(r, maxLacking)).Decode(&lacks)
	})
	if err != nil {
		return nil, err
	}
	for _, key := range lacks {
		index, ok := keys[key]
		if !ok {
			return sent, fmt.Errorf("%s asks for a file that it was not offered", addr)
		}
		if err := v.shipFile(ctx, addr, key, index); err != nil {
			return sent, err
		}
		sent = append(sent, key)
	}
	return sent, nil
}

// shipFile sends a file. There is no time limit while bytes keep arriving.
func (v *Voter) shipFile(ctx context.Context, addr, key string, index uint64) error {
	f, err := v.spool.open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", consensus.ErrGone, key)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, _, _ := parseKey(key)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(shipTime, cancel)
	defer idle.Stop()
	return v.send(ctx, http.MethodPut, addr, pathSpool, url.Values{"key": {key}, "index": {strconv.FormatUint(index, 10)}}, &moving{f, idle}, size, nil)
}

// moving puts the end of a request off while its body is read.
type moving struct {
	io.Reader
	idle *time.Timer
}

func (m *moving) Read(p []byte) (int, error) {
	m.idle.Reset(shipTime)
	return m.Reader.Read(p)
}

// unship forgets what a member has: it may have lost it.
func (v *Voter) unship(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.shipped[id]; s != nil {
		clear(s.had)
	}
}
