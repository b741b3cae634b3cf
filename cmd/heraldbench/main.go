// Command heraldbench measures the daemon from outside, as the people who talk to it would feel it.
//
// It is both other sides of the daemon, on loopback: Telegram, and a model that answers at once. It starts
// the real binary as a child process in an empty home, sends it messages and times the replies. The table
// goes to standard output. Exit status 1 says that a message was lost, doubled or not answered, 2 that
// nothing could be measured; being slow is no error.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// phaseNames are the phases in the order in which they run.
var phaseNames = [...]string{"start", "idle", "five", "latency", "load", "sessions", "crash", "soak"}

// options are the flags.
type options struct {
	name, line, log, into string
	phases                []string
	json                  bool
	limit                 time.Duration
	sizes
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2) // the flag package has said why
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	r, err := bench(ctx, o)
	stop()
	if err == nil {
		err = show(o, r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "heraldbench:", err)
		os.Exit(2)
	}
	if failures := r.failures(); len(failures) > 0 {
		fmt.Fprintln(os.Stderr, "heraldbench: broken promises:", strings.Join(failures, "; "))
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("heraldbench", flag.ContinueOnError)
	phases := strings.Join(phaseNames[:], ",")
	f.StringVar(&o.name, "name", "herald", "label in the output")
	f.StringVar(&o.line, "cmd", "bin/herald run", "shell command that starts the daemon in the foreground")
	f.StringVar(&o.log, "log", "", "file for the daemon's output (default: in its home, shown when it fails)")
	f.StringVar(&o.into, "into", "", "document whose table between "+beginMark+" and "+endMark+" is replaced")
	f.StringVar(&phases, "phases", phases, "what to measure")
	f.BoolVar(&o.json, "json", false, "print JSON in place of the table")
	f.DurationVar(&o.limit, "reply-timeout", 30*time.Second, "how long one reply may take")
	f.IntVar(&o.Starts, "starts", 10, "warm starts of the start phase")
	f.IntVar(&o.Single, "single", 200, "messages of the latency phase")
	f.IntVar(&o.Chats, "chats", 50, "chats of the load and soak phases")
	f.IntVar(&o.PerChat, "per-chat", 20, "messages in each chat of the load phase")
	f.IntVar(&o.Sessions, "sessions", 1000, "chats of the sessions phase")
	f.IntVar(&o.Soak, "soak", 20_000, "turns of the soak phase")
	f.IntVar(&o.Renew, "renew", 40, "turns after which a soaked chat begins a new session")
	f.IntVar(&o.Crashes, "crashes", 5, "kills of the crash phase")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.phases = strings.Split(phases, ",")
	var err error
	for _, p := range o.phases {
		if !slices.Contains(phaseNames[:], p) {
			err = fmt.Errorf("-phases: there is no phase %q; there are %s", p, strings.Join(phaseNames[:], ", "))
		}
	}
	f.VisitAll(func(x *flag.Flag) {
		if n, ok := x.Value.(flag.Getter).Get().(int); ok && n < 1 && x.Name != "starts" {
			err = fmt.Errorf("-%s: %d, want 1 or more", x.Name, n)
		}
	})
	if o.Soak < o.Chats {
		err = fmt.Errorf("-soak: %d turns are fewer than one for each of %d chats", o.Soak, o.Chats)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "heraldbench:", err)
	}
	return o, err
}

// bench sets the stage and runs the phases.
func bench(ctx context.Context, o options) (_ report, err error) {
	r := report{Name: o.name, Command: o.line, CPUs: runtime.NumCPU()}
	ended, err := watch()
	if err != nil {
		return r, err
	}
	s, err := newStage(o.line, o.log, o.limit)
	if err != nil {
		return r, err
	}
	err = run(ctx, s, o, &r)
	if closing := s.close(); err == nil {
		err = closing
	}
	if err != nil {
		return r, err
	}
	r.Machine, err = ended()
	return r, err
}

// run starts the daemon and runs the phases on it, in their order.
func run(ctx context.Context, s *stage, o options, r *report) error {
	cold, err := s.start()
	if err != nil {
		return err
	}
	if err := s.warm(); err != nil {
		return err
	}
	for _, phase := range phaseNames {
		if !slices.Contains(o.phases, phase) {
			continue
		}
		fmt.Fprintln(os.Stderr, "heraldbench:", phase)
		var err error
		switch phase {
		case "start":
			r.Start = &started{Cold: millis(cold)}
			r.Start.Warm, err = s.startPhase(ctx, o.Starts)
		case "idle":
			err = into(&r.Idle)(s.idlePhase(ctx))
		case "five":
			err = s.without(func() error { return into(&r.Five)(fivePhase(ctx, o)) })
		case "latency":
			err = into(&r.Latency)(s.latencyPhase(ctx, o.Single))
		case "load":
			err = into(&r.Load)(s.loadPhase(ctx, o.Chats, o.PerChat))
		case "sessions":
			err = into(&r.Sessions)(s.sessionsPhase(ctx, o.Sessions))
		case "crash":
			err = into(&r.Crash)(s.crashPhase(ctx, o.Crashes))
		case "soak":
			err = into(&r.Soak)(s.soakPhase(ctx, o.Soak, o.Chats, o.Renew))
		}
		if err != nil {
			return fmt.Errorf("phase %s: %w", phase, err)
		}
	}
	return nil
}

// into returns a function that puts a phase's result where it belongs.
func into[T any](to **T) func(T, error) error {
	return func(v T, err error) error {
		*to = &v
		return err
	}
}

// show prints the report and puts its table into a document when asked to.
func show(o options, r report) error {
	if o.json {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return err
		}
	} else {
		fmt.Print(r.markdown())
	}
	if o.into == "" {
		return nil
	}
	document, err := os.ReadFile(o.into)
	if err != nil {
		return err
	}
	changed, err := insert(string(document), r.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", o.into, err)
	}
	return os.WriteFile(o.into, []byte(changed), 0o644)
}
