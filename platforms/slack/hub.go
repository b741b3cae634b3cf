package slack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	// inboxSize is how many envelopes wait for one adapter. When it is full no more is read, for any.
	inboxSize = 256
	// gatherFor is how long the first connection waits for accounts that still ask who they are.
	gatherFor = 5 * time.Second
)

// hub holds the app's one Socket Mode connection and hands what comes to the adapter of its workspace. It connects
// while at least one adapter sits in it.
type hub struct {
	s         *settings
	transport *http.Transport
	client    *wire.Client
	app       *api.Client
	health    *wire.Health

	mu       sync.Mutex
	seats    map[*seat]*Adapter
	entering int // adapters that will sit soon
	stop     context.CancelFunc
	done     chan struct{} // closed when the loop has ended
	failed   chan struct{} // closed when the app's token was refused
	fatal    *platforms.StartError
}

// seat is an adapter's place in the hub.
type seat struct {
	h      *hub
	inbox  chan delivery
	fails  chan struct{}
	seated bool
}

func newHub(s *settings) *hub {
	h := &hub{s: s, transport: newTransport(s), seats: map[*seat]*Adapter{}}
	h.client = &wire.Client{HTTP: &http.Client{Transport: h.transport}, Limit: maxAnswer, Buffer: buffered}
	h.app = s.appClient(h.client)
	h.health = wire.NewHealth(s.Clock, "Slack gave no sign of life")
	h.health.Expect(s.DeafAfter + s.PingEvery)
	return h
}

// enter announces an adapter that will sit once it knows its workspace.
func (h *hub) enter() *seat {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entering++
	return &seat{h: h, inbox: make(chan delivery, inboxSize)}
}

// sit makes the adapter take part; the first one starts the connection.
func (t *seat) sit(a *Adapter) {
	h := t.h
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entering--
	t.seated = true
	h.seats[t] = a
	if h.stop == nil {
		h.startLocked()
	}
	t.fails = h.failed
}

func (h *hub) startLocked() {
	ctx, cancel := context.WithCancel(context.Background())
	before := h.done
	h.stop, h.done, h.failed, h.fatal = cancel, make(chan struct{}), make(chan struct{}), nil
	done := h.done
	go func() {
		defer close(done)
		if before != nil {
			<-before // its connection is closed before a new one is opened
		}
		h.run(ctx)
	}()
}

// leave gives the seat up; the last one ends the connection and waits until it is gone.
func (t *seat) leave() {
	h := t.h
	h.mu.Lock()
	if !t.seated {
		h.entering--
		h.mu.Unlock()
		return
	}
	delete(h.seats, t)
	if len(h.seats) > 0 {
		h.mu.Unlock()
		return
	}
	stop, done := h.stop, h.done
	h.stop = nil
	h.mu.Unlock()
	stop()
	<-done
	h.transport.CloseIdleConnections()
}

// failed is closed when the app's token was refused; see hub.failure.
func (t *seat) failed() <-chan struct{} { return t.fails }

func (h *hub) failure() *platforms.StartError {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fatal
}

// run keeps one connection until ctx ends or the app's token is refused.
func (h *hub) run(ctx context.Context) {
	h.health.Set("starting", "")
	h.gather(ctx)
	wait := h.s.newBackoff()
	for ctx.Err() == nil {
		begun := h.s.Clock.Now()
		err := h.connection(ctx)
		var fatal *platforms.StartError
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &fatal):
			h.s.Metrics.Polled("auth")
			h.health.Set("paused", fatal.Error())
			h.mu.Lock()
			h.fatal = fatal
			close(h.failed)
			h.mu.Unlock()
			<-ctx.Done()
		default:
			if h.s.Clock.Now().Sub(begun) > h.s.BackoffMax {
				wait.Reset()
			}
			h.down(err)
			_ = wait.Wait(ctx, h.s.Clock, platforms.AsSendError(err).RetryAfter)
		}
	}
	h.health.Set("stopped", "")
}

// down says why there is no connection now.
func (h *hub) down(err error) {
	if errors.Is(err, errAsked) { // nothing is wrong
		h.health.Set("reconnecting", err.Error())
		return
	}
	h.s.Metrics.Polled("network")
	state := "reconnecting"
	if errors.Is(err, errDeaf) || errors.Is(err, errNoHello) {
		state = "deaf"
	}
	h.health.Set(state, err.Error())
	h.s.Log.Warn().Str("cause", err.Error()).Msg("the connection to Slack is down, connecting again")
}

// gather waits a moment for accounts that are about to sit, so that none of their events finds nobody.
func (h *hub) gather(ctx context.Context) {
	for until := h.s.Clock.Now().Add(gatherFor); h.s.Clock.Now().Before(until); {
		h.mu.Lock()
		entering := h.entering
		h.mu.Unlock()
		if entering == 0 || h.s.Clock.Sleep(ctx, 10*time.Millisecond) != nil {
			return
		}
	}
}

// owner is what an envelope's payload says of whom it is for.
type owner struct {
	TeamID       string `json:"team_id"`
	EnterpriseID string `json:"enterprise_id"`
	Team         *struct {
		ID string `json:"id"`
	} `json:"team"`
	Enterprise *struct {
		ID string `json:"id"`
	} `json:"enterprise"`
	Authorizations []struct {
		TeamID       string `json:"team_id"`
		EnterpriseID string `json:"enterprise_id"`
		UserID       string `json:"user_id"`
	} `json:"authorizations"`
}

// seatOf returns whose envelope it is. waiting is true when there is nobody yet but may be soon.
func (h *hub) seatOf(payload json.RawMessage) (to *seat, waiting bool) {
	var o owner
	if json.Unmarshal(payload, &o) != nil {
		return nil, false
	}
	teams := []string{o.TeamID}
	enterprises := []string{o.EnterpriseID}
	if o.Team != nil {
		teams = append(teams, o.Team.ID)
	}
	if o.Enterprise != nil {
		enterprises = append(enterprises, o.Enterprise.ID)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, auth := range o.Authorizations {
		if t := h.findLocked(func(me identity) bool {
			return auth.UserID == me.user && (auth.TeamID == me.team || auth.TeamID == "")
		}); t != nil {
			return t, false
		}
		teams, enterprises = append(teams, auth.TeamID), append(enterprises, auth.EnterpriseID)
	}
	for _, id := range teams {
		if t := h.findLocked(func(me identity) bool { return id != "" && me.team == id }); t != nil {
			return t, false
		}
	}
	for _, id := range enterprises {
		if t := h.findLocked(func(me identity) bool { return id != "" && me.enterprise == id && me.team == id }); t != nil {
			return t, false
		}
	}
	return nil, h.entering > 0
}

func (h *hub) findLocked(is func(identity) bool) *seat {
	for t, a := range h.seats {
		if is(a.self()) {
			return t
		}
	}
	return nil
}
