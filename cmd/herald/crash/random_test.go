//go:build failpoint

package crash

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"herald/gateway/model"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// defaultRuns is how many runs are made without RUNS.
const defaultRuns = 6

// TestRandom lives through random lives: several chats talk, stop and start over, the daemon is killed at
// random times and failpoints and restarted in between, updates come twice and in the wrong order, the
// platform refuses, resets and answers by halves, the model fails and stammers. Afterwards all is quiet and
// P1 to P5 and P11 hold.
//
// SEED=n is the first run's seed and RUNS=m makes m runs. A seed fixes what people, the platform, the model
// and the killer do; what the daemon makes of it depends on the time as well.
func TestRandom(t *testing.T) {
	runs, first := number("RUNS", defaultRuns), number("SEED", 1)
	for i := range runs {
		seed := first + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("run it again: SEED=%d RUNS=1 go test -tags 'sqlite_fts5 failpoint' -count=1 -run TestRandom ./cmd/herald/crash", seed)
				}
			})
			live(t, uint64(seed))
		})
	}
}

// dice is a seeded source that several people may use; each has one of their own, so that their order
// does not matter.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed, who uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, who))} }

// n returns 0 to below-1.
func (d *dice) n(below int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(below)
}

// chance is true with percent.
func (d *dice) chance(percent int) bool { return d.n(100) < percent }

// between returns a time in [low, high).
func (d *dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.n(int((high-low)/time.Millisecond)))*time.Millisecond
}

func pick[T any](d *dice, from []T) T { return from[d.n(len(from))] }

// The dice of a life.
const (
	ofKiller = iota + 1
	ofPlatform
	ofModel
	ofPlan
	ofPeople // and upwards
)

// live is one random life.
func live(t *testing.T, seed uint64) {
	d := newDice(seed, ofPlan)
	var plan []string
	for range d.n(3) {
		plan = append(plan, fmt.Sprintf("%s:%s:%d", pick(d, edges()), pick(d, sides), 1+d.n(6)))
	}
	mode := pick(d, []string{"interrupt", "interrupt", "queue"})
	w := newWorld(t, map[string]string{"display.busy_input_mode": mode, "agent.restart_drain_timeout": "300ms"}, plan...)
	w.note("seed %d: failpoints %q, busy mode %s", seed, plan, mode)
	w.brain.trouble = modelTrouble(newDice(seed, ofModel))
	w.tg.AddChat(telegramtest.Chat{ID: forum, Type: "supergroup", Title: "Forum", IsForum: true})
	places := []place{ada, ben, cleo, {forum, w.tg.AddTopic(forum, "red")}, {forum, w.tg.AddTopic(forum, "blue")}}
	w.start()
	var people, weather sync.WaitGroup
	for i, at := range places {
		people.Go(func() { w.wander(newDice(seed, ofPeople+uint64(i)), at) })
	}
	over := make(chan struct{})
	weather.Go(func() { w.storm(newDice(seed, ofPlatform), places, over) })
	weather.Go(func() { w.murder(newDice(seed, ofKiller), over) })
	people.Wait()
	close(over)
	weather.Wait()
	w.tg.Heal()
	// What was not killed by now is not killed at all: the rest of the plan ends with the next start.
	w.mu.Lock()
	w.plan = nil
	w.mu.Unlock()
	w.finish()
}

// wander is one person: they ask, do not always wait, stop, start over, press what can be pressed.
func (w *world) wander(d *dice, at place) {
	kinds := []kind{plain, plain, plain, tool, tool, twoStep, batch, long, slow, slowTool, todo, big}
	for range 4 + d.n(5) {
		switch n := d.n(100); {
		case n < 8:
			w.await(w.order(at, "/stop %s", "Stopped|Nothing is running|dropped"))
		case n < 14:
			w.await(w.order(at, "/new Fresh %s now", "Fresh %s"))
		case n < 18:
			w.await(w.order(at, "/title Plans %s", "Plans %s|can't run"))
		case n < 22:
			w.order(at, "/status %s", "telegram")
		case n < 28:
			w.press(d, at)
		case n < 65:
			w.await(w.say(at, pick(d, kinds)))
		default:
			w.say(at, pick(d, kinds))
			w.pause(d.between(0, 250*time.Millisecond))
		}
	}
}

// press presses a button that is there, such as the one that shows a doubtful message again.
func (w *world) press(d *dice, at place) {
	var buttons []telegramtest.Message
	for _, m := range w.shown(at) {
		if len(m.Buttons) > 0 {
			buttons = append(buttons, m)
		}
	}
	if len(buttons) > 0 {
		m := pick(d, buttons)
		w.tg.Press(at.chat, m.ID, m.Buttons[0][0].Data, telegramtest.User{})
	}
}

// storm makes the platform unkind until over.
func (w *world) storm(d *dice, places []place, over chan struct{}) {
	for range 8 {
		select {
		case <-over:
			return
		case <-time.After(d.between(50*time.Millisecond, 600*time.Millisecond)):
		}
		at := pick(d, places)
		fault := telegramtest.Fault{Method: pick(d, []string{"sendMessage", "sendMessage", "editMessageText"}), Chat: at.chat}
		switch d.n(9) {
		case 0:
			fault.Trouble, fault.Status, fault.RetryAfter = telegramtest.AnswerStatus, 429, time.Second
		case 1:
			fault.Trouble = telegramtest.ResetBefore
		case 2:
			fault.Trouble = telegramtest.ResetAfter
		case 3:
			fault.Trouble = telegramtest.HalfBody
		case 4:
			fault.Trouble, fault.Status = telegramtest.AnswerStatus, 502
		case 5:
			fault = telegramtest.Fault{Trouble: telegramtest.Twice}
		case 6:
			fault = telegramtest.Fault{Trouble: telegramtest.Backwards}
		case 7:
			fault = telegramtest.Fault{Method: "getUpdates", Trouble: telegramtest.HalfBody}
		default:
			w.note("platform: redelivers")
			w.tg.Replay(1 + d.n(6))
			continue
		}
		w.note("platform: %s %s in chat %d", fault.Trouble, fault.Method, fault.Chat)
		w.tg.Break(fault)
	}
}

// murder kills and restarts the daemon at random times until over.
func (w *world) murder(d *dice, over chan struct{}) {
	for range 1 + d.n(3) {
		select {
		case <-over:
			return
		case <-time.After(d.between(200*time.Millisecond, 2500*time.Millisecond)):
		}
		if d.chance(25) {
			w.note("supervisor: restarts the daemon")
			w.restart()
		} else {
			w.kill()
		}
	}
}

// modelTrouble makes the model unreliable.
func modelTrouble(d *dice) func() *modeltest.Reply {
	return func() *modeltest.Reply {
		switch n := d.n(100); {
		case n < 3:
			r := modeltest.Failing(500, "server_error", "try again")
			return &r
		case n < 5:
			return &modeltest.Reply{Text: strings.Repeat("half a word ", 12), Pace: 5 * time.Millisecond, Cut: true, CutAfter: 6}
		case n < 7:
			r := modeltest.Garbage("application/json", "{]")
			return &r
		case n < 9:
			return &modeltest.Reply{ToolCalls: []model.ToolCall{{ID: "", Name: "todo", Arguments: `{"todos":`}}}
		}
		return nil
	}
}
