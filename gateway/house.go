package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/access"
	"herald/gateway/config"
	"herald/gateway/toolbox"
	"herald/gateway/workspace"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

// housekeeper removes what nobody needs any more.
type housekeeper struct {
	config      func() *config.Config
	store       *sqlite.Store
	checkpoints *workspace.Checkpoints
	toolbox     *toolbox.Toolbox
	log         zerolog.Logger
	now         func() time.Time
}

// sweep is one round of housekeeping.
func (k *housekeeper) sweep(ctx context.Context) {
	cfg := k.config().Sessions
	if cfg.AutoPrune && k.due(ctx, "prune", time.Duration(cfg.MinIntervalHours)*time.Hour) {
		pruned, err := k.store.Prune(ctx, sqlite.Retention{Ended: time.Duration(cfg.RetentionDays) * 24 * time.Hour})
		if err != nil {
			k.log.Warn().Err(err).Msg("old rows could not be removed")
		} else {
			k.log.Debug().Interface("removed", pruned).Msg("old rows were removed")
		}
	}
	if cfg.VacuumAfterPrune && k.due(ctx, "vacuum", time.Duration(cfg.MinVacuumIntervalDays)*24*time.Hour) {
		if freed, err := k.store.Vacuum(ctx); err != nil {
			k.log.Warn().Err(err).Msg("free pages could not be returned")
		} else if freed > 0 {
			k.log.Info().Int64("bytes", freed).Msg("free pages were returned to the disk")
		}
	}
	if set := k.config().Checkpoints; set.AutoPrune && k.checkpoints.Store().On() && k.due(ctx, "checkpoints", time.Duration(set.MinInterval)*time.Hour) {
		k.checkpoints.Prune(ctx, time.Duration(set.RetentionDays)*24*time.Hour)
	}
	if err := k.toolbox.Prune(); err != nil {
		k.log.Debug().Err(err).Msg("old tool results could not be removed")
	}
	if err := k.sweepValues(ctx); err != nil {
		k.log.Warn().Err(err).Msg("old notes of the core could not be removed")
	}
}

func (k *housekeeper) sweepValues(ctx context.Context) error {
	limit := k.now().Add(-sqlite.DefaultFinished)
	return k.store.Update(ctx, sessions.EdgeKeep, func(tx sessions.Tx) error {
		if err := access.SweepBots(tx, access.LoopLimitsOf(k.config()), k.now()); err != nil {
			return err
		}
		if err := access.SweepGrants(tx, k.now()); err != nil {
			return err
		}
		for _, info := range sessions.Spaces() {
			if !info.Passing {
				continue
			}
			values, err := tx.Values(info.Space)
			if err != nil {
				return err
			}
			for _, v := range values {
				if v.At.After(limit) {
					continue
				}
				if err := tx.SetValue(info.Space, v.Name, nil, k.now()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// due reports whether a piece of housekeeping was not done for so long, also by earlier processes, and notes that it is
// done now.
func (k *housekeeper) due(ctx context.Context, what string, every time.Duration) bool {
	ok := false
	err := k.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		last, err := tx.Value(sessions.SpaceHousekeeping, what)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		if ok = err != nil || k.now().Sub(last.At) >= every; !ok {
			return nil
		}
		return tx.SetValue(sessions.SpaceHousekeeping, what, json.RawMessage(`1`), k.now())
	})
	if err != nil {
		k.log.Warn().Err(err).Str("what", what).Msg("housekeeping is put off")
	}
	return ok && err == nil
}

// announceEvery is the least time between two words about a restart: a daemon that crashes again and again must not
// fill the home channels.
const announceEvery = time.Minute

// announceStart says in the home channels that Herald runs again. The first start with a home channel is no restart.
func (g *Gateway) announceStart(ctx context.Context) {
	var rows []*sessions.OutboxRow
	for _, at := range g.directory.Homes(ctx, func(name platforms.Name) bool { return g.cfg().Platforms.Shared(name).RestartNotice }) {
		rows = append(rows, g.worker.Notice(at, g.printer(at).T("restart.done", locales.Str("version", g.opt.Version))))
	}
	if len(rows) == 0 {
		return
	}
	again := false
	err := g.store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error {
		last, err := tx.Value(sessions.SpaceGateway, "started")
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		again = err == nil && g.now().Sub(last.At) >= announceEvery
		if err := tx.SetValue(sessions.SpaceGateway, "started", json.RawMessage(`1`), g.now()); err != nil || !again {
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

// run prunes, vacuums and sweeps now and then.
func (k *housekeeper) run(ctx context.Context) {
	timer := time.NewTimer(houseFirst)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			k.sweep(ctx)
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
