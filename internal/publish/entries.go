package publish

import (
	"context"
	"time"

	"svc/internal/group"
	"svc/internal/index"
)

// entries are read from the feed together and published as one object. If there are none, nothing has changed for a while.
type entries struct {
	batch   *group.Batch
	decoded []*group.Entry
	first   time.Time     // when the first one was appended
	read    time.Time     // when the last ones were
	last    int64         // when the last one was appended, in nanoseconds of the Unix epoch
	bytes   int64         // of entries
	sent    chan struct{} // is closed when the store has their files
	place   chan struct{} // in which they have a place until then; nil: they did not rest
	room    int64         // bytes of aheadBytes that they take until they are published
}

// add adds entries that follow.
func (e *entries) add(b *group.Batch) error {
	for _, raw := range b.Entries {
		x, err := group.ReadEntry(raw)
		if err != nil {
			return fatal("the log of the data directory cannot be read: %w", err)
		}
		e.decoded = append(e.decoded, x)
		e.last = max(e.last, x.At)
		e.bytes += int64(len(raw))
	}
	if e.last == 0 { // there are empty entries alone
		e.last = b.Now
	}
	e.read = time.Now()
	if e.batch == nil {
		e.batch, e.first = b, e.read
		if len(e.decoded) > 0 && e.decoded[0].At > 0 {
			e.first = e.read.Add(time.Duration(min(e.decoded[0].At-b.Now, 0)))
		}
		return nil
	}
	e.batch.Entries = append(e.batch.Entries, b.Entries...)
	e.batch.End, e.batch.Now = b.End, b.Now
	return nil
}

// end returns the position of the last one.
func (e *entries) end() group.Position {
	p := e.batch.Run
	p.Index += uint64(len(e.batch.Entries)) - 1
	return p
}

// fresh returns a time. All that was appended up to it is in these entries, or before them.
func (e *entries) fresh() time.Time {
	if e.end().Index == e.batch.End {
		return e.read
	}
	return e.read.Add(time.Duration(min(e.last-e.batch.Now, 0)))
}

func (e *entries) files() (files []upload) {
	for _, x := range e.decoded {
		for i := range x.Files {
			files = append(files, upload{file: x.Files[i], at: x.Files[i].Name})
		}
	}
	return files
}

func (e *entries) combine() (err error) {
	if e.decoded, err = group.Combine(e.decoded, index.FilesOf); err != nil {
		return fatal("the log of the data directory cannot be read: %w", err)
	}
	for i, x := range e.decoded {
		if x.Change.Kind != 0 {
			e.batch.Entries[i] = x.Encode()
		}
	}
	return nil
}

func (p *Publisher) take(ctx context.Context, at group.Position) (*entries, error) {
	b, err := p.o.Feed.Next(ctx, at, p.o.poll)
	if err != nil {
		return nil, err
	}
	e := &entries{sent: make(chan struct{})}
	if err := e.add(b); err != nil {
		return nil, err
	}
	e.room = min(e.bytes, p.o.aheadBytes)
	return e, nil
}

// rest delays entries with large new files, adds later ones, and combines them: files that a later entry replaces are not sent.
// Meanwhile the entries hold one of the places. The slower the store, the more entries are combined.
func (p *Publisher) rest(ctx context.Context, e *entries, places chan struct{}) error {
	if p.objects.missing(e.files()) < p.o.restBytes {
		return nil
	}
	end := e.first.Add(min(maxRest, time.Duration(restIntervals*float64(p.o.Interval))))
	for len(e.batch.Entries) < maxRestEntries && e.bytes < maxRestBytes {
		left := time.Until(end)
		if left <= 0 {
			select {
			case places <- struct{}{}:
				e.place = places
			default:
			}
			left = p.o.Interval
		}
		if e.place != nil {
			break
		}
		if err := sleep(ctx, min(left, p.o.Interval, DefaultInterval)); err != nil {
			return err
		}
		b, err := p.o.Feed.Next(ctx, e.end(), 0)
		if err != nil {
			return err
		}
		if err := e.add(b); err != nil {
			return err
		}
	}
	e.room = min(e.bytes, p.o.aheadBytes)
	return e.combine()
}

// sendFiles makes objects of the files that entries name.
func (p *Publisher) sendFiles(ctx context.Context, e *entries) error {
	err := p.send(ctx, e.files(), &p.entryFiles)
	if e.place != nil {
		<-e.place
	}
	if err != nil {
		return err
	}
	e.decoded = nil
	close(e.sent)
	return nil
}
