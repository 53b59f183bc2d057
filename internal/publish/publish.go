package publish

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"svc/internal/bucket"
	"svc/internal/group"
)

// Feed is the log to publish; see group.Feed.
type Feed interface {
	Directory() string
	Reign() uint64 // of the leader of a group: later ones have larger numbers; 0: the directory has one writer
	Image(ctx context.Context, stores group.Stores) (*group.Image, error)
	Release()
	Need(after group.Position)
	Next(ctx context.Context, after group.Position, wait time.Duration) (*group.Batch, error)
	Open(name string) (io.ReadCloser, error)
	Read()
	KeepSums() error
	Close() error
}

// Options of a publisher.
type Options struct {
	Store     bucket.Store
	Feed      Feed // the publisher closes it
	Stores    group.Stores
	MasterKey string        // "": nothing is sealed
	Keep      time.Duration // how long a position can be restored at least
	Rate      int64         // bytes a second that are sent; 0: as many as can be
	Verify    time.Duration // in which the content of each file is read once from the store; 0: it is not read
	Interval  time.Duration // between two objects with entries, in which more of them come together; 0: DefaultInterval
	Now       func() time.Time
	Logger    *slog.Logger

	imageBytes int64         // of tests: of entries after which there is a new image; 0: minImageBytes
	restBytes  int64         // of tests; 0: minRestBytes
	aheadBytes int64         // of tests; 0: maxAheadBytes
	poll       time.Duration // of tests; 0: pollTime
	backoff    time.Duration // of tests: after the first failure; 0: minBackoff
	margin     time.Duration // of tests; 0: clockMargin
	heal       time.Duration // of tests; 0: healTime
}

// DefaultInterval is the time between two uploads of entries, and between two lists of them.
const DefaultInterval = time.Second

const (
	uploads = 4 // files of images that are sent at once, and of entries

	// Entries rest if new files of at least minRestBytes are to be sent for them: what later ones replace is not sent. They rest for
	// maxRest, or for restIntervals of a shorter Options.Interval, and while restPlaces others that have rested are sent. They rest no
	// longer when they have maxRestEntries or maxRestBytes.
	minRestBytes   = 1 << 20
	maxRest        = 2500 * time.Millisecond
	restIntervals  = 2.5
	restPlaces     = 2
	maxRestEntries = maxBatchEntries / 4
	maxRestBytes   = 8 << 20

	// Limits on the entries that wait for their files, or for earlier entries: so many objects with so many bytes. A larger object is
	// uploaded when no other waits.
	ahead         = 1024
	maxAheadBytes = 64 << 20

	pollTime   = time.Second
	minBackoff = 200 * time.Millisecond
	maxBackoff = 30 * time.Second

	// A new image follows after minImageBytes of entries, and after imageTime if there are any.
	minImageBytes = 64 << 20
	imageTime     = 24 * time.Hour

	rateBurst = 1 << 20
)

// Publisher publishes until Close.
type Publisher struct {
	o       Options
	archive *Archive
	limit   *rate.Limiter // nil: none
	stop    context.CancelFunc
	done    sync.WaitGroup

	objects *objects
	scrub   *scrubber
	goesOn  *goneOn // nil: an image comes first

	// An upload takes a place in one of these.
	imageFiles, entryFiles places

	token   string // is random: the publisher claims runs with it
	claimed string // the name of the last one

	mu     sync.Mutex
	status Status
	last   group.Position  // of the entries that were published
	whole  *group.Position // that completes the first image of this run; nil: the image is not published
	fresh  time.Time       // all changes up to then are published; zero: nothing is
}

// Status is how a publisher stands.
type Status struct {
	Store    string        // its address
	Position string        // that is published
	Lag      time.Duration // the age of the oldest change that is not published, or a bit more
	Known    bool          // Lag is
	Bytes    int64         // that were sent
	Objects  int64         // that were made
	Removed  int64         // that were removed
	Errors   int64         // requests that failed
	Damaged  int64         // objects that were found missing or damaged
	Problem  string        // why nothing is published now
}

// Start starts publishing. It returns no errors of the store, because the publisher retries after them.
func Start(o Options) *Publisher {
	if o.imageBytes == 0 {
		o.imageBytes = minImageBytes
	}
	if o.aheadBytes == 0 {
		o.aheadBytes = maxAheadBytes
	}
	if o.restBytes == 0 {
		o.restBytes = minRestBytes
	}
	if o.poll == 0 {
		o.poll = pollTime
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.backoff == 0 {
		o.backoff = minBackoff
	}
	if o.margin == 0 {
		o.margin = clockMargin
	}
	if o.heal == 0 {
		o.heal = healTime
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Publisher{
		objects: newObjects(), o: o, stop: stop, token: rand.Text(), status: Status{Store: o.Store.String()},
		imageFiles: newPlaces(), entryFiles: newPlaces(),
	}
	p.scrub = newScrubber(p)
	if o.Rate > 0 {
		p.limit = rate.NewLimiter(rate.Limit(o.Rate), rateBurst)
	}
	p.done.Go(func() { p.run(ctx) })
	return p
}

// Status returns how the publisher stands.
func (p *Publisher) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	if s.Known = !p.fresh.IsZero(); s.Known {
		s.Lag = time.Since(p.fresh)
	}
	return s
}

// Close stops the publisher. The next run publishes the rest.
func (p *Publisher) Close() error {
	p.stop()
	p.done.Wait()
	return p.o.Feed.Close()
}

func (p *Publisher) note(f func(*Status)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.status)
}

// run publishes until ctx is done, or until an error that retrying cannot fix.
func (p *Publisher) run(ctx context.Context) {
	err := p.retry(ctx, func() error { return bucket.Probe(ctx, p.o.Store) })
	if err == nil {
		err = p.retry(ctx, func() (err error) {
			p.archive, err = begin(ctx, p.o.Store, p.o.Feed.Directory(), p.o.MasterKey)
			if err == nil {
				p.archive.led = p.o.Feed.Reign() > 0
			}
			return err
		})
	}
	if err == nil {
		err = p.retry(ctx, func() error { return p.resume(ctx) })
	}
	for err == nil {
		if err = p.publishRun(ctx); final(err) || ctx.Err() != nil {
			continue
		}
		p.o.Logger.Info("publication continues with a new image of the data directory", "because", err)
		err = sleep(ctx, p.o.backoff)
	}
	if ctx.Err() == nil {
		if errors.Is(err, errSucceeded) {
			p.o.Logger.Info("this server no longer publishes the data of its group", "to", p.o.Store.String(), "because", err)
		} else {
			p.o.Logger.Error("the data directory is no longer published", "to", p.o.Store.String(), "error", err)
		}
		p.note(func(s *Status) { s.Problem = err.Error() })
	}
}

// errSucceeded is the error of a leader that finds a later one. It has lost the lead, or is about to.
var errSucceeded = errors.New("a later leader of the group publishes")

// errGone is the error of a file that is no longer in the directory, because it could not be held longer.
var errGone = errors.New("a file was removed before it was published")

// retry calls do until it succeeds, until ctx is done, or until an error that retrying cannot fix.
func (p *Publisher) retry(ctx context.Context, do func() error) error {
	for wait := p.o.backoff; ; wait = min(2*wait, maxBackoff) {
		err := do()
		switch {
		case err == nil:
			p.note(func(s *Status) { s.Problem = "" })
			p.o.Feed.Read()
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(err) || errors.Is(err, errGone) || errors.Is(err, group.ErrCut):
			return err
		}
		p.note(func(s *Status) {
			s.Errors++
			if s.Problem != err.Error() {
				p.o.Logger.Warn("cannot publish the data directory; svc retries", "to", p.o.Store.String(), "error", err)
			}
			s.Problem = err.Error()
		})
		if err := sleep(ctx, wait/2+mathrand.N(wait)); err != nil {
			return err
		}
	}
}

// sleep waits, or returns why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// follow publishes entries after a position, in order. After enough of them, it requests another image. While the files of entries
// are sent, it reads later entries and sends their files, up to the maximum number of uploads at once.
func (p *Publisher) follow(ctx context.Context, from *goneOn, due chan<- struct{}) error {
	at := from.at
	taken := make(chan *entries, ahead)
	places := make(chan struct{}, restPlaces)
	room := semaphore.NewWeighted(p.o.aheadBytes)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for next := at; ; {
			e, err := p.take(ctx, next)
			if err != nil {
				return err
			}
			if len(e.batch.Entries) == 0 && len(taken) > 0 {
				continue // the entries that wait come first; only this goroutine adds to taken
			}
			if err := p.rest(ctx, e, places); err != nil {
				return err
			}
			if err := room.Acquire(ctx, e.room); err != nil {
				return err
			}
			g.Go(func() error { return p.sendFiles(ctx, e) })
			select {
			case taken <- e:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			next.Index += uint64(len(e.batch.Entries))
			if len(e.batch.Entries) > 0 && next.Index == e.batch.End {
				if err := sleep(ctx, p.o.Interval); err != nil {
					return err
				}
			}
		}
	})
	g.Go(func() error {
		started, bytes := from.since, from.bytes
		for {
			var e *entries
			select {
			case e = <-taken:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			n, err := p.publishEntries(ctx, e)
			if err != nil {
				return err
			}
			room.Release(e.room)
			bytes += n
			at.Index += uint64(len(e.batch.Entries))
			p.o.Feed.Need(at)
			p.reached(at, e.fresh())
			if now := p.o.Now(); bytes > p.o.imageBytes || bytes > 0 && now.Sub(started) > imageTime {
				select {
				case due <- struct{}{}:
					started, bytes = now, 0
				default: // one is being made
				}
			}
		}
	})
	return g.Wait()
}

// publishEntries publishes entries once the store has their files, and returns how many bytes they have.
func (p *Publisher) publishEntries(ctx context.Context, e *entries) (int64, error) {
	select {
	case <-e.sent:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	n := uint64(len(e.batch.Entries))
	if n == 0 {
		return 0, nil
	}
	content := e.batch.Encode()
	return int64(len(content)), p.create(ctx, logName(e.batch.Run, e.batch.Run.Index+n-1, e.last), content)
}

// reached records that the entries up to a position are published, and that these are all entries up to a time. Nothing can be
// restored from them until there is an image that they complete.
func (p *Publisher) reached(at group.Position, fresh time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = at
	if p.whole == nil || at.Compare(*p.whole) < 0 {
		return
	}
	p.status.Position, p.fresh = at.String(), fresh
}

// published returns the position up to which entries were published.
func (p *Publisher) published() group.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// create uploads an object, unless it exists, and counts the bytes. It retries until ctx ends or the error is final.
func (p *Publisher) create(ctx context.Context, name string, content []byte) error {
	return p.retry(ctx, func() error {
		n, err := p.archive.createOnce(ctx, name, content)
		if err == nil {
			p.sent(n)
		}
		return err
	})
}

func (p *Publisher) sent(n int64) {
	p.note(func(s *Status) { s.Bytes += n; s.Objects++ })
}
