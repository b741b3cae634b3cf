package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"herald/gateway/access"
	"herald/gateway/command"
	"herald/gateway/delivery"
	"herald/gateway/turn/ask"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

// sweep is one round of housekeeping.
func (g *Gateway) sweep(ctx context.Context) {
	cfg := g.cfg().Sessions
	if cfg.AutoPrune && g.due(ctx, "prune", time.Duration(cfg.MinIntervalHours)*time.Hour) {
		pruned, err := g.store.Prune(ctx, sqlite.Retention{Ended: time.Duration(cfg.RetentionDays) * 24 * time.Hour})
		if err != nil {
			g.log.Warn().Err(err).Msg("old rows could not be removed")
		} else {
			g.log.Debug().Interface("removed", pruned).Msg("old rows were removed")
		}
	}
	if cfg.VacuumAfterPrune && g.due(ctx, "vacuum", time.Duration(cfg.MinVacuumIntervalDays)*24*time.Hour) {
		if freed, err := g.store.Vacuum(ctx); err != nil {
			g.log.Warn().Err(err).Msg("free pages could not be given back")
		} else if freed > 0 {
			g.log.Info().Int64("bytes", freed).Msg("free pages were given back to the disk")
		}
	}
	if set := g.cfg().Checkpoints; set.AutoPrune && g.checkpoints.Store().On() && g.due(ctx, "checkpoints", time.Duration(set.MinInterval)*time.Hour) {
		g.checkpoints.Prune(ctx, time.Duration(set.RetentionDays)*24*time.Hour)
	}
	if err := g.toolbox.Prune(); err != nil {
		g.log.Debug().Err(err).Msg("old tool results could not be removed")
	}
	if err := g.sweepValues(ctx); err != nil {
		g.log.Warn().Err(err).Msg("old notes of the core could not be removed")
	}
}

// passing are the spaces of values that mean nothing any more once they are old: gates that have opened,
// questions of ended turns, messages that /retry has taken up.
var passing = []string{delivery.SpaceGate, ask.SpaceQuestion, "retry", ask.SpaceApproval, command.SpaceConfirm}

func (g *Gateway) sweepValues(ctx context.Context) error {
	limit := g.now().Add(-sqlite.DefaultFinished)
	return g.store.Update(ctx, sessions.EdgeKeep, func(tx sessions.Tx) error {
		if err := access.SweepBots(tx, access.LoopLimitsOf(g.cfg()), g.now()); err != nil {
			return err
		}
		if err := access.SweepGrants(tx, g.now()); err != nil {
			return err
		}
		for _, space := range passing {
			values, err := tx.Values(space)
			if err != nil {
				return err
			}
			for _, v := range values {
				if v.At.After(limit) {
					continue
				}
				if err := tx.SetValue(space, v.Name, nil, g.now()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// due reports whether a piece of housekeeping was not done for so long, also by earlier processes, and notes that it is
// done now.
func (g *Gateway) due(ctx context.Context, what string, every time.Duration) bool {
	ok := false
	err := g.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		last, err := tx.Value("housekeeping", what)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		if ok = err != nil || g.now().Sub(last.At) >= every; !ok {
			return nil
		}
		return tx.SetValue("housekeeping", what, json.RawMessage(`1`), g.now())
	})
	if err != nil {
		g.log.Warn().Err(err).Str("what", what).Msg("housekeeping is put off")
	}
	return ok && err == nil
}

// announceEvery is the least time between two words about a restart: a daemon that crashes again and again must not
// fill the home channels.
const announceEvery = time.Minute

// announceStart says in the home channels that Herald runs again. The first start with a home channel is no restart.
func (g *Gateway) announceStart(ctx context.Context) {
	var rows []*sessions.OutboxRow
	for _, at := range g.directory.Homes(ctx, func(name platforms.Name) bool { return g.platform(name).RestartNotice }) {
		rows = append(rows, g.worker.Notice(at, g.texts.say(at, "restart.done", locales.Str("version", g.opt.Version))))
	}
	if len(rows) == 0 {
		return
	}
	again := false
	err := g.store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error {
		last, err := tx.Value("gateway", "started")
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		again = err == nil && g.now().Sub(last.At) >= announceEvery
		if err := tx.SetValue("gateway", "started", json.RawMessage(`1`), g.now()); err != nil || !again {
			return err
		}
		return tx.PutOutbox(rows...)
	})
	if err != nil {
		g.log.Warn().Err(err).Msg("the home channels can't be told of the restart")
		return
	}
	if again {
		g.worker.Take(rows...)
	}
}

// keepHouse prunes, vacuums and sweeps now and then.
func (g *Gateway) keepHouse(ctx context.Context) {
	defer g.wg.Done()
	timer := time.NewTimer(houseFirst)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			g.sweep(ctx)
			timer.Reset(houseEvery)
		}
	}
}

// houseFirst is how long after a start the first sweep waits, so that it is in nobody's way; houseEvery is how often
// it is then looked whether something is due.
const (
	houseFirst = 10 * time.Minute
	houseEvery = time.Hour
)
