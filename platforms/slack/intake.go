package slack

import (
	"context"

	"herald/platforms"
)

// batchSize is how many waiting envelopes are committed at once.
const batchSize = 32

// taken is an envelope that was read, and what is to be done once its event is committed.
type taken struct {
	delivery
	event *platforms.Event // nil: it makes none
	after func()           // nil: nothing
}

// drain returns the first envelope and those that wait behind it.
func (a *Adapter) drain(first delivery, inbox <-chan delivery) []delivery {
	batch := []delivery{first}
	for len(batch) < batchSize {
		select {
		case d := <-inbox:
			batch = append(batch, d)
		default:
			return batch
		}
	}
	return batch
}

// take converts a batch, has it committed, and acknowledges it then. When ctx ends before, nothing is acknowledged.
func (a *Adapter) take(ctx context.Context, sink platforms.Sink, batch []delivery) {
	all := make([]taken, 0, len(batch))
	var events []platforms.Event
	for _, d := range batch {
		t := a.read(ctx, d)
		if t.event != nil {
			events = append(events, *t.event)
		}
		all = append(all, t)
	}
	if len(events) > 0 && !a.offer(ctx, sink, events) {
		return
	}
	a.keepThreads(ctx)
	for _, t := range all {
		t.ack()
		if t.after != nil {
			t.after()
		}
	}
}

// offer hands events on until they are committed. false: ctx ended before.
func (a *Adapter) offer(ctx context.Context, sink platforms.Sink, events []platforms.Event) bool {
	wait := a.s.newBackoff()
	for {
		err := sink.Accept(ctx, events...)
		if err == nil {
			a.health.Set("connected", "")
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		a.s.Metrics.Polled("refused")
		a.health.Set("paused", "events can't be stored: "+a.clean(err).Error())
		a.s.Log.Warn().Str("account", string(a.account.ID)).Str("cause", a.clean(err).Error()).Msg("events were not accepted and are offered again")
		if wait.Wait(ctx, a.s.Clock, 0) != nil {
			return false
		}
	}
}

// keepThreads makes the threads of a committed batch outlast a restart.
func (a *Adapter) keepThreads(ctx context.Context) {
	if len(a.fresh) == 0 {
		return
	}
	names := make([]string, 0, len(a.fresh))
	for name := range a.fresh {
		names = append(names, name)
	}
	if err := a.threads.Add(ctx, names...); err != nil {
		if ctx.Err() == nil {
			a.s.Log.Error().Err(err).Msg("the threads that the bot takes part in can't be written down")
		}
		return // they stay fresh and are tried again
	}
	clear(a.fresh)
}

// drop counts an event that is not handed on (P7).
func (a *Adapter) drop(reason string) {
	a.s.Metrics.Dropped(reason)
	a.s.Log.Debug().Str("account", string(a.account.ID)).Str("reason", reason).Msg("an event is not handed on")
}
