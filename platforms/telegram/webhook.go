package telegram

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"herald/platforms/wire"
)

const (
	// secretHeader is where Telegram repeats the secret of setWebhook.
	secretHeader = "X-Telegram-Bot-Api-Secret-Token"
	// maxPost bounds one webhook call; an update is far smaller.
	maxPost = 4 << 20
	// webhookCheck is how often Telegram is asked whether its calls arrive.
	webhookCheck = time.Minute
)

// Routes returns the webhook's route, or nothing when the bot polls.
func (a *Adapter) Routes() map[string]http.Handler {
	if a.s.WebhookURL == "" {
		return nil
	}
	return map[string]http.Handler{"POST " + a.s.WebhookPath: http.HandlerFunc(a.take)}
}

// take accepts one update. 200 is the acknowledgement: anything else makes Telegram try again.
func (a *Adapter) take(w http.ResponseWriter, r *http.Request) {
	if !a.s.secretMatches(r.Header.Get(secretHeader)) {
		a.s.Log.Warn().Str("remote", r.RemoteAddr).Msg("webhook call without the right secret refused")
		http.Error(w, "wrong secret", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPost))
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		a.s.Metrics.Dropped("too_large")
		a.s.Log.Error().Int64("limit", big.Limit).Msg("a webhook call is larger than any update and is refused")
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "unreadable body", http.StatusBadRequest)
		return
	}
	update, err := decodeUpdate(body)
	if err != nil && update.ID == 0 {
		a.s.Log.Error().Str("cause", a.scrub(err.Error())).Msg("webhook call is no update")
		http.Error(w, "no update", http.StatusBadRequest)
		return
	}
	if err != nil { // it would come back again and again
		a.s.Metrics.Dropped("undecodable")
		a.s.Log.Error().Int64("update", update.ID).Str("cause", a.scrub(err.Error())).Msg("an update could not be read and is skipped")
		w.WriteHeader(http.StatusOK)
		return
	}
	if err := a.hand(r.Context(), update); err != nil {
		a.s.Metrics.Polled("refused")
		a.s.Log.Warn().Err(a.clean(err)).Int64("update", update.ID).Msg("update was not accepted; Telegram will send it again")
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	a.health.Fine()
	w.WriteHeader(http.StatusOK)
}

// errNotRunning says that there is no core to take an update.
var errNotRunning = errors.New("the adapter is not running")

// hand gives the update to the core. It ends early when the caller goes or Run ends.
func (a *Adapter) hand(ctx context.Context, update models.Update) error {
	a.taking.RLock()
	defer a.taking.RUnlock()
	if a.intake == nil {
		return errNotRunning
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.intake.ctx, cancel)()
	events, err := a.events(ctx, []models.Update{update})
	if err != nil || len(events) == 0 {
		return err
	}
	err = a.intake.sink.Accept(ctx, events...)
	if err != nil && ctx.Err() == nil {
		a.health.Set("paused", "updates can't be stored: "+a.scrub(err.Error()))
	}
	return err
}

// listen registers the webhook, watches over it, and returns when ctx ends or the bot is refused. The
// webhook stays registered, so that updates wait for the next start.
func (a *Adapter) listen(ctx context.Context) error {
	wait := wire.NewBackoff(a.s.BackoffMin, a.s.BackoffMax)
	for ctx.Err() == nil {
		call, callCtx, cancel := newCall(ctx, a.s.PollMargin)
		// One connection keeps the order of the updates.
		_, err := a.api.SetWebhook(callCtx, &bot.SetWebhookParams{
			URL: a.s.WebhookURL, SecretToken: a.s.WebhookSecret, MaxConnections: 1, AllowedUpdates: allowedUpdates,
		})
		cancel()
		switch {
		case err == nil:
			wait.Reset()
			a.health.Fine()
			if !a.watchWebhook(ctx) {
				return nil
			}
			continue
		case ctx.Err() != nil:
			return nil
		case call.Status == http.StatusUnauthorized, call.isRevoked():
			e := a.s.setting("token", errors.New("was refused by the Bot API server ("+a.scrub(call.refusal().Description)+")"))
			e.Hint = "the token was revoked or belongs to another server: check TELEGRAM_BOT_TOKEN and base_url"
			return e
		case call.Status == http.StatusBadRequest:
			e := a.s.setting("webhook_url", errors.New(a.scrub(call.refusal().Description)))
			e.Hint = "Telegram needs a public https address on port 443, 80, 88 or 8443"
			return e
		}
		a.health.Set("reconnecting", a.clean(err).Error())
		a.s.Log.Warn().Err(a.clean(err)).Msg("the webhook could not be registered, trying again")
		_ = wait.Wait(ctx, a.s.Clock, call.After)
	}
	return nil
}

// watchWebhook asks now and then whether Telegram's calls arrive. It returns true when the webhook must be
// registered again and false when ctx ended.
func (a *Adapter) watchWebhook(ctx context.Context) bool {
	for {
		if a.sleepOrDoubt(ctx, webhookCheck) {
			return true // a send was told that the token is refused; registering again makes it certain
		}
		if ctx.Err() != nil {
			return false
		}
		_, callCtx, cancel := newCall(ctx, a.s.PollMargin)
		info, err := a.api.GetWebhookInfo(callCtx)
		cancel()
		switch {
		case err != nil:
			a.s.Log.Debug().Err(a.clean(err)).Msg("getWebhookInfo failed")
		case info.URL != a.s.WebhookURL:
			a.health.Set("reconnecting", "the webhook was taken off or replaced")
			a.s.Log.Warn().Msg("the webhook was taken off or replaced; registering it again")
			return true
		case info.PendingUpdateCount > 0 && info.LastErrorMessage != "" && time.Since(when(info.LastErrorDate)) < 2*webhookCheck:
			a.health.Set("deaf", "Telegram can't reach the webhook: "+a.scrub(info.LastErrorMessage))
		default:
			a.health.Fine()
		}
	}
}

// doubtToken wakes the watch over the webhook: nothing else would notice for a while that the token is refused.
func (a *Adapter) doubtToken() {
	select {
	case a.doubt <- struct{}{}:
	default:
	}
}

// sleepOrDoubt waits for d, or until doubtToken was called, which it reports, or until ctx ends.
func (a *Adapter) sleepOrDoubt(ctx context.Context, d time.Duration) bool {
	ctx, wake := context.WithCancel(ctx)
	defer wake()
	slept := make(chan struct{})
	go func() {
		defer close(slept)
		_ = a.s.Clock.Sleep(ctx, d)
	}()
	defer func() {
		wake()
		<-slept
	}()
	select {
	case <-a.doubt:
		return true
	case <-slept:
		return false
	}
}
