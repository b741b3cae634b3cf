package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"herald/gateway"
	"herald/gateway/admin"
	"herald/gateway/config"
	"herald/platforms"
	"herald/platforms/signal"
	"herald/sessions/lock"
	"herald/sessions/sqlite"
	"herald/tools/redact"
	"herald/tools/sandbox/local"
)

// memoryTarget, in bytes, is where the garbage collector starts to work harder than by Go's usual pace. Below it
// that pace is right: collecting at half of it saves 7 MiB under load and nothing at idle, and costs a sixth more CPU
// a turn (heraldbench).
const memoryTarget = 64 << 20

// startedAfter is when the daemon has started for sure; the memory that starting took goes back to the system then.
const startedAfter = 3 * time.Second

func runCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the daemon in the foreground",
		Long: `Run the daemon until it is told to stop (Ctrl+C or SIGTERM). It then lets running answers end for a while
(agent.restart_drain_timeout); what is not done goes on after the next start. A second Ctrl+C ends it at once,
and nothing that was accepted is lost by that either.

Without any configuration it serves the browser chat on http://127.0.0.1:7878/ with the built-in demo model.`,
		Example: "  herald run\n  herald run --set http.listen=127.0.0.1:0\n  HERALD_HOME=/srv/herald herald run",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), g) },
	}
}

func run(ctx context.Context, g *globals) error {
	debug.SetMemoryLimit(memoryTarget)
	defer time.AfterFunc(startedAfter, debug.FreeOSMemory).Stop()
	if runtime.GOMAXPROCS(0) > 4 {
		runtime.GOMAXPROCS(4) // a gateway waits more than it computes; more threads only cost memory
	}
	paths, err := g.paths()
	if err != nil {
		return err
	}
	source, err := g.source(paths)
	if err != nil {
		return err
	}
	cfg, report, err := config.Load(source)
	if err != nil {
		return coded{err, exitConfig}
	}
	secrets := redact.New(cfg.Secrets()...)
	log, closeLog, err := openLog(cfg, paths, secrets)
	if err != nil {
		return coded{err, exitConfig}
	}
	defer closeLog()
	for _, w := range report.Warnings {
		log.Warn().Msg(w.Error())
	}
	supervisor, err := local.SelfSupervisor()
	if err != nil {
		return err
	}
	daemon, err := gateway.New(ctx, gateway.Options{Supervisor: supervisor, Config: cfg, Report: report, Source: source, Paths: paths,
		Profile: g.profileName(),
		Version: version(), Log: log, Redactor: secrets,
		SetLevel: func(name string) {
			if level, err := zerolog.ParseLevel(name); err == nil {
				zerolog.SetGlobalLevel(level)
			}
		}})
	if err != nil {
		return startError(err)
	}
	return daemon.Run(ctx)
}

// startError gives the errors of a start that a restart can't mend their exit code.
func startError(err error) error {
	var locked *sqlite.LockedError
	var held *lock.HeldError
	if errors.As(err, &locked) || errors.As(err, &held) {
		return coded{err, exitConfig}
	}
	var corrupt *sqlite.CorruptError
	var setting *platforms.StartError
	if errors.As(err, &corrupt) || errors.As(err, &setting) {
		return coded{err, exitConfig}
	}
	return err
}

// openLog makes the daemon's log: people's form on a terminal, JSON elsewhere, and JSON in the home.
func openLog(cfg *config.Config, paths config.Paths, secrets *redact.Redactor) (zerolog.Logger, func(), error) {
	level, err := zerolog.ParseLevel(cfg.Log.Level)
	if err != nil {
		return zerolog.Nop(), nil, err
	}
	var screen io.Writer = os.Stderr
	if cfg.Log.Format == "console" || (cfg.Log.Format == "auto" && isatty.IsTerminal(os.Stderr.Fd())) {
		screen = zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly}
	}
	out, done := screen, func() {}
	if cfg.Log.File {
		file, err := admin.OpenRotating(filepath.Join(paths.Logs, "herald.log"), int64(cfg.Log.MaxMB)<<20)
		if err != nil {
			return zerolog.Nop(), nil, fmt.Errorf("log file: %w (make %s writable, or set log.file to false)", err, paths.Logs)
		}
		out, done = zerolog.MultiLevelWriter(screen, file), func() { _ = file.Close() }
	}
	zerolog.SetGlobalLevel(level) // the process's own level, so that a reload can change it
	return zerolog.New(redacting{out, secrets}).With().Timestamp().Logger(), done, nil
}

// redacting takes secrets out of every line, and the middle out of phone numbers, before it is written anywhere.
type redacting struct {
	out     io.Writer
	secrets *redact.Redactor
}

func (r redacting) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.out, signal.Mask(r.secrets.String(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}
