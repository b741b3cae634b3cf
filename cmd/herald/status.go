package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"herald/gateway/admin"
)

// callTimeout bounds one question to the daemon.
const callTimeout = 30 * time.Second

func statusCmd(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "status", Short: "Show what the running daemon is doing", Args: cobra.NoArgs,
		Example: "  herald status\n  herald status --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var reply admin.Status
			if err := g.call(cmd.Context(), "status", nil, &reply); err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), reply)
			}
			printStatus(cmd.OutOrStdout(), reply)
			if !reply.Health.Ready {
				return errors.New("not ready: see above")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// call asks the daemon of the home.
func (g *globals) call(ctx context.Context, verb string, args, out any) error {
	paths, err := g.paths()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return admin.Call(ctx, paths.Socket, verb, args, out)
}

func printStatus(w io.Writer, r admin.Status) {
	ready := "ready"
	if !r.Health.Ready {
		ready = "NOT READY (" + r.Health.State + ")"
	}
	fmt.Fprintf(w, "Herald %s, pid %d, up %s: %s\n", r.Version, r.PID, time.Since(r.Started).Round(time.Second), ready)
	fmt.Fprintf(w, "  home      %s (profile %s)\n", r.Home, r.Profile)
	fmt.Fprintf(w, "  browser   %s\n", r.URL)
	fmt.Fprintf(w, "  model     %s\n", r.Model)
	fmt.Fprintf(w, "  commands  %s (%s)\n", r.Sandbox, r.SandboxBecause)
	fmt.Fprintf(w, "  turns     %d running, %d messages waiting, %d undelivered\n", r.Running, r.Queued, r.Waiting)
	fmt.Fprintf(w, "  store     %d sessions, %d messages, %.1f MiB", r.Counts.Sessions, r.Counts.Messages, float64(r.Counts.Bytes)/(1<<20))
	if n := r.Counts.OutboxUnknown; n > 0 {
		fmt.Fprintf(w, ", %d deliveries in doubt", n)
	}
	fmt.Fprintln(w)
	for _, a := range r.Health.Accounts {
		mark := "✓"
		if !a.Ready {
			mark = "✗"
		}
		fmt.Fprintf(w, "  %s %-24s %s", mark, a.Account, a.State)
		if a.Detail != "" {
			fmt.Fprintf(w, ": %s", a.Detail)
		}
		fmt.Fprintln(w)
	}
	for _, p := range r.Health.Problems {
		fmt.Fprintf(w, "  ! %s\n", p)
	}
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
