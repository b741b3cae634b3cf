package teams

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"herald/platforms"
)

// Routes returns the webhook's route and, where a listener of its own serves it, one that tells that we live.
func (a *Adapter) Routes() map[string]http.Handler {
	return map[string]http.Handler{"POST " + a.s.Path: http.HandlerFunc(a.take)}
}

// OwnRoutes are Routes and HealthPath, for a listener that serves nothing else.
func (a *Adapter) OwnRoutes() map[string]http.Handler {
	routes := a.Routes()
	routes["GET "+HealthPath] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	return routes
}

// take handles one webhook call. 200 is the acknowledgement; 503 makes the Bot Framework try again.
func (a *Adapter) take(w http.ResponseWriter, r *http.Request) {
	p, err := a.verify(r.Context(), r.Header.Get("Authorization"))
	if err != nil {
		a.turnAway(w, r, err)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		a.s.Metrics.Polled("http")
		a.s.Log.Error().Int64("limit", big.Limit).Msg("a webhook call is larger than any activity and is refused")
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "unreadable body", http.StatusBadRequest)
		return
	}
	act, err := decode(body)
	if err != nil {
		a.s.Metrics.Polled("http")
		a.s.Log.Error().Err(err).Msg("a webhook call is no activity")
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := a.matches(p, &act); err != nil {
		a.turnAway(w, r, err)
		return
	}
	chat, thread := act.place()
	if !chatPattern.MatchString(chat) || (thread != "" && !messagePattern.MatchString(thread)) ||
		(act.ReplyToID != "" && !messagePattern.MatchString(act.ReplyToID)) {
		a.turnAway(w, r, refuse(http.StatusBadRequest, "the activity's conversation id holds what no id holds"))
		return
	}
	a.answer(w, r, &act, body)
}

// turnAway answers a call that is not from the Bot Framework, or not for us.
func (a *Adapter) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	var why *refusal
	if !errors.As(err, &why) { // the caller has gone
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	a.s.Metrics.Polled("auth")
	a.turned.Do(func() {
		a.s.Log.Warn().Str("remote", r.RemoteAddr).Int("status", why.status).Str("reason", a.scrub(why.reason)).Msg("a webhook call was refused")
	})
	switch why.status {
	case http.StatusServiceUnavailable:
		if !a.keys.fresh() {
			a.health.Set("deaf", a.scrub(why.reason))
		}
		w.Header().Set("Retry-After", retryAfter)
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, http.StatusText(why.status), why.status)
}

const retryAfter = "5" // seconds

// errNotRunning says that there is no core to take an activity.
var errNotRunning = errors.New("the adapter is not running")

// reply is what a call is answered with. body nil is an empty answer.
type reply struct {
	status int
	body   any
	// written is called once the answer has left; nil for nothing.
	written func()
}

// answer handles an activity that is proven.
func (a *Adapter) answer(w http.ResponseWriter, r *http.Request, act *activity, body []byte) {
	got, err := a.handle(r.Context(), act, body)
	if err != nil {
		a.s.Metrics.Polled("refused")
		a.s.Log.Warn().Err(a.clean(err)).Str("activity", cut(act.ID, 100)).Msg("an activity was not accepted; Teams will send it again")
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	a.s.Metrics.Polled("ok")
	if got.written != nil {
		defer got.written()
	}
	if got.body == nil {
		w.WriteHeader(got.status)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(got.status)
	_ = json.NewEncoder(w).Encode(got.body)
	_ = http.NewResponseController(w).Flush()
}

// handle does what an activity asks for. It ends early when the caller goes or Run ends. An error means that nothing is
// kept and that it is to come again.
func (a *Adapter) handle(ctx context.Context, act *activity, body []byte) (reply, error) {
	a.taking.RLock()
	defer a.taking.RUnlock()
	if a.intake == nil {
		return reply{}, errNotRunning
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.intake.ctx, cancel)()
	gone, err := a.remember(ctx, act)
	if err != nil {
		return reply{}, a.troubled(ctx, err)
	}
	if gone {
		return reply{status: http.StatusOK}, nil
	}
	if act.Type == "invoke" {
		got, err := a.invoke(ctx, act, body)
		return got, a.troubled(ctx, err)
	}
	e, drop, err := a.event(ctx, act, body)
	switch {
	case err != nil:
		return reply{}, a.troubled(ctx, err)
	case drop != "":
		a.s.Metrics.Dropped(drop)
		a.s.Log.Debug().Str("type", cut(act.Type, 50)).Str("reason", drop).Msg("an activity is nothing for the core")
	default:
		if err := a.intake.sink.Accept(ctx, e); err != nil {
			return reply{}, a.troubled(ctx, err)
		}
	}
	a.heard()
	return reply{status: http.StatusOK}, nil
}

// troubled notes in health that the core can't take events.
func (a *Adapter) troubled(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		a.health.Set("paused", "activities can't be stored: "+a.scrub(err.Error()))
	}
	return err
}

// remember keeps where the conversation of an activity is served. gone is true when the bot was taken out of it.
func (a *Adapter) remember(ctx context.Context, act *activity) (gone bool, err error) {
	chat, _ := act.place()
	switch act.Type {
	case "installationUpdate":
		gone = act.Action == "remove" || act.Action == "remove-upgrade"
	case "conversationUpdate":
		for _, m := range act.MembersGone {
			gone = gone || a.isBot(m.ID)
		}
	}
	if gone {
		a.s.Log.Info().Str("chat", chat).Msg("the bot was taken out of a conversation")
		a.heard()
		return true, a.rooms.forget(ctx, chat)
	}
	return false, a.rooms.note(ctx, chat, a.roomOf(act))
}

var _ platforms.Handler = (*Adapter)(nil)
