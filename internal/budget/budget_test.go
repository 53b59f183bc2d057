package budget

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 10 << 20
		asked := 0
		b := New(limit, func() { asked++ })
		big, other, small := b.Open(limit), b.Open(1000), b.Open(limit)
		if err := big.Hold(limit); err != nil {
			t.Fatal(err)
		}
		if began := time.Now(); other.TryHold(SmallBytes+1) || other.Held() != 0 || asked > 0 || !began.Equal(time.Now()) {
			t.Errorf("optional bytes: %d bytes are held beyond the limit, relief was called %d times", other.Held(), asked)
		}
		if err := other.Hold(SmallBytes + 1); !errors.Is(err, ErrFull) || asked == 0 {
			t.Errorf("beyond the limit: %v, relief was called %d times", err, asked)
		}
		if err := small.Hold(SmallBytes); err != nil {
			t.Errorf("a small request finds no room: %v", err)
		}
		if b.Used() != limit+SmallBytes {
			t.Errorf("%d bytes are held", b.Used())
		}
		time.AfterFunc(patience/2, big.Close)
		if err := other.Hold(SmallBytes + 1); err != nil {
			t.Errorf("bytes given back by relief are not available: %v", err)
		}
		if err := other.Answer(1001); !errors.Is(err, ErrLarge) {
			t.Errorf("an answer that is too large: %v", err)
		}
		if err := other.Answer(1000); err != nil {
			t.Errorf("an answer that fits: %v", err)
		}
		if err := other.Answer(1); !errors.Is(err, ErrLarge) {
			t.Errorf("an answer that grows too large: %v", err)
		}
		if held := other.Held(); !other.TryHold(100) || other.Held() != held+100 {
			t.Errorf("%d bytes are held, including the former 100, before %d", other.Held(), held)
		}
		other.Settle(7)
		small.Close()
		if b.Used() != 7 || other.Held() != 7 {
			t.Errorf("%d bytes are held at the end, %d by one account", b.Used(), other.Held())
		}
		other.Close()
		other.Close()
		if b.Used() != 0 {
			t.Errorf("%d bytes are held when all is closed", b.Used())
		}
	})
}

func TestMeter(t *testing.T) {
	a := New(1<<30, nil).Open(10 * Step)
	m := NewMeter(a, 5)
	for length := 5; length < 10*Step; length += Step / 3 {
		if err := m.Grown(length); err != nil {
			t.Fatalf("at %d: %v", length, err)
		}
		if held := a.Held(); held > int64(length) || held < int64(length-5-Step) {
			t.Fatalf("at %d, %d are charged", length, held)
		}
	}
	if err := m.Grown(12 * Step); !errors.Is(err, ErrLarge) {
		t.Errorf("beyond the limit of an answer: %v", err)
	}
	none := NewMeter(nil, 0)
	if err := none.Grown(1 << 40); err != nil {
		t.Errorf("without an account: %v", err)
	}
}

func TestRoom(t *testing.T) {
	b := New(1<<20, nil)
	a := b.Open(1)
	r := NewRoom(a)
	for _, step := range []struct{ bytes, held int64 }{{1000, 2000}, {500, 2000}, {3000, 6000}} {
		if err := r.Hold(int(step.bytes)); err != nil || a.Held() != step.held {
			t.Errorf("with %d, %d are held: %v", step.bytes, a.Held(), err)
		}
	}
	if err := r.Hold(1 << 20); !errors.Is(err, ErrFull) || a.Held() != 6000 {
		t.Errorf("with too much, %d are held: %v", a.Held(), err)
	}
	r.Empty()
	if a.Held() != 0 || b.Used() != 0 {
		t.Errorf("empty, %d are held", a.Held())
	}
}

// TestClosedAccount takes and gives back bytes on several goroutines while and after the account is closed.
func TestClosedAccount(t *testing.T) {
	b := New(10<<20, nil)
	for range 200 {
		a := b.Open(1000)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 20 {
					if err := a.Hold(100); err != nil {
						t.Error(err)
					}
				}
				_ = a.Hold(-1000)
			})
		}
		a.Close()
		group.Wait()
		if b.Used() != 0 || a.Held() != 0 {
			t.Fatalf("after Close, %d bytes are used, %d held", b.Used(), a.Held())
		}
	}
	a := b.Open(1000)
	_ = a.Hold(500)
	a.Close()
	if _ = a.Hold(-500); b.Used() != 0 {
		t.Errorf("giving back twice leaves %d bytes", b.Used())
	}
	if _ = a.Hold(500); b.Used() != 0 {
		t.Errorf("taking after Close leaves %d bytes", b.Used())
	}
}
