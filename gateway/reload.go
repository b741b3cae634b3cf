package gateway

import (
	"context"

	"herald/gateway/access"
	"herald/gateway/config"
	"herald/gateway/model/pool"
	"herald/platforms"
)

// watchConfig applies changes of the configuration while the daemon runs.
func (g *Gateway) watchConfig(ctx context.Context) {
	if g.opt.Source.Home == "" {
		return
	}
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		err := config.Watch(ctx, g.opt.Source, g.cfg(), config.WatchOptions{}, g.reload)
		if err != nil && ctx.Err() == nil {
			g.log.Warn().Err(err).Msg("changes of the configuration are not seen any more; restart Herald to apply them")
		}
	}()
}

// reload takes a new configuration over as far as a running daemon can.
func (g *Gateway) reload(cfg *config.Config, report *config.Report, changes []config.Change) {
	if err := report.Err(); err != nil {
		g.log.Error().Err(err).Msg("the changed configuration has errors; the old one stays in force")
		return
	}
	old := g.cfg()
	cfg = config.InForce(old, cfg)
	g.config.Store(cfg)
	g.gate.Set(access.PolicyOf(cfg))
	if g.opt.SetLevel != nil && old.Log.Level != cfg.Log.Level {
		g.opt.SetLevel(cfg.Log.Level)
	}
	again, model := map[platforms.Name]bool{}, false
	for _, c := range changes {
		e := g.log.Info()
		note := "a setting has changed"
		switch c.Reload {
		case config.ReloadRestart:
			e, note = g.log.Warn(), "a setting has changed that needs a restart of Herald to take effect"
		case config.ReloadAdapter:
			note = "a setting has changed; its platform is started again"
			again[platforms.Name(c.Part)] = true
		case config.ReloadSession:
			note = "a setting has changed; new sessions follow it"
		}
		model = model || pool.Concerns(c.Key)
		e.Str("key", c.Key).Str("plan", string(c.Reload)).Msg(note)
	}
	g.accounts.Restart(again)
	if !model {
		return
	}
	if err := g.models.Reload(context.Background()); err != nil {
		g.log.Error().Err(err).Msg("the model of the changed configuration can't be used; the old one stays in force")
		return
	}
	g.log.Info().Str("model", g.models.Current("").String()).Str("because", g.models.Reason()).Msg("the next turns use the model of the changed configuration")
}
