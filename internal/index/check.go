package index

import (
	"errors"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"svc/internal/document"
	"svc/internal/mapped"
	"svc/internal/pace"
	"svc/internal/vfs"
)

// checkBlock is about how many bytes of a payload one goroutine checks at a time. (A variable, so that tests can lower it.)
var checkBlock = 256 << 10

// checkedLines are the lines of a payload in order, block by block.
type checkedLines struct {
	blocks []*payloadLines
	sought bool // the lines say where their documents are stored
}

func (c *checkedLines) count() (n int) {
	for _, b := range c.blocks {
		n += b.count
	}
	return n
}

// lacking reports whether a line lacks vectors.
func (c *checkedLines) lacking() bool {
	return slices.ContainsFunc(c.blocks, func(b *payloadLines) bool { return len(b.names) > 0 })
}

// each is payloadLines.each over all blocks.
func (c *checkedLines) each(forget bool, f func(l payloadLine, id []byte) error) error {
	for i, b := range c.blocks {
		if err := b.each(forget, f); err != nil {
			return err
		}
		if forget {
			c.blocks[i] = nil
		}
	}
	return nil
}

// payloadCheck checks the lines of a payload before the first of them changes anything.
type payloadCheck struct {
	b    *batch
	key  string        // the primary key; "": inferred from the first line
	seek bool          // look up where documents are stored
	own  vectorChecks  // of the goroutine that reads
	done checkedLines  // complete except for the blocks that goroutines are checking
	mine *payloadLines // of done: takes the lines that the reading goroutine checks; nil: none yet

	group  *errgroup.Group // nil: the reading goroutine checks all lines
	queue  chan *checkTask
	free   chan *checkTask
	open   *checkTask // being filled; nil: none
	failed atomic.Bool
	errs   []*error // of the blocks of goroutines, in order
}

// checkTask is a block of lines that a goroutine checks.
type checkTask struct {
	text  []byte
	lines []taskLine
	to    *payloadLines
	err   *error
}

// taskLine is a line in a block.
type taskLine struct {
	offset   int64 // in the payload
	from, to int   // in text
}

// checkPayload checks all lines and returns them with the primary key. The first line that is wrong, in their order, gives the error.
func (b *batch) checkPayload(f vfs.File, name, key string) (*checkedLines, string, error) {
	c := &payloadCheck{b: b, key: key, seek: !b.cleared && b.base.Documents() > 0, own: b.vectors}
	c.done.sought = c.seek
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	threads := b.threads()
	if b.ix.catalog.Searches().Going() {
		threads = min(threads, b.ix.options.steadyThreads())
	}
	threads = int(min(int64(threads), info.Size()/int64(checkBlock)))
	if threads > 1 && b.vectors.unfit == nil { // which the goroutines would share
		c.start(threads)
	}
	err = eachLine(b.ix.options.FS, name, f, c.line)
	if c.group != nil {
		c.dispatch()
		close(c.queue)
		_ = c.group.Wait() // errors are in errs
	}
	for _, e := range c.errs {
		if *e != nil { // its line precedes the error that ended the reading
			return nil, "", *e
		}
	}
	return &c.done, c.key, err
}

// start starts goroutines that check blocks.
func (c *payloadCheck) start(threads int) {
	c.group = new(errgroup.Group)
	c.queue, c.free = make(chan *checkTask, threads), make(chan *checkTask, 2*threads+1)
	for range threads {
		own := c.own
		own.scratch = nil
		c.group.Go(func() error {
			for t := range c.queue {
				if err := c.checkTask(t, &own); err != nil {
					*t.err = err
					c.failed.Store(true)
				}
				t.text, t.lines = t.text[:0], t.lines[:0]
				select {
				case c.free <- t:
				default:
				}
			}
			return nil
		})
	}
}

// checkTask checks some lines of a payload. A panic of the code that reads documents is an error of the batch. So is damage of a
// segment in which it looks ids up.
func (c *payloadCheck) checkTask(t *checkTask, own *vectorChecks) (err error) {
	defer func() {
		if p := recover(); p != nil { // one bad document must not stop the server
			err = c.b.ix.panicked("check documents", p)
		}
	}()
	return mapped.Guard(func() error {
		for _, l := range t.lines {
			if err := c.check(l.offset, t.text[l.from:l.to:l.to], own, t.to); err != nil {
				return err
			}
		}
		return nil
	})
}

// line takes the next line, which is valid during the call.
func (c *payloadCheck) line(offset int64, line []byte) error {
	if c.key == "" {
		key, err := document.InferPrimaryKey(line)
		if err != nil {
			return err
		}
		c.key = key
	}
	if c.group == nil || len(line) >= largeBytes {
		if c.group != nil {
			c.dispatch()
		}
		if c.mine == nil {
			c.mine = c.add()
		}
		return c.check(offset, line, &c.own, c.mine)
	}
	if c.open == nil {
		select {
		case c.open = <-c.free:
		default:
			c.open = &checkTask{text: make([]byte, 0, checkBlock+checkBlock/4)}
		}
	}
	t := c.open
	from := len(t.text)
	t.text = append(t.text, line...)
	t.lines = append(t.lines, taskLine{offset, from, len(t.text)})
	if len(t.text) >= checkBlock {
		c.dispatch()
	}
	if c.failed.Load() {
		return errStop
	}
	return nil
}

// errStop ends the reading of lines after a block with an error.
var errStop = errors.New("a line is wrong")

// add begins a block.
func (c *payloadCheck) add() *payloadLines {
	lines := new(payloadLines)
	c.done.blocks = append(c.done.blocks, lines)
	return lines
}

// dispatch hands the open block over.
func (c *payloadCheck) dispatch() {
	c.mine = nil
	t := c.open
	if t == nil {
		return
	}
	c.open = nil
	t.to, t.err = c.add(), new(error)
	c.errs = append(c.errs, t.err)
	c.queue <- t
}

// check checks one line and adds it.
func (c *payloadCheck) check(offset int64, line []byte, own *vectorChecks, to *payloadLines) error {
	pace.Of(c.b.ctx).Yield()
	if to.count%4096 == 0 && c.b.ctx.Err() != nil {
		return c.b.ctx.Err()
	}
	id, err := document.ExternalID(line, c.key)
	if err != nil {
		return err
	}
	if err := c.b.geo.check(id, line); err != nil {
		return err
	}
	l := payloadLine{offset: offset, bytes: uint32(len(line)), stood: place{seg: noSegment}}
	if l.vectors, l.lacking, err = own.check(id, line); err != nil {
		return err
	}
	if c.seek {
		if seg, row, ok := c.b.base.Find(id); ok {
			l.stood = place{int32(seg), row}
		}
	}
	to.add(l, id)
	return nil
}
