package telegram

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	batch = 100 // the most updates of one answer

	// Another process that polls the same bot is an alarm from conflictAlarm conflicts within
	// conflictWindow on: a single one is normal when a daemon is replaced.
	conflictAlarm  = 3
	conflictWindow = time.Minute

	// After a week without updates Telegram may number them from another start, lower than before. What is confirmed
	// stays confirmed, so after this long the offset may be left out.
	offsetKept = 24 * time.Hour

	// longestAlbum is how often an album that is still growing is waited for.
	longestAlbum = 5
)

// allowedUpdates is what we ask for; Telegram leaves reactions out unless they are named.
var allowedUpdates = []string{
	models.AllowedUpdateMessage, models.AllowedUpdateEditedMessage, models.AllowedUpdateCallbackQuery,
	models.AllowedUpdateMessageReaction, models.AllowedUpdateChannelPost, models.AllowedUpdateMyChatMember,
}

// poller is the state of one receiving loop. One goroutine owns it.
type poller struct {
	a       *Adapter
	sink    platforms.Sink
	url     string
	allowed string
	wait    *wire.Backoff

	offset int64     // the first update that is not confirmed; 0 leaves the choice to Telegram
	last   time.Time // when the offset moved
	quick  bool      // ask without waiting: after a start, a failure, or inside an album
	album  albumWait

	conflicts []time.Time
	complain  time.Time // when the last conflict was logged
}

// poll receives by long polling until ctx ends (nil) or Telegram refuses the bot (*platforms.StartError).
func (a *Adapter) poll(ctx context.Context, sink platforms.Sink) error {
	allowed, _ := json.Marshal(allowedUpdates)
	p := &poller{
		a: a, sink: sink, url: a.s.BaseURL + "/bot" + a.s.Token + "/getUpdates",
		allowed: string(allowed), wait: wire.NewBackoff(a.s.BackoffMin, a.s.BackoffMax), quick: true,
	}
	for ctx.Err() == nil {
		if err := p.once(ctx); err != nil {
			return err
		}
	}
	return nil
}

// once makes one request and hands on what it brought. Only an error that waiting can't mend comes back.
func (p *poller) once(ctx context.Context) error {
	updates, call, err := p.ask(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return p.failed(ctx, call, err)
	}
	p.a.s.Metrics.Polled("ok")
	if err := p.deliver(ctx, updates); err != nil {
		if ctx.Err() == nil {
			p.a.s.Metrics.Polled("refused")
			p.a.s.Log.Warn().Err(p.a.clean(err)).Int("updates", len(updates)).Msg("updates were not accepted; they stay with Telegram and are asked for again")
			p.a.health.Set("paused", "updates can't be stored: "+p.a.scrub(err.Error()))
			p.rest(ctx)
		}
		return nil
	}
	p.wait.Reset()
	p.a.health.Fine()
	if p.recentConflicts() >= conflictAlarm {
		p.a.health.Set("conflict", conflictDetail) // two pollers take turns: each gets only some updates
	}
	return nil
}

// ask makes one getUpdates request.
func (p *poller) ask(ctx context.Context) ([]models.Update, *call, error) {
	timeout := p.a.s.pollSecs
	if p.quick {
		timeout = 0
	}
	if p.offset > 0 && !p.last.IsZero() && p.a.s.Clock.Now().Sub(p.last) > offsetKept {
		p.offset = 0
	}
	call, ctx, cancel := newCall(ctx, time.Duration(timeout)*time.Second+p.a.s.PollMargin)
	defer cancel()
	body := fmt.Appendf(nil, `{"offset":%d,"limit":%d,"timeout":%d,"allowed_updates":%s}`, p.offset, batch, timeout, p.allowed)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return nil, call, err
	}
	req.Header.Set("Content-Type", "application/json")
	if _, err := p.a.client.Do(req); err != nil {
		return nil, call, err
	}
	if call.Status != http.StatusOK {
		refused := call.refusal()
		return nil, call, fmt.Errorf("getUpdates: %d %s", call.Status, refused.Description)
	}
	updates, skipped, err := decodeUpdates(call.Body)
	for _, s := range skipped {
		p.a.s.Metrics.Dropped("undecodable")
		p.a.s.Log.Error().Int64("update", s.id).Str("cause", p.a.scrub(s.err.Error())).Msg("an update could not be read and is skipped")
	}
	return updates, call, err
}

// deliver hands the updates on in the order of their ids and moves the offset behind those accepted.
func (p *poller) deliver(ctx context.Context, updates []models.Update) error {
	p.quick = false
	if len(updates) == 0 {
		return nil
	}
	slices.SortStableFunc(updates, func(x, y models.Update) int { return cmp.Compare(x.ID, y.ID) })
	updates = slices.CompactFunc(updates, func(x, y models.Update) bool { return x.ID == y.ID })
	ready := updates[:p.album.ready(updates, p.a.s.AlbumWait)]
	if len(ready) > 0 {
		events, err := p.a.events(ctx, ready)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			if err := p.sink.Accept(ctx, events...); err != nil {
				return err
			}
		}
		p.offset, p.last = max(p.offset, ready[len(ready)-1].ID+1), p.a.s.Clock.Now()
	}
	if len(ready) < len(updates) { // the end of an album may be on its way
		p.quick = true
		_ = p.a.s.Clock.Sleep(ctx, p.a.s.AlbumWait)
	}
	return nil
}

// failed decides what a failed poll means.
func (p *poller) failed(ctx context.Context, c *call, err error) error {
	a := p.a
	p.quick = true
	refused := a.scrub(c.refusal().Description)
	a.moves.CloseIdleConnections() // a dead connection must not be taken for the next try
	switch {
	case c.isRevoked():
		a.s.Metrics.Polled("auth")
		e := a.s.setting("token", errors.New("was refused by the Bot API server ("+refused+")"))
		e.Hint = "the token was revoked or belongs to another server: check TELEGRAM_BOT_TOKEN and base_url"
		return e
	case c.Status == http.StatusConflict && c.says("webhook is active"):
		a.s.Metrics.Polled("conflict")
		if p.dropWebhook(ctx) {
			return nil
		}
	case c.Status == http.StatusConflict:
		a.s.Metrics.Polled("conflict")
		p.quick = false
		p.conflict(ctx)
		return nil
	case c.Status != 0:
		a.s.Metrics.Polled("http")
		a.health.Set("reconnecting", "the Bot API server answered "+strconv.Itoa(c.Status)+" "+refused)
		a.s.Log.Warn().Int("status", c.Status).Str("description", refused).Msg("poll refused, trying again")
	default:
		a.s.Metrics.Polled("network")
		cause := a.clean(err)
		a.health.Set("reconnecting", cause.Error())
		a.s.Log.Warn().Err(cause).Msg("poll failed, trying again")
	}
	if c.After > 0 {
		_ = a.s.Clock.Sleep(ctx, c.After)
		return nil
	}
	p.rest(ctx)
	return nil
}

func (p *poller) rest(ctx context.Context) { _ = p.wait.Wait(ctx, p.a.s.Clock, 0) }

const conflictDetail = "another process polls this bot: stop it or use another token"

// conflict notes that another process polls the bot, and raises the alarm when it keeps on. Each conflict
// of the last minute doubles the wait.
func (p *poller) conflict(ctx context.Context) {
	now := p.a.s.Clock.Now()
	p.conflicts = append(p.conflicts, now)
	recent := p.recentConflicts()
	if recent < conflictAlarm {
		p.a.health.Set("reconnecting", "another poll ended ours")
	} else {
		if p.complain.IsZero() || now.Sub(p.complain) > conflictWindow {
			p.complain = now
			p.a.s.Log.Error().Int("conflicts", recent).Msg(conflictDetail)
		}
		p.a.health.Set("conflict", conflictDetail)
	}
	_ = p.a.s.Clock.Sleep(ctx, min(p.a.s.BackoffMax, p.a.s.BackoffMin<<min(recent, 10)))
}

// recentConflicts counts the conflicts of the last minute and forgets older ones.
func (p *poller) recentConflicts() int {
	now := p.a.s.Clock.Now()
	p.conflicts = slices.DeleteFunc(p.conflicts, func(t time.Time) bool { return now.Sub(t) > conflictWindow })
	return len(p.conflicts)
}

// dropWebhook takes off a webhook that an earlier setup left, keeping what is pending.
func (p *poller) dropWebhook(ctx context.Context) bool {
	call, ctx, cancel := newCall(ctx, p.a.s.PollMargin)
	defer cancel()
	if _, err := p.a.api.DeleteWebhook(ctx, &bot.DeleteWebhookParams{}); err != nil {
		p.a.s.Log.Warn().Err(p.a.clean(err)).Int("status", call.Status).Msg("the bot has a webhook that could not be removed")
		p.a.health.Set("reconnecting", "the bot has a webhook that could not be removed")
		return false
	}
	p.a.s.Log.Info().Msg("removed the bot's webhook to poll instead; pending updates are kept")
	return true
}

// albumWait decides how much of a batch is complete.
type albumWait struct {
	group string
	size  int
	tries int
}

// ready returns how many of the updates may be handed on: all, or those before an album that the batch
// ends in and that may still grow.
func (w *albumWait) ready(updates []models.Update, wait time.Duration) int {
	last := updates[len(updates)-1].Message
	if wait < 0 || last == nil || last.MediaGroupID == "" || len(updates) == batch {
		*w = albumWait{}
		return len(updates)
	}
	first, size := len(updates), 0
	for i := range updates {
		if m := updates[i].Message; m != nil && m.MediaGroupID == last.MediaGroupID && m.Chat.ID == last.Chat.ID {
			first, size = min(first, i), size+1
		}
	}
	if w.group != last.MediaGroupID {
		*w = albumWait{group: last.MediaGroupID}
	}
	w.tries++
	if size == w.size || size >= albumLimit || w.tries > longestAlbum {
		*w = albumWait{}
		return len(updates)
	}
	w.size = size
	return first
}
