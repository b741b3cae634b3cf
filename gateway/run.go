package gateway

import (
	"context"
	"time"
)

// checkpointGrace is how long a stop waits for a rollback that is changing files.
const checkpointGrace = 20 * time.Second

// Run takes up what the last process left, starts the platforms, and returns after ctx has ended and
// everything has stopped in order. An error is one that keeps the daemon from running at all.
func (g *Gateway) Run(ctx context.Context) error {
	defer g.close()
	run, stop := context.WithCancel(context.Background())
	defer stop()
	for _, w := range g.gate.Warnings(g.accounts.Trusted()...) {
		g.log.Warn().Msg(w)
	}
	g.checkpoints.Recover(ctx)
	if err := g.recover(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // it was told to stop before it had started: everything waits on disk for the next process
		}
		return err
	}
	g.accounts.Start(run, g.router)
	g.announceStart(ctx)
	g.wg.Add(1)
	go g.serve()
	if err := g.admin.Listen(g.opt.Paths.Socket); err != nil {
		g.log.Error().Err(err).Msg("the control socket can't be opened: herald status, send and the like will not work")
	}
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		house := &housekeeper{config: g.cfg, store: g.store, checkpoints: g.checkpoints, toolbox: g.toolbox, log: g.log, now: g.now}
		house.run(run)
	}()
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		g.directory.Keep(run)
	}()
	g.wg.Add(1)
	go g.runJobs(run)
	g.watchConfig(run)
	g.log.Info().Str("version", g.opt.Version).Str("home", g.opt.Paths.Home).Str("model", g.models.Current("").String()).
		Str("because", g.models.Reason()).Dur("took", g.now().Sub(g.started)).Msg("Herald is running")
	g.metrics.SetReady(true)
	if g.cfg().Platforms.DoorOpen() {
		soon, cancel := context.WithTimeout(ctx, time.Second)
		g.accounts.AwaitDoor(soon)
		cancel()
		g.log.Info().Str("url", g.URL()).Msg("the browser chat is at " + g.URL())
	}
	<-ctx.Done()
	g.shutdown(stop)
	return nil
}

// recover takes up what an earlier process left: messages that wait, turns that run, background processes.
func (g *Gateway) recover(ctx context.Context) error {
	if err := g.worker.Recover(ctx); err != nil {
		return err
	}
	g.processes.Start(g.wakeForProcess)
	if err := g.router.Recover(ctx); err != nil {
		return err
	}
	return g.processes.Recover(ctx)
}

// shutdown stops in order: nothing new comes in, what runs may end within the drain budget, what is ready is
// delivered, and the rest waits on disk for the next process.
func (g *Gateway) shutdown(stop context.CancelFunc) {
	cfg := g.cfg()
	g.log.Info().Dur("budget", cfg.Agent.DrainTimeout).Msg("stopping: running turns may end, the rest goes on after the next start")
	g.metrics.SetReady(false)
	g.accounts.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), cfg.Agent.DrainTimeout)
	if err := g.router.Drain(ctx); err != nil {
		g.log.Warn().Int("turns", g.runner.Active()).Msg("turns are still running; they go on after the next start")
	}
	if err := g.scheduled.jobs.Drain(ctx); err != nil {
		g.log.Warn().Msg("scripts of jobs are still running; they are ended, and the next start reports it")
	}
	cancel()
	g.runner.Close()
	g.router.Wait()
	ctx, cancel = context.WithTimeout(context.Background(), min(cfg.Agent.DrainTimeout, 5*time.Second)+time.Second)
	if err := g.worker.Drain(ctx); err != nil {
		g.log.Warn().Int("messages", g.worker.Depth()).Msg("messages are still waiting; they are sent after the next start")
	}
	cancel()
	g.worker.Close()
	stop()
	ctx, cancel = context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := g.http.Shutdown(ctx); err != nil {
		_ = g.http.Close()
	}
	g.admin.Close()
	g.accounts.Wait()
	g.models.Close()
	g.wg.Wait()
	g.log.Info().Msg("stopped")
}

// close releases what New opened. It is safe to call twice.
func (g *Gateway) close() {
	if g.runner != nil {
		g.runner.Close()
	}
	if g.worker != nil {
		g.worker.Close()
	}
	if g.toolbox != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = g.toolbox.Close(ctx)
		cancel()
	}
	if g.toolLog != nil {
		g.toolLog.Close()
	}
	if g.processes != nil && g.router != nil {
		ctx, cancel := context.WithTimeout(context.Background(), g.cfg().Processes.Grace+10*time.Second)
		g.processes.Close(ctx)
		cancel()
	}
	if g.workspace != nil {
		if err := g.workspace.Close(); err != nil {
			g.log.Warn().Err(err).Msg("the workspace did not close cleanly")
		}
	}
	if g.checkpoints != nil {
		ctx, cancel := context.WithTimeout(context.Background(), checkpointGrace)
		if err := g.checkpoints.Close(ctx); err != nil {
			g.log.Warn().Err(err).Msg("the checkpoints did not close in time; the next start finishes what was begun")
		}
		cancel()
	}
	if g.accounts != nil {
		g.accounts.Release()
	}
	if g.listener != nil {
		_ = g.listener.Close()
	}
	if g.store != nil {
		if err := g.store.Close(); err != nil {
			g.log.Error().Err(err).Msg("the database did not close cleanly; nothing that was accepted is lost")
		}
		g.store = nil
	}
}
