package delivery

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf16"

	"herald/platforms"
	"herald/sessions"
)

// Live is a message that grows while it is visible: a streamed answer or a progress bubble. Set never
// blocks; what is newest when the lane has time is shown, at most once per interval. Refusals only delay
// or end the show: nothing that matters is in a Live alone.
type Live struct {
	w    *Worker
	lane *lane
	opt  LiveOptions

	// guarded by w.mu
	text    platforms.Text
	dirty   bool
	appends bool // each text begins with the one before
	message platforms.MessageID
	next    time.Time
	floods  int
	showing bool // the lane is at it
	closing bool // one last change at most
	ended   bool
}

// LiveOptions says what a Live is for.
type LiveOptions struct {
	At      platforms.Address
	ReplyTo platforms.MessageID
	// Turn and Session own it. Preview makes it durable: the turn's next final row completes it by an edit.
	Turn    sessions.TurnID
	Session sessions.ID
	Preview bool
	// Progress marks a bubble about the work itself, which surfaces show lighter.
	Progress bool
	// Adopt goes on in the preview that an earlier process has shown for the turn.
	Adopt bool
	// First is how long after now it may first be seen, Interval the least time between two changes.
	First    time.Duration
	Interval time.Duration
}

// Live returns a live message that shows nothing yet. Without an adapter that can edit it stays invisible.
func (w *Worker) Live(opt LiveOptions) *Live {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := &Live{w: w, opt: opt, next: w.opt.Now().Add(opt.First)}
	adapter, ok := w.opt.Adapters.Adapter(opt.At.AccountOf())
	if !ok || !adapter.Traits().Edit {
		v.ended = true
	}
	v.appends = ok && opt.Preview && adapter.Traits().AppendOnly
	if p := w.previews[opt.Turn]; opt.Adopt && p != nil {
		v.message = p.message
		v.ended = v.ended || v.appends // what the earlier process has shown is not known: the final text completes it
	}
	return v
}

// Set gives the newest text. Where a preview can only grow, one that does not begin with the one before is left out.
func (v *Live) Set(text platforms.Text) {
	w := v.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.ended || v.closing || w.closed || text.Body == "" || text.Body == v.text.Body {
		return
	}
	if v.appends && !(strings.HasPrefix(text.Body, v.text.Body) && strings.HasPrefix(text.Markdown, v.text.Markdown)) {
		return
	}
	v.text, v.dirty = text, true
	if v.lane == nil {
		v.lane = w.laneLocked(v.opt.At.String(), v.opt.At)
		v.lane.lives = append(v.lane.lives, v)
		w.kickLocked(v.lane)
		return
	}
	w.kickLocked(v.lane)
}

// Visible reports whether something is visible, or is on its way to be.
func (v *Live) Visible() bool {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	return v.message != "" || v.showing
}

// Message returns the id of the visible message, empty when there is none.
func (v *Live) Message() platforms.MessageID {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	return v.message
}

// End stops the show and reports whether something is visible, or is on its way to be. A call to the
// platform that is under way is finished by the lane before any later row of the address.
func (v *Live) End() (visible bool) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	visible = v.message != "" || v.showing
	v.endLocked()
	return visible
}

// Finish ends the show with a last text. What is visible is edited to it once, when the lane has time; where
// nothing is visible, nothing appears any more.
func (v *Live) Finish(last platforms.Text) {
	w := v.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.ended || v.closing {
		return
	}
	if v.message == "" && !v.showing || w.closed {
		v.endLocked()
		return
	}
	if last.Body != "" && last.Body != v.text.Body {
		v.text, v.dirty = last, true
	}
	if !v.dirty && !v.showing {
		v.endLocked()
		return
	}
	v.closing = true
	w.kickLocked(v.lane)
}

func (v *Live) endLocked() {
	v.ended, v.dirty = true, false
	if v.lane == nil {
		return
	}
	for i, other := range v.lane.lives {
		if other == v {
			v.lane.lives = append(v.lane.lives[:i:i], v.lane.lives[i+1:]...)
			break
		}
	}
	v.w.kickLocked(v.lane)
	v.lane = nil
}

// due returns when the newest text may be shown. w.mu is held.
func (v *Live) due() (time.Time, bool) {
	if v.ended || !v.dirty {
		return time.Time{}, false
	}
	at := v.next
	if gate := v.w.gateLocked(v.opt.At); gate.After(at) {
		at = gate
	}
	return at, true
}

// show makes the newest text visible. The lane calls it.
func (v *Live) show() {
	w := v.w
	w.mu.Lock()
	text, message := v.text, v.message
	v.dirty = false
	ended := v.ended
	v.showing = !ended
	w.mu.Unlock()
	if ended {
		return
	}
	defer func() {
		w.mu.Lock()
		v.showing = false
		w.mu.Unlock()
	}()
	adapter, ok := w.opt.Adapters.Adapter(v.opt.At.AccountOf())
	if !ok {
		v.End()
		return
	}
	out := platforms.Outgoing{Address: v.opt.At, Edit: message, Text: text, Interim: true, Progress: v.opt.Progress, Silent: message == ""}
	if message == "" {
		out.ReplyTo = v.opt.ReplyTo
	}
	var row *sessions.OutboxRow
	if message == "" && v.opt.Preview {
		row = &sessions.OutboxRow{Kind: sessions.OutPreview, State: sessions.OutAttempting, Turn: v.opt.Turn,
			Session: v.opt.Session, Message: out, Attempts: 1}
		err := w.opt.Store.Update(w.ctx, sessions.EdgePreview, func(tx sessions.Tx) error { return tx.PutOutbox(row) })
		if err != nil {
			v.End()
			return
		}
		out = row.Message
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.opt.SendTimeout)
	receipt, err := adapter.Send(ctx, out)
	cancel()
	se := platforms.AsSendError(err)
	if w.ctx.Err() != nil && se != nil {
		return
	}
	if row != nil {
		v.journal(row, receipt, se)
	}
	v.after(receipt, se)
}

// journal writes down what came of a preview's first send, beside the path: the row that completes the preview is written after it.
func (v *Live) journal(row *sessions.OutboxRow, receipt platforms.Receipt, se *platforms.SendError) {
	w := v.w
	switch {
	case se == nil:
		row.State, row.Sent = sessions.OutSent, receipt.Message
	case se.Certainty == platforms.Unknown:
		row.State, row.Error = sessions.OutUnknown, se.Error()
	default:
		row.State, row.Error = sessions.OutFailed, se.Error()
	}
	w.opt.Store.Later(sessions.EdgePreview, func(tx sessions.Tx) error { return tx.SetOutbox(*row) }, func(err error) {
		if err != nil && !errors.Is(err, sessions.ErrClosed) {
			w.opt.Log.Error().Err(err).Int64("outbox", int64(row.ID)).Msg("a preview can't be written down")
		}
	})
	if se == nil && receipt.Message != "" {
		w.setPreview(v.opt.Turn, &preview{row: row.ID, message: receipt.Message, at: w.opt.Now()})
	}
}

// after decides how the show goes on.
func (v *Live) after(receipt platforms.Receipt, se *platforms.SendError) {
	w := v.w
	now := w.opt.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	v.next = now.Add(v.opt.Interval)
	defer func() {
		if v.closing && !v.dirty {
			v.endLocked()
		}
	}()
	if se == nil {
		if v.message == "" {
			v.message = receipt.Message
		}
		v.floods = 0
		return
	}
	if w.opt.Observer != nil {
		w.opt.Observer.Dropped(v.opt.At.Platform, "interim")
	}
	switch {
	case se.Kind == platforms.RateLimited:
		w.shutGateLocked(v.opt.At, se.AccountWide, now.Add(max(se.RetryAfter, time.Second)))
		if v.floods++; v.floods >= floodLimit {
			v.endLocked()
		}
	case se.Kind == platforms.MessageGone && v.message != "":
		delete(w.previews, v.opt.Turn)
		v.endLocked()
	case v.message == "":
		v.endLocked() // the first one did not get through: don't try again and again
	}
}

// Delete removes what is visible, where the platform can (display.cleanup_progress).
func (v *Live) Delete(ctx context.Context) error {
	v.End()
	id := v.Message()
	adapter, ok := v.w.opt.Adapters.Adapter(v.opt.At.AccountOf())
	if id == "" || !ok {
		return nil
	}
	deleter, can := adapter.(platforms.Deleter)
	if !can {
		return nil
	}
	return deleter.Delete(ctx, v.opt.At, id)
}

// KeepTyping shows that an answer is being made until ctx ends. It stops for the time of a gate and gives
// up after three failures in a row. Where the platform can show words, doing gives those of each refresh, "" for the
// plain sign; they are taken off at the end. doing may be nil.
func (w *Worker) KeepTyping(ctx context.Context, at platforms.Address, doing func() string) {
	adapter, ok := w.opt.Adapters.Adapter(at.AccountOf())
	if !ok {
		return
	}
	typist, can := adapter.(platforms.Typist)
	if !can {
		return
	}
	sign := &sign{w: w, at: at, typist: typist, doing: doing}
	sign.narrator, _ = adapter.(platforms.Narrator)
	defer sign.takeOff()
	tick := time.NewTicker(typist.TypingEvery())
	defer tick.Stop()
	for failures := 0; failures < 3; {
		if w.open(at) {
			failures++
			if err := sign.show(ctx); err == nil {
				failures = 0
			} else {
				w.heed(at, err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// open reports whether a call for show may be made now.
func (w *Worker) open(at platforms.Address) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.closed && !w.gateLocked(at).After(w.opt.Now())
}

// heed shuts the gate that a refusal asks for.
func (w *Worker) heed(at platforms.Address, err error) {
	if se := platforms.AsSendError(err); se != nil && se.Kind == platforms.RateLimited {
		w.shutGate(at, se.AccountWide, w.opt.Now().Add(max(se.RetryAfter, time.Second)))
	}
}

// React puts emoji on a message of a place, or takes ours off. It makes one call at most, and none inside a retry
// window: it waits at most so long for one to end, and gives up then. It is for show, so nothing is repeated.
func (w *Worker) React(ctx context.Context, at platforms.Address, id platforms.MessageID, emoji string, wait time.Duration) error {
	adapter, ok := w.opt.Adapters.Adapter(at.AccountOf())
	if !ok {
		return nil
	}
	reactor, can := adapter.(platforms.Reactor)
	if !can {
		return nil
	}
	w.mu.Lock()
	until := w.gateLocked(at).Sub(w.opt.Now())
	w.mu.Unlock()
	if until > wait {
		return errGated
	}
	if until > 0 {
		timer := time.NewTimer(until)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !w.open(at) {
		return errGated
	}
	ctx, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	err := reactor.React(ctx, at, id, emoji)
	if err != nil {
		w.heed(at, err)
	}
	return err
}

var errGated = errors.New("the platform asked to wait")

// signTimeout bounds one call that is only for show.
const signTimeout = 10 * time.Second

// sign is a sign of life at a place.
type sign struct {
	w        *Worker
	at       platforms.Address
	typist   platforms.Typist
	narrator platforms.Narrator // nil where the platform shows no words
	doing    func() string
	words    bool // words are visible
}

// show makes the one call of a refresh.
func (s *sign) show(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	if s.narrator != nil && s.doing != nil {
		if text := s.doing(); text != "" {
			s.words = true
			return s.narrator.Narrate(ctx, s.at, text)
		}
	}
	return s.typist.Typing(ctx, s.at)
}

// takeOff removes words that are visible, once, and never inside a gate.
func (s *sign) takeOff() {
	if !s.words || !s.w.open(s.at) {
		return
	}
	ctx, cancel := context.WithTimeout(s.w.ctx, signTimeout)
	defer cancel()
	if err := s.narrator.Narrate(ctx, s.at, ""); err != nil {
		s.w.heed(s.at, err)
	}
}

func utf16Of(s string) []uint16 { return utf16.Encode([]rune(s)) }
