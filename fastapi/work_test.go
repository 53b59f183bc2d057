package fastapi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"svc/internal/budget"
)

type testKey struct{}

// TestWork compares the context of a request's work with one of the standard library, however it ends and whatever waits for it.
func TestWork(t *testing.T) {
	const most = time.Minute
	for name, end := range map[string]func(cancel, parent context.CancelFunc){
		"canceled":              func(cancel, _ context.CancelFunc) { cancel() },
		"canceled twice":        func(cancel, _ context.CancelFunc) { cancel(); cancel() },
		"with the parent":       func(_, parent context.CancelFunc) { parent() },
		"late":                  func(context.CancelFunc, context.CancelFunc) { time.Sleep(most + 1) },
		"late, and canceled":    func(cancel, _ context.CancelFunc) { time.Sleep(most + 1); cancel() },
		"canceled, and late":    func(cancel, _ context.CancelFunc) { cancel(); time.Sleep(most + 1) },
		"not at all":            func(context.CancelFunc, context.CancelFunc) {},
		"a moment before it is": func(context.CancelFunc, context.CancelFunc) { time.Sleep(most - time.Millisecond) },
	} {
		for _, waits := range []string{"before", "after", "child", "never"} {
			t.Run(name+", waits "+waits, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					observe := func(make func(parent context.Context) (context.Context, context.CancelFunc)) (errs [2]error, done, child bool) {
						parent, endParent := context.WithCancel(context.WithValue(context.Background(), testKey{}, 1))
						defer endParent()
						ctx, cancel := make(parent)
						defer cancel()
						below := context.Context(context.Background())
						switch waits {
						case "before":
							ctx.Done()
						case "child":
							var endBelow context.CancelFunc
							below, endBelow = context.WithCancel(ctx)
							defer endBelow()
						}
						errs[0] = ctx.Err()
						end(cancel, endParent)
						synctest.Wait()
						errs[1] = ctx.Err()
						if waits != "never" {
							select {
							case <-ctx.Done():
								done = true
							default:
							}
						}
						if at, ok := ctx.Deadline(); !ok || ctx.Value(testKey{}) != 1 {
							t.Errorf("the deadline is %v, the value %v", at, ctx.Value(testKey{}))
						}
						return errs, done, below.Err() != nil
					}
					errs, done, child := observe(func(parent context.Context) (context.Context, context.CancelFunc) {
						return context.WithTimeout(parent, most)
					})
					var w work
					account := budget.New(1, nil).Open(1)
					gotErrs, gotDone, gotChild := observe(func(parent context.Context) (context.Context, context.CancelFunc) {
						w.begin(parent, account, time.Now(), most)
						return &w, w.cancel
					})
					if gotErrs != errs || gotDone != done || gotChild != child {
						t.Errorf("%v %t %t, and with the library %v %t %t", gotErrs, gotDone, gotChild, errs, done, child)
					}
					if budget.Of(&w) != account {
						t.Error("the context lacks the account")
					}
				})
			})
		}
	}
}

// TestWorkIsFree checks that nothing is allocated for work whose end is not waited for.
func TestWorkIsFree(t *testing.T) {
	parent := context.Background()
	var w work
	if n := testing.AllocsPerRun(100, func() {
		w = work{}
		w.begin(parent, nil, time.Now(), time.Minute)
		for range 10 {
			if w.Err() != nil {
				t.Fatal("the work ended")
			}
		}
		w.cancel()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
